"""Diagnostics as people see them: no text of a program repaints the terminal. Spec: 09 §1.4, 03 §2."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.formats.visible import cells, marked, on_one_line
from harnpy.syntax.diagnostic import Diagnostic, Edit, Fix, Lines, Related, rendered
from tests.syntax.test_errors import fault

SOURCE = "fn area(a, b) {\n  return a * b\n}\n\narea(1)\n"
LINES = Lines(SOURCE)
CALL = LINES.span(SOURCE.index("area(1)"), SOURCE.index("area(1)") + 7)
NAME = LINES.span(3, 7)


def shown(**parts: object) -> str:
    found = Diagnostic("error", "too few", CALL, "arguments", **parts)  # type: ignore[arg-type]
    return rendered(found, LINES, "a.harn")


HEAD = "error: too few\n  --> a.harn:5:1\n   |\n 5 | area(1)\n   | ^^^^^^^ arguments\n"


def test_another_place_of_the_file_is_shown_with_its_line() -> None:
    assert shown(related=(Related("declared here", NAME),), help="give it two") == (
        HEAD
        + "  ::: a.harn:1:4\n   |\n 1 | fn area(a, b) {\n   |    ---- declared here\n   = help: give it two\n"
    )


def test_another_file_is_shown_when_it_can_be_read() -> None:
    other = Lines("\n" * 9 + "pub fn area() {}")
    text = shown(related=(Related("declared here", other.span(16, 20), "b.harn", other),))
    assert text == (
        "error: too few\n   --> a.harn:5:1\n    |\n  5 | area(1)\n    | ^^^^^^^ arguments\n"
        "   ::: b.harn:10:8\n    |\n 10 | pub fn area() {}\n    |        ---- declared here\n"
    )
    assert shown(related=(Related("declared here", None, "c.harn"),)) == (
        HEAD + "   = note: declared here: c.harn\n"
    )


@pytest.mark.parametrize(
    ("fix", "text"),
    [
        (Fix([Edit(61, 61, ", 2")]), "insert `, 2`"),
        (Fix([Edit(NAME.start, NAME.end, "size")]), "write `size` instead of `area`"),
        (Fix([Edit(NAME.start, NAME.end, "")]), "remove `area`"),
        (Fix([Edit(0, 1, "a"), Edit(1, 2, "b")]), "`harnpy lint --fix` mends this"),
        (Fix([Edit(0, 40, "")], safe=False), "`harnpy lint --fix --unsafe-fixes` mends this"),
    ],
)
def test_a_fix_is_the_help_where_there_is_no_other(fix: Fix, text: str) -> None:
    assert shown(fix=fix).endswith(f"   = help: {text}\n")
    assert shown(fix=fix, help="count them").endswith("   = help: count them\n")


@pytest.mark.parametrize(
    ("text", "column", "length", "line", "marks"),
    [
        ("\tlet x = )", 10, 1, "\tlet x = )", "\t        ^"),
        ("a\x1b[31m = )", 8, 3, "a\\x1b[31m = )", " " * 10 + "^^^"),
        ("let 猫 = )", 9, 1, "let 猫 = )", "         ^"),
        ("let 猫 = )", 5, 1, "let 猫 = )", "    ^^"),
        ("e\u0301 )", 4, 1, "e\u0301 )", "  ^"),
        ("\u202ea )", 4, 1, "\\u202ea )", "        ^"),
        ("\u202e", 1, 1, "\\u202e", "^^^^^^"),
        ("a\U000e0041\ufeff", 2, 2, "a\\U000e0041\\ufeff", " " + "^" * 16),
        ("a", 2, 0, "a", " ^"),
    ],
)
def test_carets_stand_below_what_is_shown(text: str, column: int, length: int, line: str, marks: str) -> None:
    assert marked(text, column, length) == (line, marks)


@given(st.text(st.characters(exclude_characters="\n\t")), st.integers(1, 20), st.integers(0, 9))
def test_marks_never_stand_beside_the_line(text: str, column: int, length: int) -> None:
    column = min(column, len(text) + 1)
    line, marks = marked(text, column, length)
    assert line.isprintable() or not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", line)
    assert len(marks) <= max(cells(line), len(marks.rstrip("^")) + 1)


def test_a_message_stays_on_its_line() -> None:
    found = fault('let a = 1 "x\\n\\nerror: nothing \x1b[2J"')
    assert "\x1b" not in found.render()
    assert found.render().startswith(
        "error: expected top-level item separator (`;` or newline), found str(x\\n\\nerror: "
    )


def test_a_long_token_is_shown_in_part() -> None:
    assert fault(f'let a = 1 "{"x" * 200}"').message.endswith(f"got str({'x' * 80}…) at 1:11")


def test_a_secret_is_shown_nowhere() -> None:
    key = "sk-ant-api03-R4nd0mK3yZq8WvT7mXpLs2NcUeYhGbJd9FaQwErTyUi"
    found = fault(f'let a = 1 "{key}"')
    assert f"got str({'*' * len(key)}) at" in found.message
    assert key not in found.render()
    key = key[:40]
    source = f'to_string("{key}")'
    fix = Fix([Edit(0, len(source), f'"{key}"')])
    warning = Diagnostic("warning", "no", Lines(source).span(0, 1), fix=fix)
    shown = rendered(warning, Lines(source), "a.harn")
    assert f'help: write `"{"*" * len(key)}"` instead of' in shown
    assert key not in shown


def test_a_carriage_return_ends_no_shown_line() -> None:
    assert " 1 | let a = )\n" in fault("let a = )\r\nb()\r\n").render()


def test_a_file_may_have_any_name() -> None:
    found = Diagnostic("error", "no", Lines("a").span(0, 1))
    assert "--> a\\x1b[2J.harn:1:1" in rendered(found, Lines("a"), "a\x1b[2J.harn")
    assert on_one_line("a\nb\x00") == "a\\nb\\x00"
