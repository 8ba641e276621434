"""Whatever the builtins of run records are given, they answer or fail as a program may fail: never with a
Python error. What they answer can be given to them again."""

from __future__ import annotations

import os
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import harnpy
from harnpy.vm.errors import VmError
from harnpy.vm.values import Set, Struct
from tests.builtins.any_values import AnyValues, few
from tests.counts import COUNT
from tests.worlds import OwnWorld

NAMES = [
    "run_record", "run_record_save", "run_record_load", "load_run_tree", "run_record_fixture",
    "run_record_eval", "run_record_eval_suite", "run_record_diff", "eval_suite_manifest",
    "eval_suite_run", "eval_metric", "eval_metrics",
]  # fmt: skip
_VALUES = AnyValues(
    words=["\x00", "\ud800", "verify", "completed", "s", "n"],
    keys=["id", "\ud800", "ok", "trace", "x"],
)
_TEXTS, _ANY, _dicts = _VALUES.texts, _VALUES.any, _VALUES.dicts


_WORKER = _dicts(id=_TEXTS, name=_TEXTS, provenance=_ANY, audit=_ANY, execution=_ANY, child_run_path=_TEXTS)
_HANDOFF = _dicts(
    id=_TEXTS, source_persona=_TEXTS, target_persona_or_human=_TEXTS, task=_TEXTS, reason=_TEXTS,
    created_at=_TEXTS, receipt_links=few(_ANY),
)  # fmt: skip
_ARTIFACT = _dicts(
    id=_TEXTS, kind=st.sampled_from(["handoff", "plan"]), data=_HANDOFF | _dicts(trace=_ANY, tools=_ANY)
)
_EVENT = _dicts(kind=st.just("compaction"), metadata=_dicts(snapshot_asset_id=_ANY))
_TRANSCRIPT = _dicts(events=few(_EVENT), assets=few(_dicts(id=_ANY, storage=_ANY)))
_STAGE = _dicts(
    id=_TEXTS, node_id=_TEXTS, kind=_TEXTS, branch=_TEXTS, visible_text=_TEXTS, transcript=_TRANSCRIPT,
    verification=_ANY, artifacts=few(_ARTIFACT), metadata=_dicts(worker=_WORKER, worker_id=_ANY),
)  # fmt: skip
_TRIGGER = _dicts(id=_TEXTS, kind=_ANY, trace_id=_ANY, signature_status=_ANY)
_RUN = _dicts(
    id=_TEXTS, status=_TEXTS, stages=few(_STAGE), artifacts=few(_ARTIFACT), handoffs=few(_HANDOFF),
    transitions=few(_dicts(from_stage_id=_TEXTS, to_node_id=_TEXTS, branch=_TEXTS)),
    transcript=_TRANSCRIPT, metadata=_dicts(trigger_event=_TRIGGER, replay_of_event_id=_ANY),
    observability=_dicts(planner_rounds=_ANY, action_graph_nodes=_ANY), persisted_path=_TEXTS,
    hitl_questions=few(_dicts(prompt=_TEXTS)),
    tool_recordings=few(_dicts(tool_name=_TEXTS, result=_ANY)),
)  # fmt: skip
_FIXTURE = _dicts(
    expected_status=_TEXTS, eval_kind=st.sampled_from(["replay", "clarifying_question"]),
    clarifying_question=_dicts(required_terms=few(_TEXTS), min_questions=st.integers(-1, 2)),
    stage_assertions=few(_dicts(node_id=_TEXTS, required_artifact_kinds=few(_TEXTS))),
)  # fmt: skip
_SUITE = _dicts(base_dir=_TEXTS, cases=few(_dicts(run_path=_TEXTS, fixture_path=_TEXTS, compare_to=_TEXTS)))
_ARGUMENTS = st.lists(
    st.one_of(_RUN, _FIXTURE, _SUITE, few(_RUN | _dicts(run=_RUN, fixture=_FIXTURE)), _ANY), max_size=3
)


class _NoFiles(OwnWorld):
    """Nothing is kept: programs' paths lead nowhere."""

    def write_text(self, path: str, text: str, *rest: Any, **options: Any) -> None:
        os.fspath(path).encode("utf-8")
        raise PermissionError(13, "Permission denied", path)

    def make_directory(self, path: str) -> None:
        os.fspath(path).encode("utf-8")


def call(vm: Any, name: str, *arguments: Any) -> Any:
    return vm.builtins.bound(name).call(vm, *arguments)


@settings(max_examples=COUNT.examples(12))
@given(arguments=_ARGUMENTS)
@example(arguments=["\x00"])
@example(arguments=[{}, "\ud800"])
@example(arguments=[{"base_dir": "\x00", "cases": [{"run_path": "x"}]}])
@example(arguments=[{"persisted_path": "\x00"}, {"persisted_path": "\ud800"}])
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


@settings(
    max_examples=COUNT.examples(12),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(run=_RUN)
@example(run={"transcript": Struct("P", {"x": Set(["\ud800"])})})
def test_what_was_saved_can_be_loaded_and_is_the_same(run: Any, tmp_path: Path) -> None:
    vm: Any = harnpy.Vm()
    path = str(tmp_path / "r.json")
    try:
        saved = call(vm, "run_record_save", run, path)["run"]
    except VmError:
        return
    loaded = call(vm, "run_record_load", path)
    assert loaded == saved
    assert call(vm, "run_record_diff", saved, loaded)["identical"]
    assert call(vm, "run_record", saved) == saved
    assert call(vm, "run_record_eval", saved)["pass"]
