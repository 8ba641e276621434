"""A program as a flowchart, read off its syntax tree: nothing is run. Spec: 09 §6.4.

Each kind of statement takes the loose ends of the statements before it and returns its own: the boxes, with
the labels of their arrows, from which the next statement is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from harnpy.syntax import ast
from harnpy.syntax.ast import Block, Node
from harnpy.workflow.viz.chart import Chart

_LONGEST = 60

Ends = list[tuple[int, str | None]]


def program_chart(program: ast.Program, source: str) -> Chart:
    """The flowchart of a program with this text."""
    flow = _Flow(source)
    root = flow.chart.add("module")
    for item in program.items:
        flow.statement(item, [(root, None)])
    return flow.chart


class _Loop:
    """The loop that `break` and `continue` are for."""

    def __init__(self, head: int) -> None:
        self.head = head
        self.left: Ends = []


class _Flow:
    """``leaving`` are the loose ends that go to the end of the function, ``loops`` those being drawn."""

    def __init__(self, source: str) -> None:
        self.chart = Chart()
        self._source = source
        self._leaving: Ends = []
        self._loops: list[_Loop] = []

    def statement(self, node: Node, ends: Ends) -> Ends:
        draw: Callable[[Any, Ends], Ends] | None = getattr(self, f"visit_{type(node).__name__}", None)
        return [(self._box(self._short(node), ends), None)] if draw is None else draw(node, ends)

    # Boxes, sequences, and pairs of a beginning and an end.

    def _box(self, label: str, ends: Iterable[tuple[int, str | None]]) -> int:
        box = self.chart.add(label)
        for place, name in ends:
            self.chart.link(place, box, name)
        return box

    def _sequence(self, statements: Iterable[Node], ends: Ends) -> Ends:
        for node in statements:
            ends = self.statement(node, ends)
        return ends

    def _pair(self, label: str, body: Block, ends: Ends) -> Ends:
        ends = self._sequence(body.statements, [(self._box(label, ends), None)])
        return [(self._box(f"end {label}", ends), None)]

    def _function(self, label: str, body: Block, ends: Ends) -> Ends:
        outer, self._leaving, loops, self._loops = self._leaving, [], self._loops, []
        ends = self._sequence(body.statements, [(self._box(label, ends), None)])
        end = self._box(f"end {label}", [*ends, *self._leaving])
        self._leaving, self._loops = outer, loops
        return [(end, None)]

    def _short(self, *nodes: Node | None) -> str:
        """The source of a node, or from the first to the last of several, as one short line."""
        given = [node for node in nodes if node is not None]
        text = " ".join(self._source[given[0].start : given[-1].end].split())
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"

    def _together(self, label: str, ends: Ends) -> Ends:
        """One box where branches meet again, unless no branch reaches it."""
        return [(self._box(label, ends), None)] if ends else []

    # Declarations.

    def visit_Pipeline(self, node: ast.Pipeline, ends: Ends) -> Ends:
        return self._function(f"pipeline {node.name}", node.body, ends)

    def visit_FnDecl(self, node: ast.FnDecl, ends: Ends) -> Ends:
        return self._function(f"fn {node.name}", node.body, ends)

    def visit_ToolDecl(self, node: ast.ToolDecl, ends: Ends) -> Ends:
        return self._function(f"tool {node.name}", node.body, ends)

    # Blocks.

    def visit_Spawn(self, node: ast.Spawn, ends: Ends) -> Ends:
        return self._function("spawn", node.body, ends)

    def visit_Mutex(self, node: ast.Mutex, ends: Ends) -> Ends:
        return self._pair("mutex", node.body, ends)

    def visit_Defer(self, node: ast.Defer, ends: Ends) -> Ends:
        return self._pair("defer", node.body, ends)

    def visit_Deadline(self, node: ast.Deadline, ends: Ends) -> Ends:
        return self._pair(f"deadline {self._short(node.duration)}", node.body, ends)

    def visit_Block(self, node: Block, ends: Ends) -> Ends:
        return self._pair("block", node, ends)

    # Branches.

    def visit_If(self, node: ast.If, ends: Ends) -> Ends:
        head = self._box(f"if {self._short(node.cond)}", ends)
        ends = self._sequence(node.then.statements, [(self._box("then", [(head, "yes")]), None)])
        if node.otherwise is None:
            other: Ends = [(head, "no")]
        else:
            other = [(self._box("else", [(head, "no")]), None)]
            inner = node.otherwise
            other = self._sequence(inner.statements if isinstance(inner, Block) else [inner], other)
        return self._together("join", ends + other)

    def visit_Match(self, node: ast.Match, ends: Ends) -> Ends:
        head = self._box(f"match {self._short(node.value)}", ends)
        ended: Ends = []
        for arm in node.arms:
            guard = "" if arm.guard is None else f" if {self._short(arm.guard)}"
            patterns = self._short(arm.patterns[0], arm.patterns[-1])
            case = self._box(f"{patterns}{guard}", [(head, "arm")])
            ended += self._sequence(arm.body.statements, [(case, None)])
        return self._together("join", ended if node.arms else [(head, None)])

    def visit_Try(self, node: ast.Try, ends: Ends) -> Ends:
        if node.catch is None and node.finally_ is None:
            return self._pair("try expr", node.body, ends)
        head = self._box("try", ends)
        ends = self._sequence(node.body.statements, [(head, "ok")])
        if node.catch is not None:
            name = "" if node.catch.name is None else f" {node.catch.name}"
            catch = self._box(f"catch{name}", [(head, "error")])
            ends = ends + self._sequence(node.catch.body.statements, [(catch, None)])
        if node.finally_ is not None:
            begun = self._box("finally", [(place, label or "finally") for place, label in ends])
            ends = self._sequence(node.finally_.statements, [(begun, None)])
        return self._together("end try", ends)

    def visit_Select(self, node: ast.Select, ends: Ends) -> Ends:
        head = self._box("select", ends)
        ended: Ends = []
        for case in node.cases:
            begin = f"{case.name} from" if case.kind == "receive" else case.kind
            label = begin if case.source is None else f"{begin} {self._short(case.source)}"
            ended += self._sequence(case.body.statements, [(self._box(label, [(head, "case")]), None)])
        return self._together("end select", ended)

    # Loops.

    def visit_For(self, node: ast.For, ends: Ends) -> Ends:
        label = f"for {self._short(node.pattern)} in {self._short(node.iterable)}"
        return self._loop(label, ("each", "done"), node.body, ends)

    def visit_While(self, node: ast.While, ends: Ends) -> Ends:
        return self._loop(f"while {self._short(node.cond)}", ("true", "false"), node.body, ends)

    def _loop(self, label: str, names: tuple[str, str], body: Block, ends: Ends) -> Ends:
        inside, outside = names
        head = self._box(label, ends)
        self._loops.append(_Loop(head))
        ended = self._sequence(body.statements, [(self._box("body", [(head, inside)]), None)])
        for place, name in ended:
            self.chart.link(place, head, name)
        return [(self._box("after loop", [(head, outside), *self._loops.pop().left]), None)]

    def visit_Retry(self, node: ast.Retry, ends: Ends) -> Ends:
        head = self._box(f"retry {self._short(node.count)}", ends)
        ended = self._sequence(node.body.statements, [(head, "run")])
        tail = self._box("end retry", [(place, name or "done") for place, name in ended])
        self.chart.link(tail, head, "retry")
        return [(tail, None)]

    def visit_Parallel(self, node: ast.Parallel, ends: Ends) -> Ends:
        kind = f"{node.kind} stream" if node.stream else node.kind
        variable = "" if node.param is None else f" -> {node.param}"
        head = self._box(f"parallel {kind} {self._short(node.source)}{variable}", ends)
        ended = self._sequence(node.body.statements, [(head, "fan out")])
        return [(self._box("parallel join", ended), None)]

    # Leaving.

    def visit_Return(self, node: ast.Return, ends: Ends) -> Ends:
        self._leaving.append((self._box(self._short(node), ends), None))
        return []

    def visit_Throw(self, node: ast.Throw, ends: Ends) -> Ends:
        self._leaving.append((self._box(self._short(node), ends), "error"))
        return []

    def visit_Break(self, node: ast.Break, ends: Ends) -> Ends:
        place = self._box("break", ends)
        (self._loops[-1].left if self._loops else self._leaving).append((place, None))
        return []

    def visit_Continue(self, node: ast.Continue, ends: Ends) -> Ends:
        place = self._box("continue", ends)
        if self._loops:
            self.chart.link(place, self._loops[-1].head)
        return []
