"""Coverage of a project's Harn files by its tests: counting, and the reports of it. Spec: 09 §3.5.

Probes in the tree of a program count. Reports are made of plain data: a table, HTML, LCOV.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from harnpy import Vm
from harnpy.cli.console import say
from harnpy.cli.tables import cell, show, table
from harnpy.formats import markup
from harnpy.formats.markup import Markup, element, page
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Lines
from harnpy.syntax.names import DECLARATIONS
from harnpy.syntax.parser import parse_cached
from harnpy.vm.declare import Declaration
from harnpy.vm.resolve import PROBE, probe
from harnpy.world import World

# The points of a file that coverage counts, and the tree with a probe at each of them.
#
# A *statement* counts when it begins; declarations and imports are none. A *branch* is one outcome of a
# decision: the parts of an `if … else if … else`, also the `else` that isn't written; the arms of a `match`;
# a loop that is entered, and one that isn't; a `guard` that holds, and one that doesn't. A *function* counts
# when it is entered. Probes are calls of one builtin. They change nothing else: not the value of a block, not
# what is a tail call.


#: What is no statement: it declares, and does nothing when its turn comes.
_DECLARATIONS = (*DECLARATIONS, ast.Import, ast.Pipeline, ast.Override)


@dataclass(frozen=True, slots=True)
class Branch:
    """One outcome of the decision on a line; those of one decision share its number."""

    line: int
    decision: int
    outcome: str
    point: int


@dataclass(slots=True)
class Points:
    """The points of a file that can be counted; each is an index into the counts."""

    statements: list[tuple[int, int]] = field(default_factory=list)
    """The line of each statement, and its point."""
    branches: list[Branch] = field(default_factory=list)
    functions: list[tuple[int, str, int]] = field(default_factory=list)
    """The line and the name of each function, and its point."""
    count: int = 0


def probed(
    program: ast.Program, source: str, key: str, left_out: Callable[[ast.Pipeline], bool]
) -> tuple[ast.Program, Points]:
    """The program with probes, and what they count.

    A probe reports ``key`` and its point. Pipelines that are ``left_out`` get none.
    """
    prober = _Prober(source, key, left_out)
    changed = ast.Program(program.start, program.end, prober.statements(program.items, top=True))
    return changed, prober.points


class _Prober:
    """Puts probes into one tree. The nodes that stay as they are are shared with the original."""

    def __init__(self, source: str, key: str, left_out: Callable[[ast.Pipeline], bool]) -> None:
        self.points = Points()
        self._lines = Lines(source)
        self._key = key
        self._left_out = left_out
        self._decisions = 0

    # --- probes -----------------------------------------------------------------------------------

    def _point(self) -> int:
        self.points.count += 1
        return self.points.count - 1

    def _probe(self, start: int, point: int) -> ast.Node:
        return probe(start, ast.Str(start, start, self._key, True), ast.Int(start, start, point))

    def _decision(self) -> int:
        self._decisions += 1
        return self._decisions

    def _branch(self, at: ast.Node, decision: int, outcome: str) -> ast.Node:
        point = self._point()
        self.points.branches.append(Branch(self._lines.line(at.start), decision, outcome, point))
        return self._probe(at.start, point)

    def _function(self, node: ast.Node, name: str) -> ast.Node:
        point = self._point()
        self.points.functions.append((self._lines.line(node.start), name, point))
        return self._probe(node.start, point)

    # --- the tree ---------------------------------------------------------------------------------

    def statements(self, nodes: Sequence[ast.Node], top: bool = False) -> tuple[ast.Node, ...]:
        found: list[ast.Node] = []
        for node in nodes:
            if not isinstance(node, _DECLARATIONS):
                point = self._point()
                self.points.statements.append((self._lines.line(node.start), point))
                reached = self._probe(node.start, point)
                # Before a pipeline runs, only the `let`s of its file do (02 §10.2).
                found.append(_ignored(reached) if top and isinstance(node, ast.Let) else reached)
            match node:
                case ast.For() | ast.While():
                    found += self._loop(node)
                case ast.Guard():
                    found += self._guard(node)
                case _:
                    found.append(self.node(node))
        return tuple(found)

    def node(self, node: ast.Node) -> ast.Node:
        """The node with probes in its blocks."""
        match node:
            case ast.Block():
                return self._block(node)
            case ast.If():
                return self._if(node, self._decision())
            case ast.Match():
                decision = self._decision()
                arms = tuple(self._arm(arm, decision, i) for i, arm in enumerate(node.arms, 1))
                return ast.Match(node.start, node.end, self.node(node.value), arms)
            case ast.Pipeline() if self._left_out(node):
                return node
            case ast.EvalPack():
                return self._rebuilt(node, body=self.statements(node.body))
            case ast.Pipeline(name=name) | ast.FnDecl(name=name) | ast.ToolDecl(name=name):
                return self._rebuilt(node, body=self._block(node.body, self._function(node, name)))
        return self._rebuilt(node)

    def _rebuilt(self, node: ast.Node, **given: Any) -> ast.Node:
        """The node made of its parts with probes, those ``given`` ready; itself if nothing changed."""
        before = [getattr(node, name) for name in node.__slots__]
        after = [
            given[name] if name in given else self._part(value)
            for name, value in zip(node.__slots__, before, strict=True)
        ]
        same = all(one is other for one, other in zip(before, after, strict=True))
        return node if same else type(node)(node.start, node.end, *after)

    def _part(self, value: Any) -> Any:
        if isinstance(value, ast.Node):
            return self.node(value)
        if isinstance(value, tuple):
            parts = tuple(self._part(item) for item in value)
            return value if all(one is other for one, other in zip(value, parts, strict=True)) else parts
        return value

    def _block(self, block: ast.Block, *first: ast.Node) -> ast.Block:
        return ast.Block(block.start, block.end, (*first, *self.statements(block.statements)))

    def _if(self, node: ast.If, decision: int, word: str = "if") -> ast.If:
        cond = self.node(node.cond)
        then = self._block(node.then, self._branch(node.then, decision, word))
        other: ast.Node
        match node.otherwise:
            case ast.If():
                other = self._if(node.otherwise, decision, "else if")
            case ast.Block():
                other = self._block(node.otherwise, self._branch(node.otherwise, decision, "else"))
            case _:
                other = ast.Block(node.start, node.start, (self._branch(node, decision, "no else"),))
        return ast.If(node.start, node.end, cond, then, other)

    def _arm(self, arm: ast.Arm, decision: int, number: int) -> ast.Arm:
        guard = arm.guard and self.node(arm.guard)
        body = self._block(arm.body, self._branch(arm, decision, f"arm {number}"))
        return ast.Arm(arm.start, arm.end, arm.patterns, guard, body)

    def _loop(self, node: ast.For | ast.While) -> list[ast.Node]:
        """A loop, with a variable around it that tells whether it was entered."""
        decision, start = self._decision(), node.start
        # Not ASCII, so that no program can have it.
        entered = ast.Name(start, start, f"entered·{decision}")
        note = ast.Assign(start, start, entered, "=", ast.Bool(start, start, True))
        first = self._branch(node, decision, "entered")
        body = self._block(node.body, first, note)
        if isinstance(node, ast.For):
            loop: ast.Node = ast.For(start, node.end, node.pattern, self.node(node.iterable), body)
        else:
            loop = ast.While(start, node.end, self.node(node.cond), body)
        never = self._branch(node, decision, "not entered")
        pattern = ast.NamePattern(start, start, entered.name)
        return [
            ast.Let(start, start, pattern, None, ast.Bool(start, start, False), True),
            loop,
            ast.If(
                start,
                start,
                entered,
                ast.Block(start, start, ()),
                ast.Block(start, start, (never,)),
            ),
        ]

    def _guard(self, node: ast.Guard) -> list[ast.Node]:
        decision = self._decision()
        failed = self._branch(node.otherwise, decision, "else")
        guard = ast.Guard(node.start, node.end, self.node(node.cond), self._block(node.otherwise, failed))
        return [guard, self._branch(node, decision, "holds")]


def _ignored(value: ast.Node) -> ast.Let:
    """``let _ = value``."""
    return ast.Let(
        value.start, value.start, ast.NamePattern(value.start, value.start, "_"), None, value, False
    )


# Which parts of a project's Harn files its tests run: counting, and the counts of several runs together.


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


# Coverage for the terminal: for each file how much ran, and what did not.


def coverage_lines(files: Sequence[FileCoverage]) -> RenderableType:
    """Show a row for each file, and one for all of them."""
    rows = [_row(file.path, [file], missing(file)) for file in files]
    if len(files) > 1:
        rows.append(_row("total", files, ""))
    columns = ["lines", "", "branches", " ", "file", "missing"]
    return table(columns, rows, numbers=columns[:4])


def _row(name: str, files: Sequence[FileCoverage], missing: str) -> list[Text]:
    return [*_share(*lines_of(files)), *_share(*branches_of(files)), cell(name), cell(missing, style="dim")]


def _share(ran: int, all: int) -> list[Text]:
    if not all:
        return [Text("–", "dim"), Text()]
    style = "green" if ran == all else "yellow" if ran else "red"
    return [Text(percent(ran, all), style), Text(f"{ran}/{all}", "dim")]


def lines_of(files: Iterable[FileCoverage]) -> tuple[int, int]:
    """Return how many lines ran, and of how many."""
    counts = [count for file in files for count in file.lines().values()]
    return sum(map(bool, counts)), len(counts)


def branches_of(files: Iterable[FileCoverage]) -> tuple[int, int]:
    counts = [count for file in files for _, count in file.branches()]
    return sum(map(bool, counts)), len(counts)


def percent(ran: int, all: int) -> str:
    """The share in whole percents; 100% only if all of it ran, 0% only if nothing did."""
    if ran in (0, all):
        return "0%" if ran < all else "100%"
    return f"{min(max(round(100 * ran / all), 1), 99)}%"


def missing(file: FileCoverage) -> str:
    """Return what didn't run: ``12, 20-22; 14: no else``."""
    lines = list(file.lines())
    gaps = [line for line in lines if line in set(file.missing())]
    # A run of missing lines may skip lines on which no statement begins.
    runs = groupby(gaps, key=lambda line: lines.index(line) - gaps.index(line))
    texts = [_range(list(run)) for _, run in runs]
    branches = [f"{branch.line}: {branch.outcome}" for branch in file.missing_branches()]
    return "; ".join(filter(None, [", ".join(texts), ", ".join(branches)]))


