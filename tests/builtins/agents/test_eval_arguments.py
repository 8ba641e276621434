"""Whatever the builtins of eval packs and of friction are given, they answer or fail as a program may fail:
never with a Python error."""

from __future__ import annotations

import os
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import harnpy
from harnpy.builtins import catalog
from harnpy.vm.errors import VmError
from harnpy.workflow.friction import KINDS
from tests.builtins.any_values import AnyValues, few
from tests.counts import COUNT
from tests.worlds import OwnWorld

NAMES = [name for name in catalog.names() if name.startswith(("eval_pack_", "friction_", "context_pack_"))]

_VALUES = AnyValues(
    words=[*KINDS, "r", "e", "judge", "run-status", "stage_status", "\x00", "\ud800", "sk-1", "{", "a = "],
    keys=["id", "secret", "token", "query", "x"],
)
_TEXTS, _ANY, _dicts = _VALUES.texts, _VALUES.any, _VALUES.dicts


_EVENT = _dicts(
    kind=st.sampled_from(KINDS), summary=st.text(min_size=1, max_size=5), metadata=_ANY, source=_TEXTS,
    recurrence_hints=few(_TEXTS), estimated_cost_usd=st.floats(), estimated_time_ms=st.integers(0, 9),
    timestamp=_TEXTS, links=few(_ANY),
)  # fmt: skip
_EXPECTATION = _dicts(min_suggestions=st.integers(0, 2), title_contains=_TEXTS, required_capability=_TEXTS)
_EVENTS = _dicts(events=few(_EVENT), expected_suggestions=few(_EXPECTATION), options=_ANY)
_MANIFEST = _dicts(
    name=_TEXTS, owner=_TEXTS, id=_TEXTS, secrets=few(_ANY), review=_ANY, metadata=_ANY,
    refresh_policy=_dicts(mode=_TEXTS),
    included_queries=few(_dicts(id=_TEXTS, query=_TEXTS, filters=_ANY)),
)  # fmt: skip
_LIMITS = _dicts(max_tokens=st.integers(-1, 1), max_cost_usd=st.floats(), severity=_TEXTS)
_RUN = _dicts(
    id=_TEXTS, status=_TEXTS, stages=few(_dicts(node_id=_TEXTS, visible_text=_TEXTS, metadata=_ANY)),
    usage=_dicts(total_cost=st.floats(), input_tokens=st.integers(0, 9)), metadata=_ANY,
)  # fmt: skip
_ASSERTION = _dicts(kind=_TEXTS, stage=_TEXTS, expected=_ANY, contains=_TEXTS)
_PACK = _dicts(
    id=_TEXTS, base_dir=st.just("no/such/directory"), baseline=_TEXTS, defaults=_dicts(thresholds=_LIMITS),
    fixtures=st.tuples(_RUN, _EVENTS).map(
        lambda pair: [{"id": "r", "inline": pair[0]}, {"id": "e", "inline": pair[1]}]
    ),
    rubrics=few(_dicts(id=st.just("r"), kind=_TEXTS, assertions=few(_ASSERTION))),
    cases=few(
        _dicts(run=st.just("r"), friction_events=_TEXTS, rubrics=few(_TEXTS), thresholds=_LIMITS)
    ),
)  # fmt: skip
_ARGUMENTS = st.lists(st.one_of(_EVENT, _EVENTS, _MANIFEST, _PACK, _ANY), max_size=3)


class _NoFiles(OwnWorld):
    """Nothing is kept: programs' paths lead nowhere."""

    def write_text(self, path: str, text: str, *rest: Any, **options: Any) -> None:
        os.fspath(path).encode("utf-8")
        raise PermissionError(13, "Permission denied", path)


@settings(max_examples=COUNT.examples(12))
@given(arguments=_ARGUMENTS)
@example(arguments=[{"kind": "tool_gap", "summary": "s"}, {"path": "\x00"}])
@example(arguments=[{"cases": [{"run": "\x00"}]}])
@example(arguments=[{"fixtures": [{"id": "r", "inline": {}}], "cases": [{"run": "r", "fixture": "\x00"}]}])
@example(arguments=[{"base_dir": "\ud800", "cases": [{"friction_events": "x"}]}])
def test_every_builtin_survives(arguments: list[Any]) -> None:
    for name in NAMES:
        survives(name, deepcopy(arguments))


def survives(name: str, arguments: list[Any]) -> None:
    vm: Any = harnpy.Vm(_NoFiles())
    bound = vm.builtins.bound(name)
    try:
        with suppress(VmError):
            bound.call(vm, *arguments[: bound.max_args])
    except BaseException as error:
        error.add_note(f"in {name}")
        raise


def test_a_log_at_an_impossible_path(tmp_path: Path) -> None:
    vm: Any = harnpy.Vm()
    record = vm.builtins.bound("friction_record")
    for path in ("\x00", "\ud800", str(tmp_path), "x" * 300):
        with pytest.raises(VmError, match="failed to write friction log"):
            record.call(vm, {"kind": "tool_gap", "summary": "s"}, {"path": path})
