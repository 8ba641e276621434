"""`harnpy viz`: programs, workflow graphs and runs as pictures. Spec: 09 §6.4.

Nothing is run: graphs and flowcharts are read off the syntax tree. Graphs are mostly written as dicts, and a
picture needs their nodes and edges only: computed prompts are left out, computed nodes or edges can't be
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from harnpy.cli.console import complain
from harnpy.cli.run_records import file_of
from harnpy.faults import MisuseError
from harnpy.formats.dicts import Dict, errors_after
from harnpy.formats.json import JsonError
from harnpy.syntax import ast
from harnpy.syntax.ast import Block, Node
from harnpy.syntax.diagnostic import SourceFault
from harnpy.syntax.parser import parse
from harnpy.workflow.chart import Chart, mermaid
from harnpy.workflow.chart_svg import svg
from harnpy.workflow.graph import normalise_graph
from harnpy.workflow.graph_charts import graph_chart, run_chart
from harnpy.workflow.records.record_lines import parsed, unfolded
from harnpy.world import World

_MAKERS = ("workflow_graph", "workflow")
_COMPUTED: Any = object()


class GraphLiteral(NamedTuple):
    """``names`` are what people may call it, the best one first; ``graph`` as `workflow_graph` takes it, None
    where its nodes or edges are computed, so that only a run of the program knows them."""

    names: tuple[str, ...]
    graph: Dict | None


def graphs_in(program: ast.Program) -> list[GraphLiteral]:
    """The arguments of all calls of `workflow_graph`, in the order of the text."""
    reader = _Reader(program)
    return [reader.graph(call, variable) for call, variable in _calls(program)]


def _calls(node: Node, variable: str | None = None) -> Iterator[tuple[ast.Call, str | None]]:
    if isinstance(node, ast.Call) and node.name in _MAKERS and len(node.args) == 1:
        yield node, variable
    value, name = None, None
    if isinstance(node, ast.Let) and isinstance(node.target, ast.NamePattern):
        value, name = node.value, node.target.name
    for child in node.children():
        yield from _calls(child, name if child is value else None)


class _Reader:
    """Knows the values of a program's names that are bound exactly once."""

    def __init__(self, program: ast.Program) -> None:
        self._bound: dict[str, Node | None] = {}
        self._bind(program)

    def _bind(self, node: Node) -> None:
        if isinstance(node, ast.Let) and isinstance(node.target, ast.NamePattern):
            name = node.target.name
            known = name in self._bound or node.mutable
            self._bound[name] = None if known else node.value
        for child in node.children():
            self._bind(child)

    def graph(self, call: ast.Call, variable: str | None) -> GraphLiteral:
        """The graph that a call makes."""
        given = self._value(call.args[0])
        if not isinstance(given, dict):
            return GraphLiteral(_names(variable), None)
        names = _names(given.get("name"), variable, given.get("id"))
        if any(given.get(key) is _COMPUTED for key in ("nodes", "edges", "entry")):
            return GraphLiteral(names, None)
        graph = _known(given)
        if isinstance(given.get("nodes"), dict):
            graph["nodes"] = {id: _known_dict(node) for id, node in given["nodes"].items()}
        return GraphLiteral(names, graph)

    def _value(self, node: Node) -> Any:
        """The value of an expression, or `_COMPUTED`."""
        if isinstance(node, ast.Str | ast.Int | ast.Float | ast.Bool):
            return node.value
        if isinstance(node, ast.Nil):
            return None
        if isinstance(node, ast.List):
            items = [self._value(item) for item in node.items]
            return _COMPUTED if any(item is _COMPUTED for item in items) else items
        if isinstance(node, ast.Dict):
            return self._dict(node)
        if isinstance(node, ast.Call) and node.name in _MAKERS and len(node.args) == 1:
            return self._value(node.args[0])
        if isinstance(node, ast.Name):
            value = self._bound.get(node.name)
            if value is not None:
                self._bound[node.name] = None  # bound to itself: it has no value
                read = self._value(value)
                self._bound[node.name] = value
                return read
        return _COMPUTED

    def _dict(self, node: ast.Dict) -> Any:
        read: Dict = {}
        for entry in node.entries:
            if isinstance(entry, ast.Spread):
                inner = self._value(entry.value)
                if not isinstance(inner, dict):
                    return _COMPUTED
                read |= inner
            elif isinstance(entry, ast.DictEntry):
                key = self._value(entry.key)
                if not isinstance(key, str):
                    return _COMPUTED
                read[key] = self._value(entry.value)
        return read