def _range(lines: Sequence[int]) -> str:
    return str(lines[0]) if len(lines) == 1 else f"{lines[0]}-{lines[-1]}"


# Coverage as an HTML page: the files, and their text with what ran. It loads nothing and runs nothing.


_STYLE = """
body { max-width: 80rem; }
ol.source {
  list-style: none; font: .82rem/1.5 var(--mono); border: 1px solid var(--line); border-radius: 6px;
}
ol.source li { display: flex; gap: .8rem; padding-right: .8rem; border-left: 4px solid transparent; }
ol.source .at, ol.source .count { flex: none; width: 3.5rem; text-align: right; color: var(--soft); }
ol.source pre { flex: 1; padding: 0; background: none; max-height: none; overflow: visible; font-size: 1em; }
ol.source .branches { color: var(--waiting); white-space: nowrap; }
li.ran { border-left-color: var(--good) !important; }
li.missed { border-left-color: var(--bad) !important; background: var(--bad-wash); }
li.partly { border-left-color: var(--waiting) !important; background: var(--waiting-wash); }
"""


def coverage_page(files: Sequence[FileCoverage]) -> str:
    ran, all_lines = lines_of(files)
    came, all_branches = branches_of(files)
    facts = markup.facts(
        [
            ("Lines", f"{percent(ran, all_lines)} ({ran} of {all_lines})"),
            ("Branches", f"{percent(came, all_branches)} ({came} of {all_branches})"),
        ]
    )
    header = [element("div", element("h1", "Coverage"), class_="title"), facts]
    sections = [("Files", _overview(files)), *(("", _file(i, file)) for i, file in enumerate(files))]
    return page("Coverage", "Tests", header, sections, foot="Made by harnpy.", more_style=_STYLE)


