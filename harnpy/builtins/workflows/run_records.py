"""Run records: making, storing, comparing and judging them; eval packs, friction events. Spec: 08 §8."""

from __future__ import annotations

from functools import partial

from harnpy.agent.people import KINDS, QUESTION, history, questions
from harnpy.builtins.bridge.callables import callables_within
from harnpy.builtins.bridge.live_event_log import log_of
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.builtins.live_models import models_of
from harnpy.builtins.options import check_options
from harnpy.formats.dicts import Options
from harnpy.formats.json import parse_json
from harnpy.vm.declare import ABSENT, builtin, require
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values import display
from harnpy.workflow import evaluation
from harnpy.workflow import friction as fixtures
from harnpy.workflow import friction as friction
from harnpy.workflow import friction as packs
from harnpy.workflow.evaluation import normalised_pack, run_pack
from harnpy.workflow.friction import FrictionLog, suggestions
from harnpy.workflow.records import record_files
from harnpy.workflow.records.differences import run_diff
from harnpy.workflow.records.record import normalised_run
from harnpy.workflow.records.record_files import load_run_tree as load_tree
from harnpy.workflow.records.replay_fixture import evaluate_fixture, fixture_of, read_fixture
from harnpy.workflow.workflow_options import EVALUATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.agent.people import Question
    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm
    from harnpy.workflow.evaluation import EvalPack, SuiteManifest
    from harnpy.workflow.records.record_shapes import ReplayFixture, RunRecord

# Run records: made from dicts, saved, loaded, compared. Spec: 08 §8.2.


record_builtin = partial(declare, family="records", counted=True)


@record_builtin("run_record(run: dict) -> dict")
def run_record(vm: Vm, run: Value = ABSENT) -> RunRecord:
    """Return a run's record with every key: missing ids and times are generated, derived parts filled in.

    Example: run_record({status: "completed"}).status  // "completed"
    """
    return record_of(vm, run, "run_record: missing payload")


@record_builtin("run_record_save(run: dict, path?: string) -> dict")
def run_record_save(vm: Vm, run: Value = ABSENT, path: Value = None) -> Dict:
    """Write a record to `path`, or to `<id>.json` in the directory of records: `{path, run}`.

    The file is written as a whole or not at all.

    Example: run_record_save(run_record({id: "run_2"}), "run_2.json").run.id  // "run_2"
    """
    given = _given_run(vm, run, "run_record_save: missing payload")
    target = None if path is None else display(path)
    world = sessions_of(vm).world
    saved = record_files.save_run(
        given, world, target, lambda id: asked_by(vm, id), lambda id: hitl_of(vm, id)
    )
    return {"path": saved["persisted_path"], "run": saved}


@record_builtin("run_record_load(path: string) -> dict")
def run_record_load(vm: Vm, path: Value = ABSENT) -> RunRecord:
    """Return the record in a file.

    Example:
        run_record_save(run_record({id: "run_1"}), "run.json")
        run_record_load("run.json").id  // "run_1"
    """
    require("run_record_load: missing path", path)
    return record_files.load_run(display(path), sessions_of(vm).world)


@record_builtin("load_run_tree(path: string) -> dict")
def load_run_tree(vm: Vm, path: Value = ABSENT) -> Dict:
    """Return the record in a file with its workers' records, recursively: `{run, children}`.

    Example:
        let saved = run_record_save(run_record({status: "completed"}), "tree.json")
        load_run_tree(saved.path).children  // []
    """
    require("load_run_tree: missing path", path)
    return load_tree(display(path), sessions_of(vm).world)


@record_builtin("run_record_diff(left: dict, right: dict) -> dict")
def run_record_diff(vm: Vm, left: Value = ABSENT, right: Value = ABSENT) -> Dict:
    """Return what changed from one run to another; `identical` is true if nothing did.

    Example:
        let run = run_record({status: "completed"})
        run_record_diff(run, run).identical  // true
    """
    before = record_of(vm, left, "run_record_diff: missing left run")
    after = record_of(vm, right, "run_record_diff: missing right run")
    return run_diff(before, after, sessions_of(vm).world)


def record_of(vm: Vm, run: Value, missing: str) -> RunRecord:
    """Return the record in a value; ``missing`` is the error without one."""
    return normalised_run(_given_run(vm, run, missing), sessions_of(vm).world, lambda id: asked_by(vm, id))


def asked_by(vm: Vm, run_id: str) -> list[Question]:
    """Return the questions that a run has asked people."""
    events = log_of(vm).read_range(KINDS[QUESTION].topic)
    return questions(((event.kind, event.payload) for _, event in events), run_id)


