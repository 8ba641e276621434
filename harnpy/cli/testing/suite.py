"""The programs of a conformance run: discovery, selection, filters. Spec: 09 §3.3."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harnpy.text.regex.dialect import PatternError, compiled


class SelectionError(Exception):
    """The root, the selection or the filter matches no program; the message says why."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program of a suite with the file that says what it must do."""

    name: str
    path: Path
    kind: Literal["expected", "error", "skip"]

    @property
    def expectation(self) -> str:
        """The text of `NAME.expected` or `NAME.error`."""
        return self.path.with_suffix("." + self.kind).read_text(encoding="utf-8", errors="replace")


def find_cases(root: Path, selection: str | None = None, filter: str | None = None) -> list[Case]:
    """The cases below `root`, in the suite's order.

    Raises `SelectionError` for a root or selection that doesn't exist, is outside or has no tests, and for a
    filter with an invalid regular expression.
    """
    if not root.is_dir():
        raise SelectionError(f"Directory not found: {root}")
    start = root if selection is None else _selected(root, selection)
    cases = [case for path in _programs(start) if (case := case_of(root, path))]
    if not cases:
        raise SelectionError(f"No .harn conformance tests found under {start}")
    wanted = name_filter(filter)
    return [case for case in cases if wanted(case.name)]


def name_filter(pattern: str | None) -> Callable[[str], bool]:
    """The test of `--filter`: `re:REGEX`, `a|b`, a glob that may match anywhere, or a substring."""
    if pattern is None:
        return lambda name: True
    if pattern.startswith("re:"):
        try:
            search = compiled(pattern[3:]).search
        except PatternError as error:
            raise SelectionError(f"--filter: invalid regex `{pattern[3:]}`: {error}") from None
        return lambda name: search(name) is not None
    if "|" in pattern:
        parts = [part.strip() for part in pattern.split("|")]
        return lambda name: any(part in name for part in parts)
    glob = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
    return lambda name: glob.search(name) is not None


def _selected(root: Path, selection: str) -> Path:
    """The file or directory that `selection` names, seen from here or from `root`."""
    target = next((path for path in (Path(selection), root / selection) if path.exists()), None)
    if target is None:
        raise SelectionError(
            f"Conformance target not found: {selection}. Expected a file or directory under {root}"
        )
    target = Path(os.path.relpath(target.resolve(), root.resolve()))
    if target.parts[:1] == ("..",):
        raise SelectionError(f"Conformance target must be inside {root}: {selection}")
    target = root / target
    if not target.is_dir() and target.suffix != ".harn":
        raise SelectionError(f"Conformance target must be a .harn file or directory: {target}")
    return target


def _programs(start: Path) -> Iterator[Path]:
    """Every `.harn` file at or below `start`, each directory in path order and descended in place."""
    if not start.is_dir():
        yield start
        return
    for entry in sorted(os.scandir(start), key=lambda entry: entry.path):
        if entry.is_dir(follow_symlinks=False):
            yield from _programs(Path(entry.path))
        elif entry.name.endswith(".harn"):
            yield Path(entry.path)


def case_of(root: Path, path: Path) -> Case | None:
    """The case of a program; None for helpers and import targets, which have no expectation."""
    name = path.relative_to(root).as_posix()
    if path.with_suffix(".conformance-skip").exists():
        return Case(name, path, "skip")
    if path.with_suffix(".expected").exists():
        return Case(name, path, "expected")
    return Case(name, path, "error") if path.with_suffix(".error").exists() else None
