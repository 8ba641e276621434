"""The files that a command is to look at: those it is given, and those in the directories. Spec: 09 §4.1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import walk
from pathlib import Path


def program_files(targets: Iterable[Path]) -> list[Path]:
    """The files among ``targets``, and the programs below the directories among them; sorted, each once."""
    return sorted({file for target in targets for file in _files(target)})


def _files(target: Path) -> Iterator[Path]:
    if not target.is_dir():
        yield target
        return
    for folder, _, names in walk(target):
        yield from (Path(folder, name) for name in names if name.endswith(".harn"))
