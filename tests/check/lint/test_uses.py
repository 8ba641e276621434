"""What is known of the names of a file: where each is declared, read, assigned. Spec: 02 §7, §10.4, §12."""

from __future__ import annotations

import pytest

from harnpy.check.lint.uses import Uses
from harnpy.syntax.parser import parse


def uses_of(source: str) -> dict[str, tuple[int, int]]:
    """How often each name of a program is read and assigned, by its declarations' order."""
    counts: dict[str, tuple[int, int]] = {}
    for binding in Uses(parse(source), {"Result", "Shape"}).bindings:
        name = binding.name
        while name in counts:
            name += "'"
        counts[name] = len(binding.reads), len(binding.writes)
    return counts


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('let a = 1\nprintln("${a} ${a + 1}")', {"a": (2, 0)}),
        ("let a = 1\nmutex { let a = 2\n a }\na", {"a": (1, 0), "a'": (1, 0)}),
        ("var a = 1\na += 2\na.b = 3\na[a] = 4", {"a": (1, 3)}),
        ("fn f() { return g() }\nfn g() { return f() }", {"f": (1, 0), "g": (1, 0)}),
        # A closure sees what comes later; a block around it hides that.
        ("let f = { -> later }\nlet later = 1", {"f": (0, 0), "later": (1, 0)}),
        # A variable needn't be callable: the call may mean the function outside.
        ("fn size() { 1 }\nfn f(size) { size() }", {"size": (1, 0), "f": (0, 0), "size'": (1, 0)}),
        ("fn bump() { n += 1 }\nvar n = 0", {"bump": (0, 0), "n": (0, 1)}),
        ("match v { Shape.Circle(r) -> { r } other -> { 1 } }", {"r": (1, 0), "other": (0, 0)}),
        ("match v { f(r) -> { r } }\nlet r = 1", {"r": (2, 0)}),
        ("let {a: b = 1, ...c} = d\n[b, c]", {"b": (1, 0), "c": (1, 0)}),
        ("let [_, a] = d\nfor (k, _) in d { k + a }", {"a": (1, 0), "k": (1, 0)}),
        ("retry 3 { let a = 1 }\na", {"a": (1, 0)}),
        ("try { f() } catch (e) { e }", {"e": (1, 0)}),
        ("parallel each xs { x -> spawn { x } }", {"x": (1, 0)}),
        ("xs |> map(_, { x -> x })", {"x": (1, 0)}),
        ("tool t(a: int) { a }\nt", {"t": (1, 0), "a": (1, 0)}),
        (
            "pipeline child() extends base { n = 2 }\npipeline base() { var n = 1 }",
            {"n": (0, 1)},
        ),
        ("pipeline p(task) { f(task) }\nfn f(x) { limit + x }\nlet limit = 1",
         {"task": (1, 0), "f": (1, 0), "x": (1, 0), "limit": (1, 0)}),
    ],
)  # fmt: skip
def test_reads_and_writes(source: str, expected: dict[str, tuple[int, int]]) -> None:
    assert uses_of(source) == expected


def test_what_hides_what() -> None:
    program = parse("let a = 1\nfn f(a) { let b = 1\n let b = 2 }\nlet c = { -> b }")
    found = {(one.name, bool(one.shadows), bool(one.redeclares)) for one in Uses(program, ()).bindings}
    assert found == {
        ("a", False, False),
        ("a", True, False),
        ("b", False, False),
        ("b", False, True),
        ("c", False, False),
        ("f", False, False),
    }


def test_a_tree_of_twenty_thousand_levels() -> None:
    program = parse("let a = 1\nprintln(" + " + ".join(["a"] * 20_000) + ")")
    (binding,) = Uses(program, ()).bindings
    assert len(binding.reads) == 20_000
