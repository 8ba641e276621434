"""Breakpoints: lines of files, and failures, at which a program stops. Spec: 09 §15.2."""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from harnpy import shipped
from harnpy.syntax import ast
from harnpy.syntax.ast import walk
from harnpy.syntax.diagnostic import Lines
from harnpy.syntax.names import DECLARATIONS
from harnpy.syntax.parser import parse_cached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.vm.unit import Unit

#: Nothing stops at these: they only name something, and what is inside runs later or not at all.
SILENT = (*DECLARATIONS, ast.Pipeline, ast.Override)

_BUNDLED = "<stdlib>/"


@dataclass(frozen=True)
class Breakpoint:
    """A place to stop at: the statement at ``offset`` of ``file``, which begins in ``line``.

    ``condition`` is a Harn expression that must be true there, None when there is none.
    """

    id: int
    file: str
    line: int
    offset: int
    condition: str | None


class Breakpoints:
    """All breakpoints. A face changes them while the program runs: each table is replaced, never changed."""

    def __init__(self, read: Callable[[str], str] | None = None) -> None:
        """``read`` returns the text of a file, given its real path; by default what is on the disk."""
        self._read = text_of if read is None else read
        self.failures: str | None = None
        """Which failures stop the program: ``"all"``, ``"uncaught"``, or None."""
        self._ids = count(1)
        self._files: dict[str, dict[int, Breakpoint]] = {}
        self._paths: dict[Unit, str] = {}

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter([point for points in self._files.values() for point in points.values()])

    def add(self, file: str, line: int, condition: str | None = None) -> Breakpoint | None:
        """Stop at the first statement at or below ``line``; None when there is none.

        Replaces another breakpoint of that statement. Raises OSError and SourceFault.
        """
        file = os.path.realpath(file)
        found = next((place for place in statements(self._read(file)) if place[0] >= line), None)
        if found is None:
            return None
        point = Breakpoint(next(self._ids), file, *found, condition)
        self._files[file] = {**self._files.get(file, {}), point.offset: point}
        return point

    def replace(self, file: str, wanted: Sequence[tuple[int, str | None]]) -> list[Breakpoint | None]:
        """Set the breakpoints of a file anew: lines and conditions. Raises OSError and SourceFault."""
        self._files.pop(os.path.realpath(file), None)
        return [self.add(file, line, condition) for line, condition in wanted]

    def remove(self, id: int) -> bool:
        """Remove one breakpoint; False when there is none with that number."""
        point = next((point for point in self if point.id == id), None)
        if point is None:
            return False
        left = self._files[point.file]
        self._files[point.file] = {offset: other for offset, other in left.items() if other is not point}
        return True

    def clear(self) -> None:
        self._files, self.failures = {}, None

    def at(self, unit: Unit, offset: int) -> Breakpoint | None:
        """The breakpoint of a statement."""
        path = self._paths.get(unit)
        if path is None:
            # Kept, because finding it costs a system call, and this is asked at every statement.
            path = self._paths[unit] = path_of(unit)
        return self._files.get(path, {}).get(offset)


def path_of(unit: Unit) -> str:
    """The path of a unit's file; of a unit without one, such as stdin, its name."""
    if unit.file.startswith(_BUNDLED):
        return os.path.realpath(os.path.join(shipped.library(), unit.file.removeprefix(_BUNDLED)))
    return unit.file if unit.file.startswith("<") else os.path.realpath(unit.file)


def statements(source: str) -> list[tuple[int, int]]:
    """The line and the offset of the first statement in each line that has one. Raises SourceFault."""
    lines = Lines(source)
    first: dict[int, int] = {}
    for node in walk(parse_cached(source)):
        for statement in _run_in(node):
            if not isinstance(statement, SILENT):
                line = lines.line(statement.start)
                first[line] = min(statement.start, first.get(line, statement.start))
    return sorted(first.items())


def _run_in(node: ast.Node) -> tuple[ast.Node, ...]:
    """The statements that a node consists of."""
    if isinstance(node, ast.Block):
        return node.statements
    if isinstance(node, ast.Program):
        return node.items
    return node.body if isinstance(node, ast.EvalPack) else ()


def text_of(file: str) -> str:
    """Return the text of a file on the disk. Raises OSError."""
    with open(file, encoding="utf-8", errors="replace", newline="") as opened:
        return opened.read()
