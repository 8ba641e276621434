"""`harnpy viz`: programs, workflow graphs and runs as pictures. Spec: 09 §6.4."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from harnpy.cli.console import complain
from harnpy.cli.show.graph_literals import GraphLiteral, graphs_in
from harnpy.cli.show.program_chart import program_chart
from harnpy.faults import MisuseError
from harnpy.syntax.errors import SourceFault
from harnpy.syntax.parser import parse
from harnpy.text.json.reader import JsonError, parse_json
from harnpy.workflow.graph.normalise import normalise_graph
from harnpy.workflow.viz.chart import Chart
from harnpy.workflow.viz.mermaid import mermaid
from harnpy.workflow.viz.pictures import graph_chart, run_chart
from harnpy.workflow.viz.svg import svg
from harnpy.world import World

_GRAPH_KEYS = ("nodes", "act", "verify", "repair")


@click.command("viz", short_help="Draw a program, a workflow graph or a run.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="OUT", help="Write a file.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["mermaid", "svg"]),
    help="What to write; svg where OUT ends in .svg, else mermaid.",
)
@click.option("--workflow", is_flag=True, help="Draw the workflow graph that a program spells out.")
@click.option("--graph", metavar="NAME", help="The same, for the graph of that name.")
def command(file: Path, output: Path | None, style: str | None, workflow: bool, graph: str | None) -> None:
    """Draw FILE: a program as a flowchart, or, from a .json file, a workflow graph or a run record.

    Programs are read, never run. With --workflow the graph is drawn that a program passes to
    `workflow_graph`; a graph that a program computes can be saved as JSON and drawn from there.
    """
    try:
        chart = _chart(file, workflow or graph is not None, graph)
    except (OSError, ValueError, SourceFault, MisuseError) as error:
        raise click.ClickException(f"failed to visualize {file}: {_reason(error)}") from None
    if style is None:
        style = "svg" if output is not None and output.suffix == ".svg" else "mermaid"
    text = mermaid(chart) if style == "mermaid" else svg(chart, file.name)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8", newline="")


def _chart(file: Path, workflow: bool, name: str | None) -> Chart:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        return _data_chart(parse_json(text))
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
