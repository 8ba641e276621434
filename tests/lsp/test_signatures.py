"""What a call takes, and hints in the text. Spec: 12 §3.3, §3.5."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types as lsp

from harnpy.lsp import signatures
from tests.lsp.conftest import Open, Opened

_F = "fn f(a: int, b = 2, ...rest) -> int { return a }\nfn g(one, two) {}\n"
_P = "struct P { x: int, y: int }\nimpl P {\n  fn by(self, dx: int, dy: int) -> P { return self }\n}\n"


def shown(here: Opened) -> tuple[str, str | None] | None:
    """Return the signature, and the parameter that the cursor is at."""
    found = signatures.signature_help(here.workspace, here.document, here.params(lsp.SignatureHelpParams))
    if found is None:
        return None
    [signature] = found.signatures
    assert signature.parameters is not None
    active = found.active_parameter
    return signature.label, None if active is None else str(signature.parameters[active].label)


@pytest.mark.parametrize(
    ("source", "label", "active"),
    [
        (f"{_F}f(|)", "f(a: int, b = …, ...rest) -> int", "a: int"),
        (f"{_F}f(1, |)", "f(a: int, b = …, ...rest) -> int", "b = …"),
        (f"{_F}f(1, 2, 3, 4|)", "f(a: int, b = …, ...rest) -> int", "...rest"),
        (f"{_F}g(1, 2, |)", "g(one, two)", None),
        (f"{_F}g(1, f(|))", "f(a: int, b = …, ...rest) -> int", "a: int"),
        (f"{_F}g(f(1), |)", "g(one, two)", "two"),
        (f"{_F}g({{ x -> f(x, |) }}, 2)", "f(a: int, b = …, ...rest) -> int", "b = …"),
        (f"{_F}g({{a: |}}, 2)", "g(one, two)", "one"),
        (f"{_F}1 |> g(_, |)", "g(one, two)", "two"),
        (f"{_F}fn h() {{\n  g(1, |\n  let x = 1\n  return x\n}}", "g(one, two)", "two"),
        (f"{_F}println(\"${{g(|)}}\")", "g(one, two)", "one"),
        (f"{_P}fn h(p: P) {{ p.by(1, |) }}", "by(self, dx: int, dy: int) -> P", "dy: int"),
        (f"{_P}let p = P {{ x: 1, y: 2 }}\nfn h() {{ p.by(|) }}", "by(self, dx: int, dy: int) -> P", "dx: int"),
        (f"{_P}P(1, |)", "P(x: int, y: int)", "y: int"),
        ("enum C { Mixed(level: int, by: string) }\nC.Mixed(1, |)", "C.Mixed(level: int, by: string)", "by: string"),
        ("tool look(at: string) -> string { return at }\nlook(|)", "look(at: string) -> string", "at: string"),
        ('"a".pad_left(3, |)', 'string.pad_left(width: int = 0, ch: string = " ") -> string', 'ch: string = " "'),
        ('"a".replace(1, 2, |)', "string.replace(...args: any) -> string", "...args: any"),
    ],
)  # fmt: skip
def test_the_call_and_its_parameter(opened: Open, source: str, label: str, active: str | None) -> None:
    assert shown(opened(source)) == (label, active)


@pytest.mark.parametrize(
    "source", [f"{_F}g({{ x -> x + | }})", f"{_F}g(1)\n|", "unknown(|)", "let x = (1 + |)"]
)
def test_no_call(opened: Open, source: str) -> None:
    assert shown(opened(source)) is None


def test_a_function_of_another_module(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "lib.harn").write_text("// Greets.\npub fn greet(name: string) {}\n")
    assert shown(opened('import { greet } from "lib"\ngreet(|)', tmp_path)) == (
        "greet(name: string)",
        "name: string",
    )


def hints(here: Opened) -> list[str]:
    whole = lsp.Range(lsp.Position(0, 0), here.document.text.position(len(here.document.source)))
    params = here.params(lsp.InlayHintParams, range=whole)
    found = signatures.inlay_hints(here.workspace, here.document, params)
    lines = here.document.source.split("\n")
    return [
        f"{lines[hint.position.line][: hint.position.character].split()[-1]}«{hint.label}»"
        for hint in sorted(found, key=lambda one: (one.position.line, one.position.character))
    ]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('let a = "x".trim()', ["a«: string»"]),
        ("let xs = [1]", ["xs«: list<int>»"]),
        ("fn f() {\n  let n = 1 + 2\n  return n\n}", ["n«: int»"]),
        # What shows its type, or has none to show.
        ('let a = 1\nlet b = "x"\nlet c = true\nlet d = {x: 1}\nlet e = { x -> x }', []),
        ("struct P { x: int }\nlet p = P { x: 1 }\nenum C { A }\nlet c = C.A", []),
        ("let a: list = [1]\nlet _ = [1]\nlet u = unknown()", []),
        # Parameters where more than one argument may be meant.
        ("fn f(one, two) {}\nlet two = 1\nf(1, two)", ["f(«one:»"]),
        ("fn f(one) {}\nf(1)", []),
    ],
)  # fmt: skip
def test_hints(opened: Open, source: str, wanted: list[str]) -> None:
    assert hints(opened(source)) == wanted


def test_an_edit_elsewhere_leaves_what_is_known(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    here = opened("\n".join(f"fn f{n}() {{\n  let x{n} = [{n}]\n  return x{n}\n}}" for n in range(30)))
    hints(here)
    walked = []
    visit = signatures._Types.visit

    def counted(walk: signatures._Types, node: object) -> object:
        if node is walk.item:
            walked.append(node)
        return visit(walk, node)  # type: ignore[arg-type]

    monkeypatch.setattr(signatures._Types, "visit", counted)
    start = here.document.text.position(here.document.source.index("[7]") + 1)
    text = here.document.text.changed([(lsp.Range(start, start), "1")])
    here.workspace.edit(here.document, text, 2)
    assert len(hints(here)) == 30
    assert len(walked) == 1
