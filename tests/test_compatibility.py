"""docs/compatibility.md: what it says of harnpy is so. What it says of others was measured once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harnpy.builtins import catalog
from tests.support import PATIENCE, ROOT, Popen

PAGE = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
#: A program, and what harnpy does with it: the last cell.
_ROW = re.compile(r"^\| [^|]+ \| `([^|]+)` \| (?:[^|]+ \| )?((?:prints|refuses) ?[^|]*) \|$", re.MULTILINE)
_SPAN = re.compile(r"`([^`]+)`")


@pytest.mark.parametrize(("program", "says"), _ROW.findall(PAGE))
def test_harnpy_does_what_the_page_says(program: str, says: str, tmp_path: Path, popen: Popen) -> None:
    path = tmp_path / "program.harn"
    path.write_text(program, encoding="utf-8")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    with popen([sys.executable, "-m", "harnpy", "run", str(path)], cwd=tmp_path, **pipes) as process:
        out, err = process.communicate(timeout=PATIENCE)
    span = _SPAN.search(says)
    if says.startswith("prints"):
        assert span
        assert out == f"{span[1]}\n", err
    else:
        assert (process.returncode, out) == (1, "")
        assert span is None or span[1] in err


def test_every_row_is_run() -> None:
    rows = re.findall(r"^\| [^|]+ \| `", PAGE.partition("## What isn't there")[0], re.MULTILINE)
    assert len(rows) == len(_ROW.findall(PAGE)) > 30


def test_what_harnpy_lacks_is_all_listed() -> None:
    lines = (ROOT / "docs/spec/builtins.tsv").read_text(encoding="utf-8").splitlines()[1:]
    names = {line.split("\t")[1] for line in lines}
    listed = PAGE.partition("| family |")[2].partition("\n\n")[0]
    missing = names - set(catalog.names())
    assert set(re.findall(r"`(\w+)`", listed)) == missing
    assert f"Of the {len(names)} builtins" in PAGE
    assert f"harnpy has {len(names) - len(missing)}." in PAGE