def hitl_of(vm: Vm, run_id: str) -> list[Dict]:
    """Return what a run has asked people, with their responses."""
    log = log_of(vm)
    records = (event for kind in KINDS.values() for _, event in log.read_range(kind.topic))
    return history(((event.kind, event.payload) for event in records), run_id)


def _given_run(vm: Vm, run: Value, missing: str) -> Value:
    if run is ABSENT or run is None:
        raise RuntimeFault(missing)
    return callables_within(vm, run)


# Judging runs by their fixtures. Spec: 08 §8.2–8.3.


class _Metrics:
    """The values that a program has measured."""

    def __init__(self) -> None:
        self.all: list[Dict] = []


@builtin("run_record_fixture(run: dict) -> dict", family="records", counted=True)
def run_record_fixture(vm: Vm, run: Value = ABSENT) -> ReplayFixture:
    """Return the replay fixture that a run passes: its status, and how the last stage of each node ended.

    Example: run_record_fixture(run_record({status: "completed"})).expected_status  // "completed"
    """
    return fixture_of(record_of(vm, run, "run_record_fixture: missing payload"), sessions_of(vm).world)


@builtin("run_record_eval(run: dict, fixture?: dict) -> dict", family="records", counted=True)
def run_record_eval(vm: Vm, run: Value = ABSENT, fixture: Value = None) -> Dict:
    """Compare a run with a fixture: `{pass, failures, stage_count}`; it always passes its own fixture.

    Example: run_record_eval(run_record({status: "completed"})).pass  // true
    """
    record = record_of(vm, run, "run_record_eval: missing payload")
    if fixture is None:
        return evaluate_fixture(record, fixture_of(record, sessions_of(vm).world))
    return evaluate_fixture(record, read_fixture(fixture, "run_record_eval"))


@builtin("run_record_eval_suite(cases: list) -> dict", family="records", counted=True)
def run_record_eval_suite(vm: Vm, cases: Value = ABSENT) -> Dict:
    """Return a report on many runs: records, or `{run, fixture?, path?}`.

    Example: run_record_eval_suite([{run: run_record({status: "completed"})}]).pass  // true
    """
    if type(cases) is not list:
        raise RuntimeFault("run_record_eval_suite: missing list")
    return evaluation.evaluate_suite(callables_within(vm, cases), sessions_of(vm).world)


@builtin("eval_suite_manifest(manifest: dict) -> dict", family="records", counted=True)
def eval_suite_manifest(vm: Vm, manifest: Value = ABSENT) -> SuiteManifest:
    """Return the manifest of a suite with every key: `{id, name, base_dir, cases}`.

    Example: eval_suite_manifest({cases: []}).cases  // []
    """
    return _manifest(vm, "eval_suite_manifest", manifest)


@builtin("eval_suite_run(manifest: dict) -> dict", family="records", counted=True)
def eval_suite_run(vm: Vm, manifest: Value = ABSENT) -> Dict:
    """Judge a manifest's cases, whose records, fixtures and baselines are files below `base_dir`.

    Example: eval_suite_run({cases: []}).total  // 0
    """
    read = _manifest(vm, "eval_suite_run", manifest)
    return evaluation.run_suite_manifest(read, sessions_of(vm).world)


@builtin("eval_metric(name: string, value: any, metadata?: any) -> nil", family="records", counted=True)
def eval_metric(vm: Vm, name: Value = ABSENT, value: Value = ABSENT, metadata: Value = None) -> None:
    """Record a measured value for `eval_metrics` and for the program's host.

    Example: eval_metric("accuracy", 0.9)  // nil
    """
    if name is ABSENT or name is None:
        raise RuntimeFault("eval_metric: missing name")
    if value is ABSENT or value is None:
        raise RuntimeFault("eval_metric: missing value")
    noted = {"name": display(name), "value": value}
    vm.state(_Metrics).all.append(noted if metadata is None else {**noted, "metadata": metadata})


@builtin("eval_metrics() -> list", family="records")
def eval_metrics(vm: Vm) -> list[Dict]:
    """Return the values measured so far, in order: `{name, value, metadata?}`.

    Example:
        eval_metric("recall", 0.8)
        eval_metrics().any({ metric -> metric.name == "recall" })  // true
    """
    return list(vm.state(_Metrics).all)


def _manifest(vm: Vm, caller: str, given: Value) -> SuiteManifest:
    if given is ABSENT or given is None:
        raise RuntimeFault(f"{caller}: missing manifest payload")
    return evaluation.read_suite_manifest(given, caller, sessions_of(vm).world)


# Eval packs. Spec: 08 §8.7.


@builtin("eval_pack_manifest(manifest: dict) -> dict", family="records")
def eval_pack_manifest(vm: Vm, manifest: Value = None) -> EvalPack:
    """Return an eval pack's manifest in normalised form, as an `eval_pack` declaration binds it.

    Example: eval_pack_manifest({id: "basics"}).id  // "basics"
    """
    return normalised_pack(_given_manifest("eval_pack_manifest", manifest), sessions_of(vm).world)