def _names(*given: Any) -> tuple[str, ...]:
    return tuple(name for name in given if isinstance(name, str) and name)


def _known(given: Dict) -> Dict:
    """The value without its computed parts, at any depth."""
    return {
        key: _known(value) if isinstance(value, dict) else value
        for key, value in given.items()
        if value is not _COMPUTED
    }


def _known_dict(given: Any) -> Any:
    """A node, of which perhaps only its existence is known."""
    if given is _COMPUTED:
        return {}
    return _known(given) if isinstance(given, dict) else given


# A program as a flowchart, read off its syntax tree: nothing is run. Spec: 09 §6.4.
#
# Each kind of statement takes the loose ends of the statements before it and returns its own: the boxes, with
# the labels of their arrows, from which the next statement is reached.


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


_GRAPH_KEYS = ("nodes", "act", "verify", "repair")


@click.command("viz", short_help="Draw a program, a workflow graph or a run.")
@click.argument("file", metavar="FILE|RUN")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="OUT", help="Write a file.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["mermaid", "svg"]),
    help="The output format; svg if OUT ends in .svg, otherwise mermaid.",
)
@click.option("--workflow", is_flag=True, help="Draw the workflow graph in a program.")
@click.option("--graph", metavar="NAME", help="The same, for the graph with this name.")
def command(file: str, output: Path | None, style: str | None, workflow: bool, graph: str | None) -> None:
    """Draw FILE: a program as a flowchart, or, from a .json file, a workflow graph or a run record.

    A run may also be given by its id.

    Programs are read, never run. With --workflow, draw the graph that a program passes to `workflow_graph`.
    To draw a computed graph, save it as JSON.
    """
    try:
        chart = _chart(Path(file_of(file)), workflow or graph is not None, graph)
    except (OSError, ValueError, SourceFault, MisuseError) as error:
        raise click.ClickException(f"failed to visualize {file}: {_reason(error)}") from None
    if style is None:
        style = "svg" if output is not None and output.suffix == ".svg" else "mermaid"
    text = mermaid(chart) if style == "mermaid" else svg(chart, Path(file).name)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8", newline="")


def _chart(file: Path, workflow: bool, name: str | None) -> Chart:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        with errors_after("run_record parse error at "):
            data = unfolded(parsed(text))
        return _data_chart(data)
    program = parse(text, file=str(file))
    if not workflow:
        return program_chart(program, text)
    return graph_chart(normalise_graph(_chosen(graphs_in(program), name), World()))


def _data_chart(data: Any) -> Chart:
    """The chart of a graph or a run, whichever it is."""
    if isinstance(data, dict):
        if data.get("_type") == "run_record" or "stages" in data:
            return run_chart(data)
        if data.get("_type") == "workflow_graph" or any(key in data for key in _GRAPH_KEYS):
            return graph_chart(normalise_graph(data, World()))
    raise ValueError("neither a workflow graph nor a run record")


def _chosen(found: Sequence[GraphLiteral], name: str | None) -> Any:
    """The graph of that name, or the only one that is spelled out. Raises ValueError."""
    if not found:
        raise ValueError("the program makes no workflow graph")
    if name is not None:
        found = [graph for graph in found if name in graph.names]
        if not found:
            raise ValueError(f"the program makes no workflow graph named {name}")
    spelled_out = [graph for graph in found if graph.graph is not None]
    if not spelled_out:
        raise ValueError("the graph's nodes or edges are computed: save it as JSON and draw that")
    if len(spelled_out) > 1:
        raise ValueError(
            f"there are {len(spelled_out)} workflow graphs: choose with --graph NAME: {_listed(spelled_out)}"
        )
    computed = [graph for graph in found if graph.graph is None]
    if computed:
        complain(f"note: not drawn, as their nodes or edges are computed: {_listed(computed)}")
    return spelled_out[0].graph


def _listed(graphs: Sequence[GraphLiteral]) -> str:
    return ", ".join(graph.names[0] if graph.names else "(no name)" for graph in graphs)


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8 text"
    if isinstance(error, JsonError):
        return f"not JSON: {error}"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return error.message if isinstance(error, MisuseError | SourceFault) else str(error)
