"""Call hierarchy, over modules. Spec: 12 §3.4."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types as lsp

from harnpy.lsp import call_hierarchy
from tests.lsp.conftest import Open, Opened


def _item(here: Opened) -> lsp.CallHierarchyItem:
    (item,) = call_hierarchy.prepare(
        here.workspace, here.document, here.params(lsp.CallHierarchyPrepareParams)
    )
    return item


def _incoming(here: Opened, item: lsp.CallHierarchyItem) -> list[tuple[str, str, int]]:
    found = call_hierarchy.incoming(here.workspace, lsp.CallHierarchyIncomingCallsParams(item))
    return sorted((one.from_.name, one.from_.uri.rpartition("/")[2], len(one.from_ranges)) for one in found)


def _outgoing(here: Opened, item: lsp.CallHierarchyItem) -> list[tuple[str, int]]:
    found = call_hierarchy.outgoing(here.workspace, lsp.CallHierarchyOutgoingCallsParams(item))
    return [(one.to.name, len(one.from_ranges)) for one in found]


def test_callers_in_all_modules(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "main.harn").write_text(
        'import { helper } from "lib"\n'
        "pipeline p(task) {\n  let y = 1 |> helper\n  println(y)\n}\nlet h = helper\nhelper(h)\n"
    )
    source = "pub fn help|er(x) {\n  return x\n}\nfn twice(x) {\n  return helper(helper(x))\n}\n"
    here = opened({"lib.harn": source}, tmp_path)
    item = _item(here)
    assert (item.name, item.kind) == ("helper", lsp.SymbolKind.Function)
    assert here.text_of(item.selection_range) == "helper"
    assert _incoming(here, item) == [
        ("main.harn", "main.harn", 1),
        ("p", "main.harn", 1),
        ("twice", "lib.harn", 2),
    ]


def test_callees_but_not_builtins_nor_functions_inside(opened: Open) -> None:
    here = opened(
        "fn a() {\n  return 1\n}\nfn b() {\n  return a()\n}\nfn c|() {\n  print(a())\n  return b()\n}\nc()\n"
    )
    assert _outgoing(here, _item(here)) == [("a", 1), ("b", 1)]


def test_from_a_call_to_its_function(opened: Open) -> None:
    here = opened("fn a() {\n  return 1\n}\nprintln(a|())\n")
    assert here.text_of(_item(here).range).startswith("fn a()")


def test_methods_are_called_too(opened: Open) -> None:
    here = opened(
        "struct P {\n  n: int\n}\nimpl P {\n  fn dou|ble(self) {\n    return self.n * 2\n  }\n}\n"
        "fn f(p: P) {\n  return p.double()\n}\nf(P {n: 1})\n"
    )
    item = _item(here)
    assert _incoming(here, item) == [("f", "main.harn", 1)]


def test_nothing_is_called_at_a_variable(opened: Open) -> None:
    here = opened("let x| = 1\nprintln(x)\n")
    params = here.params(lsp.CallHierarchyPrepareParams)
    assert call_hierarchy.prepare(here.workspace, here.document, params) == []


def test_what_the_statements_of_a_file_call(opened: Open) -> None:
    here = opened("fn a|() {\n  return b()\n}\nfn b() {\n  return 1\n}\na()\n")
    (caller,) = call_hierarchy.incoming(here.workspace, lsp.CallHierarchyIncomingCallsParams(_item(here)))
    assert caller.from_.kind == lsp.SymbolKind.File
    assert _outgoing(here, caller.from_) == [("a", 1)]
