"""Graphs of any shape, written out in a program: the checker says what is wrong with them, at its place."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.builtins.judging import graph_arguments
from harnpy.workflow import graph_shapes
from tests.counts import COUNT

KEYS = {key for shape in vars(graph_shapes).values() for key in getattr(shape, "__annotations__", ())}
KEYS |= {"", "a", "a.b", "act", "edges", "from", "nodes", "nodes.a", "repair", "verify", "x[0]"}
WORDS = st.sampled_from(sorted(KEYS))
LEAVES = st.none() | st.integers(-1, 2) | st.sampled_from(["", "a", "act", "agent", "condition", "verify"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
DICTS = st.dictionaries(WORDS, VALUES, max_size=4)
GRAPHS = (
    DICTS
    | st.fixed_dictionaries({}, optional=dict.fromkeys(["act", "verify", "repair", "entry", "edges"], VALUES))
    | st.fixed_dictionaries({"nodes": st.dictionaries(WORDS, DICTS, max_size=3)}, optional={"edges": VALUES})
)


@settings(max_examples=COUNT.examples(40))
@given(GRAPHS, DICTS, DICTS)
def test_a_graph_of_any_shape_is_judged(graph: Any, node: Any, edge: Any) -> None:
    calls: dict[str, list[Any]] = {
        "workflow_graph": [graph],
        "workflow_execute": ["task", graph],
        "workflow_insert_node": [graph, node, edge],
        "workflow_replace_node": [graph, "a", node],
    }
    for function, arguments in calls.items():
        for problem in graph_arguments.problems(function, arguments):
            part: Any = arguments
            for step in problem.path:
                part = part[step]  # its place is there