def _overview(files: Sequence[FileCoverage]) -> Markup:
    rows = []
    for i, file in enumerate(files):
        lines, branches = lines_of([file]), branches_of([file])
        rows.append(
            [
                percent(*lines),
                f"{lines[0]}/{lines[1]}",
                percent(*branches),
                f"{branches[0]}/{branches[1]}",
                element("a", file.path, href=f"#file-{i}"),
            ]
        )
    heads = ["Lines", "Ran", "Branches", "Came", "File"]
    return markup.section("Files", markup.table(heads, rows, numbers=heads[:4]), id="files")


def _file(number: int, file: FileCoverage) -> Markup:
    counts = file.lines()
    gaps: dict[int, list[str]] = {}
    for branch in file.missing_branches():
        gaps.setdefault(branch.line, []).append(branch.outcome)
    shown = [
        _line(at, text, counts.get(at), gaps.get(at, []))
        for at, text in enumerate(file.source.removesuffix("\n").split("\n"), 1)
    ]
    return markup.section(file.path, element("ol", shown, class_="source"), id=f"file-{number}")


def _line(at: int, text: str, count: int | None, gaps: list[str]) -> Markup:
    kind = None if count is None else "missed" if not count else "ran"
    if gaps and kind != "missed":
        kind = "partly"
    return element(
        "li",
        element("span", str(at), class_="at"),
        element("span", "" if count is None else f"{count}×", class_="count"),
        element("pre", text),
        element("span", f"never: {', '.join(gaps)}", class_="branches") if gaps else None,
        class_=kind,
    )


