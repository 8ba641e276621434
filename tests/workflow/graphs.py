"""Hypothesis strategies for workflow graphs, sound and unsound."""

from __future__ import annotations

from hypothesis import strategies as st

from harnpy.session.compaction import STRATEGIES

KINDS = {"stage", "verify", "condition", "fork", "join", "map", "reduce", "escalation", "subagent"}
IDS = st.sampled_from(["a", "b", "c", 'ü "n" <i>', "end", "x" * 90, "\x00\ud800"])
TEXTS = st.none() | st.text(max_size=30)
COUNTS = st.none() | st.integers(0, 5)


def dicts(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({}, optional=fields)


NODES = dicts(
    kind=st.sampled_from(sorted(KINDS)),
    task_label=TEXTS,
    system=TEXTS,
    model_policy=dicts(model=TEXTS, max_tokens=COUNTS, turn_policy=st.none() | dicts(max_prose_chars=COUNTS)),
    auto_compact=dicts(
        auto_compact=st.booleans(),
        compact_threshold=COUNTS,
        compact_strategy=st.none() | st.sampled_from(STRATEGIES),
    ),
    retry_policy=dicts(max_attempts=COUNTS),
    input_contract=dicts(min_inputs=COUNTS, max_inputs=COUNTS, input_kinds=st.lists(st.text(max_size=3))),
    reduce_policy=dicts(separator=TEXTS, strategy=TEXTS),
    map_policy=dicts(items=st.lists(st.integers(), max_size=2)),
    capability_policy=dicts(tools=st.lists(st.sampled_from(["look", "run"])), recursion_limit=COUNTS),
    metadata=st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
EDGES = st.fixed_dictionaries({"from": IDS, "to": IDS}, optional={"branch": TEXTS, "label": TEXTS})
WITH_NODES = st.fixed_dictionaries(
    {"nodes": st.dictionaries(IDS, NODES, max_size=6), "edges": st.lists(EDGES, max_size=10)},
    optional={"entry": IDS, "version": COUNTS, "id": TEXTS},
)
#: The shorthand stands only in place of nodes.
GRAPHS = WITH_NODES | st.fixed_dictionaries(
    {"nodes": st.just({}), "edges": st.just([])}, optional={"act": NODES, "verify": NODES}
)
