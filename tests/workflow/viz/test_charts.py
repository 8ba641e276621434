"""Pictures of graphs and runs: whatever they show, they are whole (09 §6.4)."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.workflow.chart import Arrow, Chart, Shape, mermaid
from harnpy.workflow.chart_svg import Size, _label_width, _size, lay_out, svg
from harnpy.workflow.graph import normalise_graph
from harnpy.workflow.graph_charts import graph_chart, run_chart
from harnpy.world import World
from tests.counts import COUNT
from tests.workflow.graphs import GRAPHS

Dict = dict[str, Any]
SVG = "{http://www.w3.org/2000/svg}"

#: A line of our Mermaid text: no label gets out of its quotes.
LINE = re.compile(
    r'flowchart TD|    n\d+[\[({>\\/]+"[^"<>]*(<br/>[^"<>]*)*"[\])}\\/]+'
    r'|    n\d+ (--> n\d+|-- ([A-Za-z_ ]+|"[^"<>]*") --> n\d+)'
    r"|    classDef \w+ [^ ]+( \d)?|    class [n\d,]+ \w+"
)
EDGE = re.compile(r"    n\d+ --")


def chart_of(**graph: Any) -> Chart:
    return graph_chart(normalise_graph(graph, World()))


@given(GRAPHS)
def test_any_graph_is_drawn(graph: Dict) -> None:
    normal = normalise_graph(graph, World())
    chart = graph_chart(normal)
    lines = mermaid(chart).splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    assert sum(bool(EDGE.match(line)) for line in lines) == len(normal["edges"]) + 1
    picture = ElementTree.fromstring(svg(chart, "x"))
    names = [text for text in picture.iter(f"{SVG}text") if text.get("class") == "name"]
    assert len(names) == len(chart.boxes) - 1
    svg(chart, "x").encode()


_KEYS = [
    *("stages", "node_id", "kind", "status", "transitions", "to_node_id", "from_node_id", "pending_nodes"),
    "branch",
]
RECORDS = st.recursive(
    st.none() | st.booleans() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4),
)


@given(RECORDS)
def test_any_record_is_drawn(record: Any) -> None:
    chart = run_chart(record if isinstance(record, dict) else {"stages": record, "transitions": record})
    assert mermaid(chart).startswith("flowchart TD\n")
    ElementTree.fromstring(svg(chart, "x"))


@given(
    st.integers(1, 9).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=20),
        )
    )
)
def test_boxes_keep_apart_and_inside(shape: tuple[int, list[tuple[int, int]]]) -> None:
    count, pairs = shape
    sizes = [Size(60.0 + 10 * place, 40.0, 30.0) for place in range(count)]
    layout = lay_out(sizes, [Arrow(*pair, "label") for pair in pairs], len)
    corners = [
        (x - size.width / 2, y - size.height / 2, x + size.width / 2, y + size.height / 2)
        for (x, y), size in zip(layout.centres, sizes, strict=True)
    ]
    for at, (left, top, right, bottom) in enumerate(corners):
        assert left > -0.01
        assert top > -0.01
        assert right < layout.width + 0.01
        assert bottom < layout.height + 0.01
        for l2, t2, r2, b2 in corners[:at]:
            assert right <= l2 or r2 <= left or bottom <= t2 or b2 <= top
    assert len(layout.routes) == len(set(pairs))


def test_arrows_go_down_unless_they_close_a_loop() -> None:
    chart = chart_of(act={}, verify={}, repair={})
    sizes = [Size(60.0, 40.0, 30.0)] * len(chart.boxes)
    routes = lay_out(sizes, chart.arrows, len).routes
    assert [(route.back, route.label) for route in routes] == [
        (False, None), (False, None), (False, "failed"), (True, "retry"),
    ]  # fmt: skip
    for route in routes:
        downward = route.points[-1][1] > route.points[0][1]
        assert downward is not route.back


def test_each_kind_has_its_shape() -> None:
    kinds = ["stage", "verify", "condition", "fork", "join", "map", "reduce", "escalation", "subagent"]
    chart = chart_of(nodes={f"n{at}": {"kind": kind} for at, kind in enumerate(kinds)})
    assert len({box.shape for box in chart.boxes}) == len(kinds) + 1
    assert chart.boxes[0].shape is Shape.START


def test_mermaid_of_a_graph() -> None:
    chart = chart_of(
        entry="plan",
        nodes={"plan": {"task_label": 'Say "hi" & <go>'}, "check": {"kind": "verify"}},
        edges=[
            {"from": "plan", "to": "check"},
            {"from": "check", "to": "plan", "branch": "failed", "label": "try again"},
            {"from": "check", "to": "gone", "branch": "passed"},
        ],
    )
    assert mermaid(chart) == (
        "flowchart TD\n"
        '    n0((" "))\n'
        '    n1{{"check<br/>verify"}}\n'
        '    n2["plan<br/>stage: Say #quot;hi#quot; #amp; #lt;go#gt;"]\n'
        '    n3["gone<br/>no such node"]\n'
        "    n0 --> n2\n"
        "    n2 --> n1\n"
        '    n1 -- "failed · try again" --> n2\n'
        "    n1 -- passed --> n3\n"
        "    classDef missing fill:#ffffff,stroke:#c62828,stroke-dasharray:4 3\n"
        "    class n3 missing\n"
    )


def test_mermaid_of_a_run() -> None:
    run = {
        "stages": [
            {"node_id": "act", "kind": "stage", "status": "completed", "outcome": "success"},
            {"node_id": "verify", "kind": "verify", "status": "failed", "outcome": "verification_failed"},
            {"node_id": "act", "kind": "stage", "status": "completed", "outcome": "success"},
        ],
        "transitions": [
            {"from_node_id": "act", "to_node_id": "verify"},
            {"from_node_id": "verify", "to_node_id": "act", "branch": "failed"},
            {"from_node_id": "act", "to_node_id": "ship", "branch": "success"},
        ],
        "pending_nodes": ["ship"],
    }
    assert mermaid(run_chart(run)) == (
        "flowchart TD\n"
        '    n0((" "))\n'
        '    n1["act<br/>stage: success ×2"]\n'
        '    n2{{"verify<br/>verify: verification_failed"}}\n'
        '    n3["ship<br/>pending"]\n'
        "    n0 --> n1\n"
        "    n1 --> n2\n"
        "    n2 -- failed --> n1\n"
        "    n1 -- success --> n3\n"
        "    classDef good fill:#e6f4ea,stroke:#2e7d32\n"
        "    class n1 good\n"
        "    classDef bad fill:#fdecea,stroke:#c62828\n"
        "    class n2 bad\n"
        "    classDef waiting fill:#fff8e1,stroke:#b26a00\n"
        "    class n3 waiting\n"
    )


@pytest.mark.parametrize("word", ["http:", "https:", "<image", "<script", "@import", "url("])
def test_a_picture_needs_nothing_else(word: str) -> None:
    text = svg(chart_of(act={}, verify={}, repair={}), "x").replace("http://www.w3.org/2000/svg", "")
    assert text.replace("url(#head)", "").count(word) == 0


def _cubic(points: list[tuple[float, float]], at: float) -> tuple[float, float]:
    """A point of a Bézier curve of whatever degree."""
    while len(points) > 1:
        points = [(ax + (bx - ax) * at, ay + (by - ay) * at) for (ax, ay), (bx, by) in pairwise(points)]
    return points[0]


def drawn_points(path: str) -> list[tuple[float, float]]:
    """Points along an SVG path of absolute M, L, Q and C."""
    found: list[tuple[float, float]] = []
    for _, numbers in re.findall(r"([MLQC])([^MLQC]*)", path):
        values = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", numbers)]
        corners = [*found[-1:], *zip(values[::2], values[1::2], strict=True)]
        found += [_cubic(corners, step / 24) for step in range(25)]
    return found


def boxes_crossed(chart: Chart) -> list[tuple[int, int, str]]:
    """The arrows that cross a box which is not one of their ends, as the picture has them."""
    sizes = [_size(box) for box in chart.boxes]
    layout = lay_out(sizes, chart.arrows, _label_width)
    picture = ElementTree.fromstring(svg(chart, "x"))
    paths = [path.get("d", "") for path in picture.iter(f"{SVG}path") if path.get("class") == "arrow"]
    found = []
    for (source, target), path in zip((route.ends for route in layout.routes), paths, strict=True):
        points = drawn_points(path)
        for place, ((x, y), size) in enumerate(zip(layout.centres, sizes, strict=True)):
            inside = any(
                abs(px - x) < size.width / 2 - 0.2 and abs(py - y) < size.height / 2 - 0.2
                for px, py in points
            )
            if inside and place not in (source, target):
                found.append((source, target, chart.boxes[place].label[0]))
    return found


@st.composite
def charts(draw: st.DrawFn) -> Chart:
    """Charts of up to twelve boxes of all shapes and sizes, with whatever arrows."""
    chart = Chart()
    for _ in range(draw(st.integers(1, 12))):
        lines = draw(st.lists(st.text("abcdefghij ", min_size=1, max_size=30), min_size=1, max_size=4))
        chart.add(*lines, shape=draw(st.sampled_from([shape for shape in Shape if shape is not Shape.START])))
    place = st.integers(0, len(chart.boxes) - 1)
    for source, target, label in draw(
        st.lists(st.tuples(place, place, st.none() | st.just("failed")), max_size=24)
    ):
        chart.link(source, target, label)
    return chart


@settings(max_examples=COUNT.examples(60))
@given(charts())
def test_no_arrow_crosses_a_box_that_is_not_its_end(chart: Chart) -> None:
    assert boxes_crossed(chart) == []


@given(GRAPHS)
def test_no_edge_of_a_graph_crosses_a_node(graph: Dict) -> None:
    assert boxes_crossed(graph_chart(normalise_graph(graph, World()))) == []
