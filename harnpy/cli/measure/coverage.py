"""Which parts of a project's Harn files its tests run: counting, and the counts of several runs together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from harnpy import Vm
from harnpy.cli.measure.points import Branch, Points, probed
from harnpy.syntax import ast
from harnpy.syntax.parser import parse_cached
from harnpy.vm.declare.builtin import Declaration
from harnpy.vm.resolve.preparation import PROBE


@dataclass(slots=True)
class FileCoverage:
    """A file: its text, what can be counted in it, and how often each point was reached."""

    path: str
    source: str
    points: Points
    counts: list[int]

    def lines(self) -> dict[int, int]:
        """The lines on which statements begin, and how often each ran."""
        found: dict[int, int] = {}
        for line, point in self.points.statements:
            found[line] = max(found.get(line, 0), self.counts[point])
        return dict(sorted(found.items()))

    def missing(self) -> list[int]:
        return [line for line, count in self.lines().items() if not count]

    def branches(self) -> list[tuple[Branch, int]]:
        """The outcomes of decisions in the order of the text, and how often each came."""
        found = sorted(self.points.branches, key=lambda each: (each.decision, each.point))
        return [(branch, self.counts[branch.point]) for branch in found]

    def missing_branches(self) -> list[Branch]:
        """The outcomes that never came of decisions that were made."""
        made = {branch.decision for branch, count in self.branches() if count}
        return [branch for branch, count in self.branches() if not count and branch.decision in made]

    def functions(self) -> list[tuple[int, str, int]]:
        """The functions: line, name, calls."""
        return [(line, name, self.counts[point]) for line, name, point in self.points.functions]


class Coverage:
    """The preparation that puts probes into the files of programs, and what they count.

    It looks at the files below the working directory, and ``left_out`` tells which pipelines not to count.
    """

    def __init__(self, left_out: Callable[[ast.Pipeline], bool]) -> None:
        self._left_out = left_out
        self._base = os.path.realpath(os.getcwd())
        self._files: dict[str, FileCoverage] = {}
        self._programs: dict[str, ast.Program] = {}

    def attach(self, vm: Vm) -> None:
        """Count what the programs of ``vm`` do."""
        files = self._files

        def reached(vm: Any, path: str, point: int) -> None:
            files[path].counts[point] += 1

        vm.builtins.register(Declaration(f"{PROBE}(path: string, point: int)", "host", reached))
        vm.builtins.preparation = self

    def key(self, source: str, file: str) -> str:
        """Note the file; return its path, "" for what is not the project's."""
        path = os.path.realpath(os.path.join(self._base, file))
        if file.startswith("<") or not path.startswith(self._base + os.sep):
            return ""
        path = os.path.relpath(path, self._base)
        if path not in self._files or self._files[path].source != source:
            program, points = probed(parse_cached(source, file), source, path, self._left_out)
            self._programs[path] = program
            self._files[path] = FileCoverage(path, source, points, [0] * points.count)
        return path

    def changed(self, program: ast.Program, source: str, file: str) -> ast.Program:
        path = self.key(source, file)
        return self._programs[path] if path else program

    def files(self) -> list[FileCoverage]:
        """The files that were loaded, without those that have nothing to count."""
        return [file for file in self._files.values() if file.points.statements]


def together(files: Iterable[FileCoverage]) -> list[FileCoverage]:
    """One entry for each file, with the counts of all of its entries."""
    found: dict[str, FileCoverage] = {}
    for file in files:
        known = found.get(file.path)
        if known is None:
            found[file.path] = FileCoverage(file.path, file.source, file.points, list(file.counts))
        elif known.source == file.source:
            known.counts = [a + b for a, b in zip(known.counts, file.counts, strict=True)]
    return [found[path] for path in sorted(found)]
