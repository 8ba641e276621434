"""Whatever the builtins of artifacts, checkpoints and messages are given, they answer or fail as a program
may fail: never with a Python error."""

from __future__ import annotations

import math
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import harnpy
from harnpy.builtins import catalog
from harnpy.vm.errors import VmError
from harnpy.vm.values import Duration, Pair, Range, Set, Struct
from tests.counts import COUNT
from tests.worlds import OwnWorld

_OTHERS = ("assemble_context", "select_artifacts_adaptive", "continue_as_new")
NAMES = [
    name
    for name in catalog.names()
    if name.startswith(("artifact", "checkpoint", "workflow.", "handoff")) or name in _OTHERS
]

_KEYS = (
    "id _type kind title text data source created_at freshness priority lineage relevance estimated_tokens "
    "stage metadata evidence_paths changed_paths artifacts budget_tokens microcompact_threshold dedup "
    "strategy query semantic_overlap ranker_callback max_artifacts max_tokens reserve_tokens include_kinds "
    "pinned_ids render prefer_recent workflow_id workflow run base_dir path timeout_ms"
).split()
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 9),
    st.sampled_from([2**63 - 1, -(2**63), math.nan, math.inf, 0.5, -0.0, Duration(1), Range(0, 3), b"\xff"]),
    st.text(max_size=6),
    st.sampled_from(
        ["handoff", "fresh", "stale", "semantic", "recency", "round_robin", "json", "w", "\ud800"]
    ),
    st.sampled_from(["a\n\nb c\nd" * 9, "\x00", "word " * 30]),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
        st.lists(st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4), max_size=3),
        st.lists(inner, max_size=2).map(Set),
        st.tuples(inner, inner).map(lambda items: Pair(*items)),
        inner.map(lambda item: Struct("P", {"x": item})),
    ),
    max_leaves=12,
)


class _Contained(OwnWorld):
    """The real world, but what programs keep is kept in one directory."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = str(directory)

    def get(self, name: str) -> str | None:
        return self._directory if name == "HARN_STATE_DIR" else super().get(name)


@settings(
    max_examples=COUNT.examples(12),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(arguments=st.lists(_VALUES, max_size=4))
@example(arguments=["\x00", "name", "value"])
@example(arguments=["x" * 300, "name"])
@example(arguments=[{"workflow_id": "w", "base_dir": "\x00"}, "name"])
def test_every_builtin_survives(arguments: list[Any], tmp_path: Path) -> None:
    for name in NAMES:
        survives(name, deepcopy(arguments), tmp_path)


def survives(name: str, arguments: list[Any], tmp_path: Path) -> None:
    vm: Any = harnpy.Vm(_Contained(tmp_path))
    if name == "workflow.update":
        arguments = [*[*arguments, None, None, None][:3], {"timeout_ms": 0}]
    bound = vm.builtins.bound(name)
    try:
        with suppress(VmError):
            bound.call(vm, *arguments[: bound.max_args])
    except BaseException as error:
        error.add_note(f"in {name}")
        raise