# Coverage in LCOV's format, which editors and services read.


def lcov(files: Iterable[FileCoverage]) -> str:
    return "".join(f"{line}\n" for file in files for line in _record(file))


def _record(file: FileCoverage) -> Iterator[str]:
    yield "TN:"
    yield f"SF:{file.path}"
    functions = file.functions()
    yield from (f"FN:{line},{name}" for line, name, _ in functions)
    yield from (f"FNDA:{count},{name}" for _, name, count in functions)
    yield from _sums("FN", [count for _, _, count in functions])
    branches = file.branches()
    made = {branch.decision for branch, count in branches if count}
    for branch, count in branches:
        taken = count if branch.decision in made else "-"
        yield f"BRDA:{branch.line},{branch.decision},{branch.outcome.replace(',', ' ')},{taken}"
    yield from _sums("BR", [count for _, count in branches])
    lines = file.lines()
    yield from (f"DA:{line},{count}" for line, count in lines.items())
    yield from _sums("L", list(lines.values()))
    yield "end_of_record"


def _sums(kind: str, counts: list[int]) -> Iterator[str]:
    yield f"{kind}F:{len(counts)}"
    yield f"{kind}H:{sum(map(bool, counts))}"


# The reports of `harnpy test --coverage`: a table, and files where they are asked for. Spec: 09 §3.5.


def write_reports(measured: Iterable[FileCoverage], lcov_file: Path | None, page: Path | None) -> None:
    """Print the table and write the files. Raises OSError."""
    files = together(measured)
    say()
    if files:
        show(coverage_lines(files))
    else:
        say("coverage: no Harn code below this directory ran")
    if lcov_file is not None:
        _write(lcov_file, lcov(files))
    if page is not None:
        _write(page / "index.html" if page.is_dir() else page, coverage_page(files))


def _write(path: Path, text: str) -> None:
    World().files.replace_text(str(path), text)
    say(f"report: {path}")
