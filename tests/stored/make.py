"""Make a generation with the harnpy at hand: `python -m tests.stored.make VERSION`. See README.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.stored import exports, places

HERE = Path(__file__).parent
#: The process that writes a part: nothing of harnpy may be imported before time stands still.
_WRITER = """
import sys
from tests.stored.still import be_still
be_still()
from tests.stored.parts import OF_PROJECT, OF_STORE
{**OF_STORE, **OF_PROJECT}[sys.argv[1]](sys.argv[2])
"""
#: The parts of a store in the order in which they are written.
_PARTS = ("unfinished", "sessions", "programs", "events", "monitors", "searches")


def main(version: str) -> None:
    generation = HERE / version
    if generation.exists():
        sys.exit(f"{generation} is there: a generation is never made again")
    with TemporaryDirectory() as directory, places.postgres_server(Path(directory)) as postgres:
        here = Path(directory, "work")
        made = here / "made"
        made.mkdir(parents=True)
        os.chdir(here)
        expected: dict[str, exports.Texts] = {}
        own: exports.Texts = {}
        for kind in places.KINDS:
            url = places.empty(kind, made, postgres)
            for part in _PARTS:
                _write(part, url)
            places.keep(kind, made, generation, postgres)
            expected[kind] = exports.of_store(url)
            own.update({f"{kind} {name}": expected[kind].pop(name) for name in exports.OWN})
        _compare(expected)
        _write_project(generation / "project")
        read = shutil.copytree(generation / "project", here / "project")
        texts = expected[places.KINDS[0]] | own | exports.of_project(read)
        exports.keep(texts, generation / "expected")


def _write(part: str, place: str) -> None:
    """Have a process write a part; it closes what it has opened, or dies."""
    done = subprocess.run([sys.executable, "-c", _WRITER, part, place], check=False)
    assert done.returncode == (9 if part == "unfinished" else 0)


def _compare(expected: dict[str, exports.Texts]) -> None:
    """Show where stores differ in what they export. They must not."""
    first, *others = expected
    for other in others:
        for name in sorted(expected[first].keys() | expected[other].keys()):
            texts = [expected[kind].get(name, "").splitlines() for kind in (first, other)]
            for line in unified_diff(*texts, f"{first}: {name}", f"{other}: {name}", n=0, lineterm=""):
                print(line)
    if any(expected[other] != expected[first] for other in others):
        sys.exit("stores don't export the same")


def _write_project(project: Path) -> None:
    """Write what programs leave in the directories of their project, whose path some of it names."""
    place = Path("/tmp/harnpy-stored")
    place.mkdir()
    try:
        (place / "harn.toml").write_text('[project]\nname = "stored"\n', "utf-8")
        for name in ("project", "recorded"):
            shutil.copy(exports.PROGRAMS / f"{name}.harn", place)
        for part in ("project", "recorded"):
            _write(part, str(place))
        exports.said(place, "run", "recorded.harn", "--llm-mock-record", "replies.jsonl")
        exports.said(place, "bundle", "export", ".harn-runs/announced.json", "-o", "bundle.json")
        shutil.copytree(place, project, ignore=shutil.ignore_patterns("*.lock"))
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main(sys.argv[1])
