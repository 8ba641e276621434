"""Children: agents in sessions of their own, each in a task of the program. Spec: 10 §A1.15, §C9, §C10."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.durable.agents import agent_of
from harnpy.builtins.bridge.durable.errors import invalid
from harnpy.builtins.bridge.durable.verbs import builtin, read_options
from harnpy.session.children.child_runs import child_runs
from harnpy.session.children.values import ChildSpec
from harnpy.session.errors import ChildTimeout
from harnpy.vm.values.objects import Duration

if TYPE_CHECKING:
    from harnpy.builtins.bridge.durable.verbs import Call
    from harnpy.session.children.values import ChildRef, ChildResult

    Dict = dict[str, Any]

_SPEC = (
    "mode?: string, task?: string, context?: string, messages?: list | dict, agent: closure | dict, "
    "detached?: bool, metadata?: dict, child_id?: string, session_id?: string"
)


def _spec(call: Call, id: str, given: Dict, known: str = _SPEC) -> ChildSpec:
    options = read_options(call.name, given, known, id)
    messages = options.pop("messages", [])
    options["messages"] = [messages] if isinstance(messages, dict) else messages
    return ChildSpec(**{**options, "agent": agent_of(call, id, options["agent"])})


def _parent(call: Call, id: str) -> str:
    """Return the id of the session that a turn sees, or of the one that is named."""
    inside = call.durable.handles.get(id)
    return id if inside is None else inside.id


def _spawned(call: Call, id: str, spec: ChildSpec) -> ChildRef:
    """Have a child run, until it first waits. Its task belongs to the program."""
    ref = call.runtime.spawn(_parent(call, id), spec, caller=call.durable.children.caller())
    call.durable.children.give_way()
    return ref


@builtin("__session_spawn(id: string, spec: dict, opts?: dict) -> dict")
def spawn(call: Call, id: str, spec: Dict, opts: Dict) -> Dict:
    """Have a child of a session run: `{child_id, session_id, parent_id}`."""
    ref = _spawned(call, id, _spec(call, id, spec))
    return {"child_id": ref.child_id, "session_id": ref.session_id, "parent_id": ref.parent_id}


@builtin("__session_wait_child(child_id: string, opts?: dict) -> dict", "timeout?: float | duration")
def wait_child(call: Call, child_id: str, opts: Dict) -> Dict:
    """What became of a child, which is waited for."""
    given = opts.get("timeout")
    seconds = given.ms / 1000 if isinstance(given, Duration) else given
    return _value(_outcome(call, child_id, seconds))


@builtin("__session_run_child(id: string, spec: dict, opts?: dict) -> dict")
def run_child(call: Call, id: str, spec: Dict, opts: Dict) -> Dict:
    """Have a child run, and return what became of it."""
    ref = _spawned(call, id, _spec(call, id, spec))
    return _value(_outcome(call, ref.child_id, None))


@builtin("__session_schedule_child(id: string, spec: dict, opts?: dict) -> dict")
def schedule_child(call: Call, id: str, spec: Dict, opts: Dict) -> Dict:
    """Have a child begin when it is due; a program that ends before that never has it."""
    known = f"{_SPEC}, due_at: float"
    due = read_options(call.name, spec, known, id)["due_at"]
    planned = _spec(call, id, {key: value for key, value in spec.items() if key != "due_at"})
    child_id = planned.child_id or call.durable.new_id()
    planned = replace(planned, child_id=child_id)
    call.session(id)  # there is one
    wait = due - call.vm.world.clock.now()
    call.durable.children.plan(child_id, wait, lambda: _spawned(call, id, planned))
    return {"child_id": child_id, "session_id": planned.session_id or child_id, "parent_id": id}


def _outcome(call: Call, child_id: str, seconds: float | None) -> ChildResult:
    """Wait for a child as tasks do. Raises `ChildNotFound`, `ChildTimeout`."""
    if not call.durable.children.wait(child_id, seconds):
        raise ChildTimeout(f'wait child "{child_id}": timed out after {seconds:g}s')
    return call.runtime.wait(child_id, 0, caller=call.durable.caller())


def _value(result: ChildResult) -> Dict:
    keys = ("child_id", "session_id", "status", "summary", "reason", "error", "external_id", "usage")
    shown: Dict = {key: getattr(result, key) for key in keys}
    return {**shown, "artifacts": [artifact.data() for artifact in result.artifacts]}


@builtin(
    "__session_merge_child(id: string, child_id: string, opts?: dict) -> dict",
    "artifact_ids?: list, note?: string, metadata?: dict",
)
def merge_child(call: Call, id: str, child_id: str, opts: Dict) -> Dict:
    """Say that a child's outcome was taken in. Return what the log knows of the child."""
    ids = opts.get("artifact_ids")
    if ids is not None and not all(type(each) is str for each in ids):
        raise invalid(f"{call.name}: option `artifact_ids` must be a list of strings", id)
    return call.runtime.merge_child(_parent(call, id), child_id, **opts).data()


@builtin("__session_child_runs(id: string, opts?: dict) -> list")
def runs(call: Call, id: str, opts: Dict) -> list[Dict]:
    """What a session's log knows of its children, in the order in which they were asked for."""
    return [run.data() for run in child_runs(call.session(id))]
