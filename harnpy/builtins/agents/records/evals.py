"""Judging runs by their fixtures. Spec: 08 §8.2–8.3."""

from __future__ import annotations

from harnpy.builtins.agents.records.runs import record_of
from harnpy.builtins.bridge.callables import callables_within
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.vm.declare.builtin import ABSENT, builtin
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values.objects import display
from harnpy.workflow.records import eval_suite
from harnpy.workflow.records.replay_fixture import evaluate, fixture_of, read_fixture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm
    from harnpy.workflow.records.record_types import ReplayFixture, SuiteManifest


class _Metrics:
    """The values that a program has measured."""

    def __init__(self) -> None:
        self.all: list[Dict] = []


@builtin("run_record_fixture(run: dict) -> dict", family="records", counted=True)
def run_record_fixture(vm: Vm, run: Value = ABSENT) -> ReplayFixture:
    """The replay fixture that a run passes: its status, and how the last stage of each node ended.

    Example:
        run_record_fixture(run_record({status: "completed"})).expected_status  // "completed"
    """
    return fixture_of(record_of(vm, run, "run_record_fixture: missing payload"), sessions_of(vm).world)


@builtin("run_record_eval(run: dict, fixture?: dict) -> dict", family="records", counted=True)
def run_record_eval(vm: Vm, run: Value = ABSENT, fixture: Value = None) -> Dict:
    """Whether a run is as a fixture expects: `{pass, failures, stage_count}`; its own fixture always fits.

    Example:
        run_record_eval(run_record({status: "completed"})).pass  // true
    """
    record = record_of(vm, run, "run_record_eval: missing payload")
    if fixture is None:
        return evaluate(record, fixture_of(record, sessions_of(vm).world))
    return evaluate(record, read_fixture(fixture, "run_record_eval"))


@builtin("run_record_eval_suite(cases: list) -> dict", family="records", counted=True)
def run_record_eval_suite(vm: Vm, cases: Value = ABSENT) -> Dict:
    """The report of many runs: records, or `{run, fixture?, path?}`.

    Example:
        run_record_eval_suite([{run: run_record({status: "completed"})}]).pass  // true
    """
    if type(cases) is not list:
        raise RuntimeFault("run_record_eval_suite: missing list")
    return eval_suite.evaluate_suite(callables_within(vm, cases), sessions_of(vm).world)


@builtin("eval_suite_manifest(manifest: dict) -> dict", family="records", counted=True)
def eval_suite_manifest(vm: Vm, manifest: Value = ABSENT) -> SuiteManifest:
    """The manifest of a suite with every key: `{id, name, base_dir, cases}`.

    Example:
        eval_suite_manifest({cases: []}).cases  // []
    """
    return _manifest(vm, "eval_suite_manifest", manifest)


@builtin("eval_suite_run(manifest: dict) -> dict", family="records", counted=True)
def eval_suite_run(vm: Vm, manifest: Value = ABSENT) -> Dict:
    """The report of a manifest's cases, whose records, fixtures and baselines are files below `base_dir`.

    Example:
        eval_suite_run({cases: []}).total  // 0
    """
    read = _manifest(vm, "eval_suite_run", manifest)
    return eval_suite.run_manifest(read, sessions_of(vm).world)


@builtin("eval_metric(name: string, value: any, metadata?: any) -> nil", family="records", counted=True)
def eval_metric(vm: Vm, name: Value = ABSENT, value: Value = ABSENT, metadata: Value = None) -> None:
    """Record a measured value, for `eval_metrics` and for the program's host.

    Example:
        eval_metric("accuracy", 0.9)  // nil
    """
    if name is ABSENT or name is None:
        raise RuntimeFault("eval_metric: missing name")
    if value is ABSENT or value is None:
        raise RuntimeFault("eval_metric: missing value")
    noted = {"name": display(name), "value": value}
    vm.state(_Metrics).all.append(noted if metadata is None else {**noted, "metadata": metadata})


@builtin("eval_metrics() -> list", family="records")
def eval_metrics(vm: Vm) -> list[Dict]:
    """What the program has measured so far, in order: `{name, value, metadata?}`.

    Example:
        eval_metric("recall", 0.8)
        eval_metrics().any({ metric -> metric.name == "recall" })  // true
    """
    return list(vm.state(_Metrics).all)


def _manifest(vm: Vm, caller: str, given: Value) -> SuiteManifest:
    if given is ABSENT or given is None:
        raise RuntimeFault(f"{caller}: missing manifest payload")
    return eval_suite.read_manifest(given, caller, sessions_of(vm).world)
