"""`// harnpy: allow CODE`. Spec: 03 §1.2."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from harnpy.check.allow import SPECIFIED, is_own, silenced
from harnpy.check.edits import Draft
from harnpy.check.explanations import explanations
from harnpy.check.findings import Finding

#: Each of these words of a program is a finding.
_MARKED = re.compile(r"\b(?:bad|worse|fixed)\b")
_CODES = {"bad": "unused-variable", "worse": "undefined-name", "fixed": "argument-type"}


def left(source: str) -> list[str]:
    """Which lines still have a finding, and of which word; the codes that don't exist.

    They are the same when the text is read by its pieces, as an editor's is.
    """
    whole = _left(source, ())
    assert left_by_pieces(source) == whole
    return whole


def left_by_pieces(source: str) -> list[str]:
    return _left(source, [piece.end for piece in Draft(source).pieces])


def _left(source: str, parts: Sequence[int]) -> list[str]:
    findings = [
        Finding(_CODES[found[0]], "error", found[0], found.start(), found.end())
        for found in _MARKED.finditer(source)
        if "//" not in source[source.rfind("\n", 0, found.start()) + 1 : found.start()]
    ]
    return [
        f"{source.count(chr(10), 0, each.start) + 1}:{source[each.start : each.end]}"
        for each in silenced(source, findings, parts)
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a()\nbad() // harnpy: allow unused-variable\nbad()", ["3:bad"]),
        ("a()\nbad() // harnpy: allow lint[unused-variable]", []),
        ("a()\nbad(worse) // harnpy: allow unused-variable, undefined-name", []),
        ("a()\nbad(worse) //harnpy:allow unused-variable -- I know, worse is no better", ["2:worse"]),
        ("a()\nbad() // allow unused-variable\nbad()", ["2:bad", "3:bad"]),
        ("a()\n// harnpy: allow unused-variable\nbad(\n  bad,\n)\nbad()", ["6:bad"]),
        ("a()\n// harnpy: allow unused-variable\n\n// why\nbad()\nbad()", ["6:bad"]),
        ("a()\n// harnpy: allow unused-variable\nx = bad\n  + bad\n  |> bad\nbad()", ["6:bad"]),
        ("a()\n// harnpy: allow unused-variable\nfn f() {\n  bad()\n\n  bad()\n}\nbad()", ["8:bad"]),
        ("a()\n// harnpy: allow unused-variable\n@test\n@b(x: 1)\npipeline f() {\n bad()\n}\nbad", ["8:bad"]),
        ("a()\n// harnpy: allow unused-variable\nif bad { bad } else {\n  bad()\n}\nbad()", ["6:bad"]),
        ("f({\n  // harnpy: allow unused-variable\n  a: bad, b: bad,\n  c: bad,\n})", ["3:bad", "4:bad"]),
        ("f([\n  bad,\n  // harnpy: allow unused-variable\n  bad\n])\nbad()", ["2:bad", "6:bad"]),
        ("fn f() {\n  // harnpy: allow unused-variable\n  bad()\n}\nbad()", ["5:bad"]),
        ("fn f() {\n  bad()\n  // harnpy: allow unused-variable\n}\nbad()", ["2:bad", "5:bad"]),
        ("bad()\n// harnpy: allow unused-variable", ["1:bad"]),
        ("// harnpy: allow unused-variable\nbad(worse)\nbad()", ["2:worse"]),
        ("#!/bin/harn\n/* the\n program */\n// harnpy: allow unused-variable\n\nbad()\n\nbad()", []),
        ('a("// harnpy: allow unused-variable")\nlet t = """\n // harnpy: allow\n"""\nbad()', ["5:bad"]),
        ("", []),
        ("// harnpy: allow unused-variable", []),
    ],
)  # fmt: skip
def test_what_is_silenced(source: str, expected: list[str]) -> None:
    assert left(source) == expected


def test_what_a_piece_that_cannot_be_read_allows_is_unknown_and_the_rest_holds() -> None:
    allow = "// harnpy: allow unused-variable"
    assert left_by_pieces(f'bad() {allow}\nlet s = "a\n{allow}\nbad()\nbad() {allow}\n') == ["4:bad"]


def test_errors_of_the_language_hold() -> None:
    assert left("a()\nfixed() // harnpy: allow argument-type") == ["2:fixed"]
    warning = Finding("unreachable-code", "warning", "", 0, 1)
    assert silenced("a() // harnpy: allow unreachable-code", [warning]) == []
    assert not is_own("argument-type")
    assert is_own("undefined-name")


def test_an_assignment_that_is_sure_to_fail_can_be_silenced() -> None:
    error = Finding("immutable-assignment", "error", "", 0, 1)
    assert silenced("x = 1 // harnpy: allow immutable-assignment", [error]) == []


def test_what_the_specification_finds_is_explained_as_such() -> None:
    specified = {"attributes", "calls", "match", "strict", "types"}
    found = {each.code for each in explanations().values() if each.family in specified}
    of_names = {
        "undefined-call",
        "unknown-struct",
        "immutable-assignment",
        "misplaced-yield",
        "misplaced-emit",
    }
    assert found | of_names == SPECIFIED


def test_a_code_that_does_not_exist_is_a_warning() -> None:
    assert left("a()\nbad() // harnpy: allow unclosed-braket") == ["2:bad", "2:unclosed-braket"]
    (found,) = silenced("a() // harnpy: allow unclosed-braket", [])
    assert (found.code, found.severity) == ("unknown-code", "warning")
    assert found.help == "did you mean `unclosed-bracket`?"
    (far,) = silenced("a() // harnpy: allow everything", [])
    assert far.help == "`harnpy explain` lists all codes"
