"""Giving a name another one: everywhere, or not at all. Spec: 12 §3.4."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams

from harnpy.lsp.document import Document
from harnpy.lsp.names import Mention, names
from harnpy.lsp.renaming import prepare_rename, rename
from harnpy.lsp.workspace import Workspace
from tests.lsp.conftest import Open, Opened

_PROGRAMS = Path(__file__).parents[2] / "conformance"


def renamed(here: Opened, new: str) -> dict[str, str]:
    """Return the texts behind the edits, by the names of their files."""
    found = rename(here.workspace, here.document, here.params(lsp.RenameParams, new_name=new))
    assert found is not None
    assert found.changes is not None
    texts = {}
    for uri, edits in found.changes.items():
        document = here.workspace.at(uri)
        assert document is not None
        texts[uri.rpartition("/")[2]] = applied(document, edits)
    return texts


def applied(document: Document, edits: object) -> str:
    text = document.source
    for edit in sorted(edits, key=lambda edit: document.text.span(edit.range), reverse=True):  # type: ignore[call-overload]
        start, end = document.text.span(edit.range)
        text = f"{text[:start]}{edit.new_text}{text[end:]}"
    return str(text)


@pytest.mark.parametrize(
    ("source", "after"),
    [
        # Variables, parameters, functions; uses in texts and closures.
        ("let a|a = 1\nprintln(aa, \"is ${aa} or ${aa + 1}\", { x -> aa })", "let zz = 1\nprintln(zz, \"is ${zz} or ${zz + 1}\", { x -> zz })"),
        ("fn f(aa, b = a|a) { return aa }", "fn f(zz, b = zz) { return zz }"),
        ("fn a|a() { return aa() }\nlet x = aa", "fn zz() { return zz() }\nlet x = zz"),
        ("var a|a = [1]\naa[0] = 2\naa += [3]", "var zz = [1]\nzz[0] = 2\nzz += [3]"),
        ("fn f() {\n  let aa = 1\n  if true {\n    let b = a|a\n    println(b)\n  }\n}\nlet aa = 2", "fn f() {\n  let zz = 1\n  if true {\n    let b = zz\n    println(b)\n  }\n}\nlet aa = 2"),
        ("fn /* aa */ a|a() { return \"aa\" } // aa\naa()", "fn /* aa */ zz() { return \"aa\" } // aa\nzz()"),
        ("@deprecated(use: \"aa\")\nfn a|a() {}\naa()", "@deprecated(use: \"aa\")\nfn zz() {}\nzz()"),
        ("let r = parallel each [1] { a|a -> aa }", "let r = parallel each [1] { zz -> zz }"),
        ("try { 1 } catch (a|a) { println(aa) }", "try { 1 } catch (zz) { println(zz) }"),
        ("tool a|a(x: int) -> int { return x }\naa(1)", "tool zz(x: int) -> int { return x }\nzz(1)"),
        # Patterns.
        ("let {a|a, b} = {aa: 1, b: 2}\nprintln(aa)", "let {aa: zz, b} = {aa: 1, b: 2}\nprintln(zz)"),
        ("let {k: a|a} = {k: 1}\nprintln(aa)", "let {k: zz} = {k: 1}\nprintln(zz)"),
        ("let {aa: a|a} = {aa: 1}\nprintln(aa)", "let {aa: zz} = {aa: 1}\nprintln(zz)"),
        ("let {aa = 3} = {}\nprintln(a|a)", "let {aa: zz = 3} = {}\nprintln(zz)"),
        ("let [b, ...a|a] = [1]\nprintln(aa)", "let [b, ...zz] = [1]\nprintln(zz)"),
        ("for (k, a|a) in {x: 1} { println(k, aa) }", "for (k, zz) in {x: 1} { println(k, zz) }"),
        ("match [1] { [a|a] -> { println(aa) } }", "match [1] { [zz] -> { println(zz) } }"),
        # Types and what belongs to them.
        ("struct A|a { x: int }\nimpl Aa { fn up(self) -> Aa { return self } }\nfn f(a: list<Aa>) -> Aa { return Aa { x: 1 } }",
         "struct Zz { x: int }\nimpl Zz { fn up(self) -> Zz { return self } }\nfn f(a: list<Zz>) -> Zz { return Zz { x: 1 } }"),
        ("struct P { a|a: int }\nlet p = P { aa: 1 }\nfn f(p: P) { return p.aa }", "struct P { zz: int }\nlet p = P { zz: 1 }\nfn f(p: P) { return p.zz }"),
        ("struct P { a|a: int }\nfn f(p: P) {\n  let {aa} = p\n  return aa\n}", "struct P { zz: int }\nfn f(p: P) {\n  let {zz: aa} = p\n  return aa\n}"),
        ("struct P { a|a: int }\nfn f(p: P) {\n  let {aa: b} = p\n  return b\n}", "struct P { zz: int }\nfn f(p: P) {\n  let {zz: b} = p\n  return b\n}"),
        ("struct P { a|a: int }\nfn f(p: P) { return {aa: p.aa} }", "struct P { zz: int }\nfn f(p: P) { return {aa: p.zz} }"),
        ("enum E { A|a, B }\nfn f(e: E) { match e { E.Aa -> { 1 } E.B -> { 2 } } }", "enum E { Zz, B }\nfn f(e: E) { match e { E.Zz -> { 1 } E.B -> { 2 } } }"),
        ("struct P { x: int }\nimpl P { fn a|a(self) { return 1 } }\nfn f(p: P) { p.aa() }", "struct P { x: int }\nimpl P { fn zz(self) { return 1 } }\nfn f(p: P) { p.zz() }"),
        ("struct P { x: int }\nimpl P { fn up(a|a) { return aa.x } }", "struct P { x: int }\nimpl P { fn up(zz) { return zz.x } }"),
        ("interface I { fn m(self) }\nfn f<A|a>(v: Aa) -> Aa where Aa: I { return v }", "interface I { fn m(self) }\nfn f<Zz>(v: Zz) -> Zz where Zz: I { return v }"),
        ("interface A|a { fn m(self) }\nfn f<T>(v: T) -> T where T: Aa { return v }", "interface Zz { fn m(self) }\nfn f<T>(v: T) -> T where T: Zz { return v }"),
        ("pipeline a|a(task) {}\npipeline b(task) extends aa {}", "pipeline zz(task) {}\npipeline b(task) extends zz {}"),
    ],
)  # fmt: skip
def test_everywhere(opened: Open, source: str, after: str) -> None:
    here = opened(source)
    new = "Zz" if "Zz" in after else "zz"
    assert renamed(here, new) == {"main.harn": after}


@pytest.mark.parametrize(
    ("source", "new", "why"),
    [
        ("let a|a = 1\nlet b = 2\nprintln(aa, b)", "b", "b"),
        ("fn f(a|a) {\n  let g = { b -> aa + b }\n  return g\n}", "b", "mean something else"),
        ("let a|a = 1\nfn f(b) { return aa + b }", "b", "b"),
        ("fn a|a() { return 1 }\nfn f() {\n  let b = 2\n  return aa() + b\n}", "b", "b"),
        ("let a|a = 1\nprintln(len([aa]))", "len", "len"),
        ("let a|a = 1\nprintln(missing, aa)", "missing", "missing"),
        ("struct A|a { x: int }\nstruct B { x: int }", "B", "B"),
        ("struct P { a|a: int, b: int }", "b", "b"),
        ("enum E { A|a, B }", "B", "B"),
        ("fn f<T|t>(a: Tt) {}\nstruct P { x: int }\nfn g(p: P) {}\nfn h<U>(a: P) {}", "1T", "can't be a name"),
        ("fn f<A|a>(a: Aa, p: P) {}\nstruct P { x: int }", "P", "mean something else"),
        ("struct A|a { x: int }\nlet p = Aa { x: 1 }", "aa", ""),
        ("let a|a = 1", "let", "can't be a name"),
        ("let a|a = 1", "_", "can't be a name"),
        ("let a|a = 1", "a b", "can't be a name"),
        ("prin|tln(1)", "zz", "declared in no file"),
        ('import { filter_nil } from "std/collections"\nfilter_|nil({})', "zz", "declared in no file"),
        ("pipeline p(ta|sk) { println(task) }", "zz", "a host gives"),
        ("interface I { fn aa(self) }\nstruct P { x: int }\nimpl P { fn a|a(self) {} }", "zz", "interface `I`"),
        ("fn called() { return aa() }\nfn f() {\n  let a|a = { -> 1 }\n  return called()\n}", "zz", "callers"),
    ],
)  # fmt: skip
def test_refused(opened: Open, source: str, new: str, why: str) -> None:
    here = opened(source)
    with pytest.raises(JsonRpcInvalidParams) as raised:
        rename(here.workspace, here.document, here.params(lsp.RenameParams, new_name=new))
    assert why in str(raised.value)


def test_where_there_is_no_name_nothing_is_renamed(opened: Open) -> None:
    here = opened("let a = |1")
    assert rename(here.workspace, here.document, here.params(lsp.RenameParams, new_name="b")) is None
    for source, wanted in (("let a|a = 1", "aa"), ("prin|tln(1)", None), ("// a|a", None)):
        here = opened(source)
        found = prepare_rename(here.workspace, here.document, here.params(lsp.PrepareRenameParams))
        assert (found.placeholder if found else None) == wanted


_LIB = "pub fn gre|et(g: Guest) { return g.name }\npub struct Guest { name: string }\n"
_FACE = 'pub import { greet, Guest } from "lib"\n'
_MAIN = 'import { greet, Guest } from "face"\nprintln(greet(Guest { name: "x" }))\n'


@pytest.mark.parametrize("at", ["lib.harn", "face.harn", "main.harn"])
def test_over_modules_and_what_they_pass_on(opened: Open, at: str) -> None:
    texts = {"lib.harn": _LIB.replace("|", ""), "face.harn": _FACE, "main.harn": _MAIN}
    texts[at] = texts[at].replace("greet", "gre|et", 1)
    here = opened(texts)
    plain = {"lib.harn": _LIB.replace("|", ""), "face.harn": _FACE, "main.harn": _MAIN}
    assert renamed(here, "welcome") == {
        name: text.replace("greet", "welcome") for name, text in plain.items()
    }


def test_a_field_of_another_module(opened: Open) -> None:
    lib = _LIB.replace("|", "").replace("{ name:", "{ na|me:")
    texts = renamed(opened({"lib.harn": lib, "face.harn": _FACE, "main.harn": _MAIN}), "title")
    assert texts == {
        "lib.harn": _LIB.replace("|", "").replace("name", "title"),
        "main.harn": _MAIN.replace("name:", "title:"),
    }


def test_another_module_would_be_captured(opened: Open) -> None:
    main = 'import "lib"\nfn welcome() {}\nprintln(greet(1), welcome())\n'
    here = opened({"lib.harn": _LIB, "main.harn": main})
    with pytest.raises(JsonRpcInvalidParams, match="main"):
        renamed(here, "welcome")


def test_files_that_do_not_have_the_name_are_not_parsed(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.harn").write_text("fn other() {}\n")
    (tmp_path / "user.harn").write_text('import { greet } from "main"\ngreet(1)\n')
    here = opened(_LIB, tmp_path)
    parsed = []
    at_path = Workspace.at_path

    def noted(workspace: Workspace, path: str) -> Document | None:
        parsed.append(Path(path).name)
        return at_path(workspace, path)

    monkeypatch.setattr(Workspace, "at_path", noted)
    assert renamed(here, "welcome").keys() == {"main.harn", "user.harn"}
    assert "other.harn" not in parsed


# After a rename, the names mean what they meant, for any name of any program.


def programs() -> list[Path]:
    return [path for path in sorted(_PROGRAMS.rglob("*.harn")) if "import" not in path.read_text()]


@pytest.mark.parametrize("seed", range(6))
def test_the_graph_of_names_stays(opened: Open, seed: int) -> None:
    chance = random.Random(seed)
    tried = 0
    for path in chance.sample(programs(), 16):
        source = path.read_text()
        workspace = Workspace()
        document = workspace.open("file:///main.harn", source)
        before = [each for each in names(workspace, document).mentions if each.meaning.uri == document.uri]
        if not before:
            continue
        chosen = chance.choice(before)
        params = lsp.RenameParams(
            lsp.TextDocumentIdentifier(document.uri), document.text.position(chosen.start), "Renamed9"
        )
        try:
            found = rename(workspace, document, params)
        except JsonRpcInvalidParams:
            continue
        assert found is not None
        assert found.changes is not None
        text = applied(document, found.changes[document.uri])
        after = workspace.open("file:///after.harn", text)
        others = [each for each in names(workspace, after).mentions if each.meaning.uri == after.uri]
        assert _graph(before) == _graph(others), path
        # With the old name again it is the old program, but for short entries of patterns.
        back = next(each for each in names(workspace, after).mentions if each.meaning.name == "Renamed9")
        params = lsp.RenameParams(
            lsp.TextDocumentIdentifier(after.uri), after.text.position(back.start), chosen.meaning.name
        )
        try:
            again = rename(workspace, after, params)
        except JsonRpcInvalidParams:
            # The program had variables of that name that hide each other.
            continue
        assert again is not None
        assert again.changes is not None
        if not any(each.short for each in before):
            assert applied(after, again.changes[after.uri]) == source, path
        tried += 1
    assert tried > 8


def _graph(mentions: list[Mention]) -> list[tuple[int, bool, bool]]:
    """Return which name means which of the meanings, in their order."""
    meanings = list(dict.fromkeys(each.meaning for each in mentions))
    return [(meanings.index(each.meaning), each.declares, each.writes) for each in mentions]
