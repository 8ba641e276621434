"""Run records: made from dicts, saved, loaded, compared. Spec: 08 §8.2."""

from __future__ import annotations

from functools import partial

from harnpy.agent.people.history import history
from harnpy.agent.people.requests import KINDS, QUESTION, questions
from harnpy.builtins.bridge.callables import callables_within
from harnpy.builtins.bridge.live_event_log import log_of
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.vm.declare.builtin import ABSENT, require
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values.objects import display
from harnpy.workflow.records import record_files
from harnpy.workflow.records.record import normalised
from harnpy.workflow.records.record_diff import diff
from harnpy.workflow.records.run_tree import load_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.agent.people.requests import Question
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm
    from harnpy.workflow.records.record_types import RunRecord

#: What all declarations here have in common.
builtin = partial(declare, family="records", counted=True)


@builtin("run_record(run: dict) -> dict")
def run_record(vm: Vm, run: Value = ABSENT) -> RunRecord:
    """The record of a run with every key: missing ids and times are generated, derived parts filled in.

    Example:
        run_record({status: "completed"}).status  // "completed"
    """
    return record_of(vm, run, "run_record: missing payload")


@builtin("run_record_save(run: dict, path?: string) -> dict")
def run_record_save(vm: Vm, run: Value = ABSENT, path: Value = None) -> Dict:
    """Write a record to `path`, or to `<id>.json` in the directory of records; `{path, run}`.

    The file is written as a whole or not at all.

    Example:
        run_record_save(run_record({id: "run_2"}), "run_2.json").run.id  // "run_2"
    """
    given = _given(vm, run, "run_record_save: missing payload")
    target = None if path is None else display(path)
    world = sessions_of(vm).world
    saved = record_files.save(given, world, target, lambda id: asked_by(vm, id), lambda id: hitl_of(vm, id))
    return {"path": saved["persisted_path"], "run": saved}


@builtin("run_record_load(path: string) -> dict")
def run_record_load(vm: Vm, path: Value = ABSENT) -> RunRecord:
    """The record in a file.

    Example:
        run_record_save(run_record({id: "run_1"}), "run.json")
        run_record_load("run.json").id  // "run_1"
    """
    require("run_record_load: missing path", path)
    return record_files.load(display(path), sessions_of(vm).world)


@builtin("load_run_tree(path: string) -> dict")
def load_run_tree(vm: Vm, path: Value = ABSENT) -> Dict:
    """The record in a file with those of its workers' runs, recursively: `{run, children}`.

    Example:
        let saved = run_record_save(run_record({status: "completed"}), "tree.json")
        load_run_tree(saved.path).children  // []
    """
    require("load_run_tree: missing path", path)
    return load_tree(display(path), sessions_of(vm).world)


@builtin("run_record_diff(left: dict, right: dict) -> dict")
def run_record_diff(vm: Vm, left: Value = ABSENT, right: Value = ABSENT) -> Dict:
    """What changes from one run to another; `identical` when that is nothing.

    Example:
        let run = run_record({status: "completed"})
        run_record_diff(run, run).identical  // true
    """
    before = record_of(vm, left, "run_record_diff: missing left run")
    after = record_of(vm, right, "run_record_diff: missing right run")
    return diff(before, after, sessions_of(vm).world)


def record_of(vm: Vm, run: Value, missing: str) -> RunRecord:
    """Return the record in a value; ``missing`` is the error without one."""
    return normalised(_given(vm, run, missing), sessions_of(vm).world, lambda id: asked_by(vm, id))


def asked_by(vm: Vm, run_id: str) -> list[Question]:
    """Return the questions that a run has asked people."""
    events = log_of(vm).read_range(KINDS[QUESTION].topic)
    return questions(((event.kind, event.payload) for _, event in events), run_id)


def hitl_of(vm: Vm, run_id: str) -> list[Dict]:
    """Return what a run has asked people, with their responses."""
    log = log_of(vm)
    records = (event for kind in KINDS.values() for _, event in log.read_range(kind.topic))
    return history(((event.kind, event.payload) for event in records), run_id)


def _given(vm: Vm, run: Value, missing: str) -> Value:
    if run is ABSENT or run is None:
        raise RuntimeFault(missing)
    return callables_within(vm, run)
