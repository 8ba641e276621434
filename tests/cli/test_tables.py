"""Tables of commands. Spec: 10 §C21."""

from __future__ import annotations

import pytest

from harnpy.cli import tables


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
