"""`docs/features.md` has every [core] row of the specification's feature table, with tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/features.md"
CHAPTER = ROOT / "docs/spec/10-session-runtime.md"
#: A cell may hold an escaped bar.
_BAR = re.compile(r"(?<!\\)\|")


def rows(text: str) -> dict[str, list[str]]:
    """The cells behind the first one, by that, of all tables of a text."""
    lines = (line.strip() for line in text.splitlines() if line.startswith("| "))
    cells = ([cell.strip() for cell in _BAR.split(line)[1:-1]] for line in lines)
    return {first: rest for first, *rest in cells if not first.startswith(("**", "Feature", "---"))}


def features() -> dict[str, str]:
    """The API of each feature: the last cell of its row."""
    part = CHAPTER.read_text(encoding="utf-8").partition("# Part B")[2].partition("## B2.")[0]
    return {name: cells[-1] for name, cells in rows(part).items()}


SHOWN = rows(PAGE.read_text(encoding="utf-8"))


def test_every_core_feature_stands_there_as_the_specification_has_it() -> None:
    wanted = features()
    missing = {name for name in wanted if name not in SHOWN and "[ext]" not in name}
    assert missing == set()
    assert {name: cells[0] for name, cells in SHOWN.items()} == {name: wanted.get(name) for name in SHOWN}


@pytest.mark.parametrize("name", SHOWN)
def test_what_shows_it_exists(name: str) -> None:
    tests = re.findall(r"`((?:tests|conformance)/[^`]+)`", SHOWN[name][1])
    assert tests, "a feature without a test"
    for test in tests:
        file, *names = test.split("::")
        source = (ROOT / file).read_text(encoding="utf-8")
        for name in names:
            assert re.search(rf"^\s*(async def|def|class) {name}\b", source, re.M), test
