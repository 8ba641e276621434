"""An edited draft is what reading the whole text gives. Spec: 03 §1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.check.edits import Draft, placed
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.parser import parse
from tests.counts import COUNT

ROOT = Path(__file__).parent.parent.parent
_PROGRAMS = sorted((ROOT / "examples").glob("*.harn")) + sorted(
    (ROOT / "conformance" / "control").glob("*.harn")
)
#: What is put into a text, a line each.
_PIECES = [
    piece.replace("\\n", "\n")
    for piece in r"""
\n
let y = 1\n
\nfn f() {\n  return 1\n}\n
{
}
(
"
/*
*/
//
@test\n
pub fn
1 +
.
else { }
catch { }
import "std/text"\n
-1
|> f
;
""".splitlines()
]


def whole(source: str) -> list[tuple[int, int, Any]]:
    return [laid_out(node) for node in parse(source).items]


def laid_out(node: Any) -> Any:
    """A node with its offsets, and those below it."""
    if isinstance(node, ast.Node):
        return (type(node), node.start, node.end, *(laid_out(getattr(node, name)) for name in node.__slots__))
    return tuple(map(laid_out, node)) if isinstance(node, tuple) else node


def edited(draft: Draft, source: str) -> list[tuple[int, int, Any]] | None:
    draft.edit(source)
    if draft.broken:
        return None
    return [laid_out(placed(item.node, item.moved)) for item in draft.items]


@settings(max_examples=COUNT.examples(20), deadline=None)
@given(st.data())
def test_a_draft_is_what_reading_the_whole_text_gives(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(_PROGRAMS)).read_text(encoding="utf-8")
    draft = Draft(source)
    for _ in range(4):
        start = data.draw(st.integers(0, len(source)))
        end = min(len(source), start + data.draw(st.integers(0, 40)))
        changed = source[:start] + data.draw(st.sampled_from(_PIECES)) + source[end:]
        try:
            expected = whole(changed)
        except SyntaxFault:
            assert edited(draft, changed) is None
            continue
        assert edited(draft, changed) == expected
        source = changed


def test_an_edit_in_one_function_reads_that_function() -> None:
    functions = [f"fn f{i}() {{\n  return {i}\n}}\n" for i in range(50)]
    draft = Draft("\n".join(functions))
    functions[20] = "fn f20() {\n  let x = 20\n  return x\n}\n"
    draft.edit("\n".join(functions))
    assert [item.node.name for item in draft.fresh] == ["f20"]
    assert [item.node.name for item in draft.replaced] == ["f20"]
    assert draft.source[draft.items[40].start : draft.items[40].end] == functions[40].rstrip()


def test_offsets_of_every_reading_are_found_again() -> None:
    draft = Draft("let a = 1\nlet b = 2\nlet c = 3\nlet d = 4\nlet e = 5\n")
    far = draft.items[4].node.start
    draft.edit("let a = 1\nlet b = 222\nlet c = 3\nlet d = 4\nlet e = 5\n")
    assert draft.source[draft.place(far) :].startswith("let e")
    fresh = draft.items[1].node.start
    assert draft.source[draft.place(fresh) :].startswith("let b")


@pytest.mark.parametrize("text", ["", "\n", "// only a comment\n", "let a = 1"])
def test_texts_with_little_in_them(text: str) -> None:
    draft = Draft(text)
    draft.edit("let b = 2\n" + text)
    assert next(item.start for item in draft.items) == 0
    draft.edit("")
    assert draft.items == []
