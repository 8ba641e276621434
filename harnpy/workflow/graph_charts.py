"""Charts of workflows: the nodes and branches of a graph, or the path of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats.dicts import as_dicts, as_text
from harnpy.workflow.chart import Chart, Shape, Tone
from harnpy.workflow.graph import STAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.formats.dicts import Dict

_LONGEST = 44

_SHAPES = {
    "verify": Shape.HEXAGON,
    "condition": Shape.DIAMOND,
    "fork": Shape.WIDENING,
    "join": Shape.NARROWING,
    "map": Shape.DOUBLE,
    "reduce": Shape.DRUM,
    "escalation": Shape.FLAG,
    "subagent": Shape.ROUND,
}


def graph_chart(graph: Mapping[str, Any]) -> Chart:
    """Return the chart of a normalised graph. An undefined node that an edge names is shown as missing."""
    nodes = graph["nodes"]
    named = [graph["entry"], *(edge[end] for edge in graph["edges"] for end in ("from", "to"))]
    chart = Chart()
    start = chart.add(shape=Shape.START)
    places = {id: _add_node(chart, id, node["kind"], node["task_label"]) for id, node in nodes.items()}
    for id in dict.fromkeys(named):
        if id not in places:
            places[id] = chart.add(shortened(id), "no such node", tone=Tone.MISSING)
    chart.link(start, places[graph["entry"]])
    for edge in graph["edges"]:
        label = " · ".join(dict.fromkeys(filter(None, (edge["branch"], edge["label"]))))
        chart.link(places[edge["from"]], places[edge["to"]], shortened(label) or None)
    return chart


def run_chart(run: Mapping[str, Any]) -> Chart:
    """Return the chart of a run record, as far as it goes: visited nodes, how often, and what is pending."""
    chart = Chart()
    start = chart.add(shape=Shape.START)
    visits: dict[str, list[Dict]] = {}
    for stage in as_dicts(run.get("stages")):
        visits.setdefault(_text(stage, "node_id"), []).append(stage)
    places = {id: _add_visited(chart, id, stages) for id, stages in visits.items()}
    if places:
        chart.link(start, next(iter(places.values())))
    pending = run.get("pending_nodes")
    for id in pending if isinstance(pending, list) else ():
        if isinstance(id, str) and id not in places:
            places[id] = chart.add(shortened(id), "pending", tone=Tone.WAITING)
    for transition in as_dicts(run.get("transitions")):
        source, target = _text(transition, "from_node_id"), _text(transition, "to_node_id")
        if target not in places:
            places[target] = chart.add(shortened(target), "not reached", tone=Tone.WAITING)
        if source in places:
            chart.link(places[source], places[target], shortened(_text(transition, "branch")) or None)
    return chart


def _add_visited(chart: Chart, id: str, stages: list[Dict]) -> int:
    last = stages[-1]
    kind, status = _text(last, "kind") or STAGE, _text(last, "status")
    times = f" ×{len(stages)}" if len(stages) > 1 else ""
    said = f"{kind}: {_text(last, 'outcome') or status or 'visited'}{times}"
    return _add(chart, id, kind, said, Tone.BAD if status == "failed" else Tone.GOOD)


def _text(owner: Mapping[str, Any], key: str) -> str:
    return as_text(owner.get(key)) or ""


def shortened(text: str) -> str:
    """Return as much of a text as fits into a box, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "…"


def _add_node(chart: Chart, id: str, kind: str, task_label: str | None) -> int:
    said = kind if not (task_label or "").strip() else f"{kind}: {task_label}"
    return _add(chart, id, kind, said, Tone.PLAIN)


def _add(chart: Chart, id: str, kind: str, said: str, tone: Tone) -> int:
    name, more = shortened(id), shortened(said)
    label = (name,) if more == name else (name, more)
    return chart.add(*label, shape=_SHAPES.get(kind, Shape.BOX), tone=tone)
