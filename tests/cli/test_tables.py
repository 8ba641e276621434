"""Tables of commands. Spec: 10 §C21."""

from __future__ import annotations

import pytest

from harnpy.cli import tables
from harnpy.cli.console import fold


def test_a_plain_table_is_rich_s_own(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        [tables.cell(text) for text in (f"run_{n}", "nächt 漢字" * (n % 3), str(n * 7), "x" * (n % 2))]
        for n in range(20)
    ]
    view = tables.table(("id", "name", "stages", ""), rows, ("stages",))
    tables.show(view, tables.UNBROKEN - 1)
    by_rich = capsys.readouterr().out
    tables.show(view, tables.UNBROKEN)
    assert capsys.readouterr().out == by_rich


COLUMNS = ("id", "stages", "", "last event")
ROWS = [["run-1", "3", "50%", "user: 日本語の 質問です"], ["a-long-name", "12", "", "-"]]


def lines(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.setattr(tables, "columns", lambda: width)
    rows = [[tables.cell(text) for text in row] for row in ROWS]
    tables.show(tables.table(COLUMNS, rows, COLUMNS[1:3]))
    return capsys.readouterr().out.splitlines()


def test_a_table_folds_at_blanks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(42, monkeypatch, capsys) == [
        "id           stages       last event",
        "run-1             3  50%  user: 日本語の",
        "                          質問です",
        "a-long-name      12       -",
    ]


def test_one_that_would_break_words_is_a_block_for_each_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lines(27, monkeypatch, capsys) == [
        "run-1",
        "  stages      3  50%",
        "  last event  user:",
        "      日本語の 質問です",
        "a-long-name",
        "  stages      12",
    ]


@pytest.mark.parametrize(
    ("line", "width", "folded"),
    [
        ("short", 10, ["short"]),
        ("one two three", 7, ["one two", "three"]),
        ("  --long  what it does", 16, ["  --long  what", "      it does"]),
        ("  -l  what it does", 14, ["  -l  what it", "      does"]),
        ("  --a-long-name  what it does", 16, ["  --a-long-name", "      what it", "      does"]),
        ("日本 語の 文", 7, ["日本", "語の 文"]),
        ("in /a/path/that/is/long there", 12, ["in /a/path/that/is/long", "there"]),
    ],
)
def test_lines_fold_at_blanks(line: str, width: int, folded: list[str]) -> None:
    assert fold(line, width) == folded


def test_a_cell_is_cut_by_its_columns() -> None:
    assert str(tables.cell("日本語です", 6)) == "日本…"
    assert str(tables.cell("abcdef", 6)) == "abcdef"
    assert str(tables.cell("abcdefg", 6)) == "abcde…"