@builtin("eval_pack_run(manifest: dict, options?: dict) -> dict", family="records")
def eval_pack_run(vm: Vm, manifest: Value = None, options: Value = None) -> Dict:
    """Judge the cases of an eval pack; return a report with a verdict, failures and warnings for each.

    Rubrics of the kind `llm-judge` ask a model, unless `judge` is false.

    Example:
        let pack = {fixtures: [{id: "first", inline: {id: "run_1"}}], cases: [{run: "first"}]}
        eval_pack_run(pack).pass  // true
    """
    check_options(vm, "eval_pack_run", options)
    world, given = sessions_of(vm).world, _given_manifest("eval_pack_run", manifest)
    models = models_of(vm) if Options(options).flag("judge", EVALUATE.default("judge")) else None
    return run_pack(normalised_pack(callables_within(vm, given), world), world, models)


def _given_manifest(caller: str, manifest: Value) -> Value:
    if manifest is None:
        raise RuntimeFault(f"{caller}: missing manifest payload")
    return manifest


# Friction events and the context packs that they suggest. Spec: 08 §8.8.


friction_builtin = partial(declare, family="records")


@friction_builtin("friction_event(payload: dict) -> dict")
def friction_event(vm: Vm, payload: Value = None) -> Dict:
    """Return a friction event in normalised form: an obstacle, described without secrets.

    Example: friction_event({kind: "missing_context", summary: "Which shop?"}).kind  // "missing_context"
    """
    return friction.normalised_event(
        _given_payload("friction_event", payload), sessions_of(vm).world, top_level_keys=True
    )


@friction_builtin("friction_record(event: dict, options?: dict) -> dict")
def friction_record(vm: Vm, event: Value = None, options: Value = None) -> Dict:
    """Record a friction event in memory and, if given, in the file `log_path`: `{recorded, sink, event}`.

    Example: friction_record({kind: "missing_context", summary: "Which shop?"}).recorded  // true
    """
    return vm.state(FrictionLog).record(
        _given_payload("friction_record", event), options, sessions_of(vm).world
    )


@friction_builtin("friction_events() -> list")
def friction_events(vm: Vm) -> list[Dict]:
    """Return the friction events recorded so far, in order.

    Example:
        friction_clear()
        friction_record({kind: "missing_context", summary: "Which shop?"})
        friction_events().count()  // 1
    """
    return list(vm.state(FrictionLog).events)


@friction_builtin("friction_clear() -> nil")
def friction_clear(vm: Vm) -> None:
    """Forget the recorded friction events.

    Example:
        friction_clear()
        friction_events()  // []
    """
    vm.state(FrictionLog).events.clear()


@friction_builtin("context_pack_manifest(manifest: dict) -> dict")
def context_pack_manifest(vm: Vm, manifest: Value = None) -> Dict:
    """Return a context pack's manifest in normalised form.

    Example: context_pack_manifest({id: "bolts", name: "Bolts", owner: "ann"}).name  // "Bolts"
    """
    return packs.normalised_context_pack(_given_payload("context_pack_manifest", manifest))


@friction_builtin("context_pack_manifest_parse(text: string) -> dict")
def context_pack_manifest_parse(vm: Vm, text: str) -> Dict:
    r"""Return the normalised manifest in a text: JSON if it starts with `{`, otherwise TOML.

    Example: context_pack_manifest_parse("id = \"bolts\"\nname = \"Bolts\"\nowner = \"ann\"\n").id  // "bolts"
    """
    return packs.parsed_context_pack(text, parse_json)


@friction_builtin("context_pack_suggestions(events?: any, options?: dict) -> list")
def context_pack_suggestions(vm: Vm, events: Value = None, options: Value = None) -> list[Dict]:
    """Return the context packs that friction events suggest: the recorded ones, or a list, or `{events}`.

    Example: context_pack_suggestions([])  // []
    """
    world = sessions_of(vm).world
    found = vm.state(FrictionLog).events if events is None else friction.read_friction_events(events, world)
    return suggestions(found, options, world)


@friction_builtin("friction_eval_fixture(fixture: dict) -> dict")
def friction_eval_fixture(vm: Vm, fixture: Value = None) -> Dict:
    """Return a report on whether `{events, options?, expected_suggestions?}` suggests what is expected.

    Example: friction_eval_fixture({events: []}).pass  // true
    """
    return fixtures.evaluate_friction_fixture(
        _given_payload("friction_eval_fixture", fixture), sessions_of(vm).world
    )


def _given_payload(caller: str, payload: Value) -> Value:
    if payload is None:
        raise RuntimeFault(f"{caller}: missing payload")
    return payload
