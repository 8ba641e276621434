"""What a notebook shows of a value: text, and a table or a picture where that says more. Spec: 12 §5.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.cli.value_views import alike, shown
from harnpy.faults import Fault
from harnpy.formats import markup
from harnpy.formats.markup import plural
from harnpy.vm.values import display

if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.workflow.chart import Chart

#: How wide a page is, in characters, and the most rows of a table.
_WIDTH, _ROWS = 100, 200
#: The most lines of a text, and of one that nobody sees who sees the table or picture beside it.
_LINES, _BESIDE = 200, 12


def shown_richly(value: Value, name: str) -> dict[str, str]:
    """Return what shows a value that has a name, by media types."""
    try:
        html = _html(value)
    except Fault:
        html = None  # a dict of the program's own, which looks like one of ours
    lines = shown(value, _WIDTH)
    most = _LINES if html is None else _BESIDE
    if len(lines) > most + 1:
        lines = [*lines[:most], f"… {len(lines) - most} more lines (:raw {name} shows all)"]
    bundle = {"text/plain": "\n".join(lines)}
    return bundle if html is None else {**bundle, "text/html": html}


def _html(value: Any) -> str | None:
    if type(value) is list and alike(value):
        return _table(value)
    if type(value) is not dict:
        return None
    if isinstance(value.get("run"), dict) and value["run"].get("_type") == "run_record":
        return _run(value["run"])
    match value.get("_type"):
        case "run_record":
            return _run(value)
        case "workflow_graph":
            return _graph(value)
        case "transcript":
            return _transcript(value)
    inner = value.get("transcript")
    if isinstance(inner, dict) and inner.get("_type") == "transcript":
        return _transcript(inner)
    return None


def _table(items: list[Dict]) -> str:
    names = list(items[0])
    rows = [[_cell(item[name]) for name in names] for item in items[:_ROWS]]
    if len(items) > _ROWS:
        rows.append([f"… {len(items) - _ROWS} more", *("" for _ in names[1:])])
    return markup.cell(plural(len(items), "row"), [], names, rows).html


def _cell(value: Value) -> str:
    return "" if value is None else value if type(value) is str else "".join(shown(value))


def _transcript(transcript: Dict) -> str:
    from harnpy.session.cells import cell_of

    return cell_of(transcript).html


def _graph(graph: Dict) -> str:
    from harnpy.workflow.graph import normalise_graph
    from harnpy.workflow.graph_charts import graph_chart
    from harnpy.world import World

    return _picture(graph_chart(normalise_graph(graph, World())), display(graph.get("name") or "workflow"))


def _run(record: Dict) -> str:
    from harnpy.workflow.graph_charts import run_chart
    from harnpy.workflow.report import cell_of_run

    return cell_of_run(record).html + _picture(run_chart(record), "run")


def _picture(chart: Chart, title: str) -> str:
    """Return an image: its styles and ids are its own, also beside another."""
    from base64 import b64encode

    from harnpy.workflow.chart_svg import svg

    data = b64encode(svg(chart, title).encode()).decode()
    source = f"data:image/svg+xml;base64,{data}"
    return str(markup.element("img", src=source, alt=title, style="max-width: 100%; margin-top: 4px"))
