"""The README's comparison is what was seen, and what it says of harnpy is so.

The other columns are made by `python bench/peer_facts.py --write`, outside CI.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT


@pytest.fixture(scope="module")
def bench() -> Iterator[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "bench")
        yield runpy.run_path(str(ROOT / "bench/peer_facts.py"))


def test_the_table_is_what_was_seen(bench: dict[str, Any]) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert bench["page"](page) == page


def test_the_figures_of_other_benches_are_theirs(bench: dict[str, Any]) -> None:
    figures = (ROOT / "bench/README.md").read_text(encoding="utf-8")
    cells = [cell for row in bench["ROWS"] for cell in row.cells if cell != "–"]
    assert cells
    assert [cell for cell in cells if cell.partition(" ")[0] not in figures] == []


@pytest.mark.parametrize(
    "scene", ["killed in the reply", "killed in the tool", "approved", "two processes", "deleted", "forked"]
)
def test_harnpy_does_what_the_table_says(bench: dict[str, Any], scene: str, tmp_path: Path) -> None:
    desk = bench["Desk"](bench["LIBRARIES"]["harnpy"][0], tmp_path, grace=0.3)
    scenes = {scene: bench["SCENES"][scene](desk)}
    noted = bench["noted"]()["harnpy"]["scenes"]
    if scene == "forked":  # by the page of SQLite, whose releases differ
        assert scenes[scene]["before"] == pytest.approx(noted[scene]["before"], rel=0.2)
        assert scenes[scene]["added"] < scenes[scene]["before"] / 20
        return
    rows = [row for row in bench["ROWS"] if row.scene == scene]
    assert [row.see(scenes) for row in rows] == [row.see(noted) for row in rows]
