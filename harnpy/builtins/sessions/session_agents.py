"""Agents of durable sessions: functions, definitions, turns, and children in tasks of their own.

Spec: 10 §A1.15, §C7.1, §C9, §C10.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from harnpy.agent.loop_options import LOOP
from harnpy.builtins.bridge.callables import python_function
from harnpy.builtins.options import check_options as check_loop_options
from harnpy.builtins.sessions.program_loops import ProgramLoops
from harnpy.builtins.sessions.session_values import errors_told, invalid
from harnpy.builtins.sessions.verbs import builtin, read_options
from harnpy.session.agents import AgentDef, Reply, Waiting
from harnpy.session.child_records import ChildSpec, child_runs
from harnpy.session.errors import ChildTimeout
from harnpy.vm.values import Builtin, Duration, Fn, Generator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from harnpy.builtins.sessions.verbs import Call
    from harnpy.session.agent_turn import Turn
    from harnpy.session.child_records import ChildRef, ChildResult
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    Dict = dict[str, Any]
    Agent: TypeAlias = "FunctionAgent | LoopAgent | AgentDef"

# What programs give as agents: functions, definitions, options of loops. Spec: 10 §C7.1, §C9.


_REPLY: Final = frozenset({"text", "messages", "usage", "cost", "model", "stop_reason"})
_WAITING: Final = frozenset({"waiting", "external_id"})
#: What turns call a loop without a definition.
_LOOP: Final = "agent_loop"
#: Options of a loop that a turn doesn't have, and why.
_NOT_OPTIONS: Final = {
    "session_id": "the session is the one that is sent to",
    "messages": "they are the session's",
    "daemon": "a turn ends",
}


def agent_of(call: Call, id: str, given: Value) -> Agent:
    """Return the agent that a function, a definition (it has a `name`) or the options of a loop are."""
    if isinstance(given, Fn | Builtin):
        return FunctionAgent(call, given)
    if "name" in given:
        return AgentDef.of(given)
    _check(call, id, given)
    return LoopAgent(call.vm, given)


def with_options(call: Call, id: str, given: Value, options: Dict) -> Agent:
    """Return the agent of a turn: what is given, else the session's definition, else a loop; with these
    options on top of its own."""
    if given is None:
        stored = call.info(id).definition
        agent: Agent = AgentDef(_LOOP) if stored is None else AgentDef.stored(stored)
    else:
        agent = agent_of(call, id, given)
    _check(call, id, options)
    if isinstance(agent, AgentDef):
        return replace(agent, options={**agent.options, **options})
    if options and isinstance(agent, FunctionAgent):
        key = next(iter(options))
        raise invalid(f"{call.name}: option `{key}` is one of a loop, and `agent` is a function", id)
    return agent if isinstance(agent, FunctionAgent) else LoopAgent(call.vm, {**agent.options, **options})


def _check(call: Call, id: str, options: Dict) -> None:
    for key, why in _NOT_OPTIONS.items():
        if key in options:
            raise invalid(f"{call.name}: option `{key}` isn't one of a turn: {why}", id)
    check_loop_options(call.vm, "agent_loop", options)


class LoopAgent:
    """An agent loop with options of the program."""

    name: Final = _LOOP
    #: It makes its requests itself.
    is_loop: Final = True

    def __init__(self, vm: Vm, options: Dict) -> None:
        self._vm = vm
        self.options = options

    def run(self, turn: Turn) -> None:
        ProgramLoops(self._vm)(AgentDef(_LOOP, options=self.options), turn.session).run(turn)


class FunctionAgent:
    """An agent that is a function of the program: ``fn(messages, turn)``."""

    name: Final = "closure"

    def __init__(self, call: Call, fn: Value) -> None:
        self._call = call
        self._fn = python_function(call.vm, fn)

    def run(self, turn: Turn) -> Any:
        with self._call.durable.handle(turn.session) as id:
            found = self._fn(turn.messages, _turn_value(self._call, turn, id))
        return self._pieces(turn, found) if isinstance(found, Generator) else _answer(found)

    def _pieces(self, turn: Turn, found: Iterator[Value]) -> Iterator[Any]:
        """Give what a generator of the program gives."""
        with self._call.durable.handle(turn.session):
            for item in found:
                yield _answer(item)


def _turn_value(call: Call, turn: Turn, id: str) -> Dict:
    """Return what the program's function gets of a turn. ``turn.tool(name, args, fn, opts?)`` calls a tool
    as `Turn.tool` does."""

    def tool(vm: Vm, name: Value = None, args: Value = None, fn: Value = None, opts: Value = None) -> Value:
        if type(name) is not str or type(fn) not in (Fn, Builtin):
            raise invalid(f"{call.name}: turn.tool takes a name, arguments, and a function", turn.session.id)
        known = "call_id?: string, idempotent?: bool"
        given = read_options(f"{call.name}: turn.tool", opts or {}, known, turn.session.id)
        with errors_told(f"{call.name}: turn.tool", "args", turn.session.id):
            return turn.tool(name, args, python_function(vm, fn), **given)

    return {
        "session": id,
        "turn_id": turn.turn_id,
        "prompt": turn.prompt,
        "system": turn.system,
        "model": turn.model,
        "tools": turn.tools,
        "memo": turn.memo,
        "settings": dict(turn.settings),
        "tool": Builtin("tool", tool, 4),
    }


def _answer(found: Value) -> Any:
    """Return what an agent of the runtime would: a dict without a role is a `Reply`, or says what the turn
    waits for. Raises `Waiting`."""
    if type(found) is not dict or "role" in found:
        return found
    if found and found.keys() <= _WAITING and type(found.get("waiting")) is str:
        raise Waiting(found["waiting"], found.get("external_id"))
    if found and found.keys() <= _REPLY and not ("text" in found and "messages" in found):
        return Reply(**found)
    return found


# Turns: an agent of the program on a prompt. Spec: 10 §C7.1, §C9.


_OWN: Final = ("idempotency_key", "expected_revision")
_RESULT: Final = (
    *("status", "stop_reason", "finish_reason", "text", "messages", "usage", "cost", "steps", "turn_id"),
)


@builtin(
    "__session_send(id: string, prompt: string | dict | list | nil, opts?: dict) -> dict",
    "agent?: closure | dict, idempotency_key?: string, expected_revision?: int",
    LOOP,
)
def send(call: Call, id: str, prompt: Value, opts: Dict) -> Dict:
    """Run an agent on a prompt, as one turn.

    Returns `{status, stop_reason, finish_reason, text, messages, usage, cost, steps, turn_id}`. It is an
    agent loop, of the session's definition if it has one, with the options of `agent_loop`; or `agent`, a
    function of messages and turn, or another definition. Options besides: `idempotency_key`,
    `expected_revision`.
    Spec: 10 §C7.1, §C9.
    """
    own = {key: opts[key] for key in _OWN if key in opts}
    loop = {key: value for key, value in opts.items() if key not in (*_OWN, "agent")}
    runtime, caller = call.runtime, call.durable.caller()
    agent = with_options(call, id, opts.get("agent"), loop)
    result = call.alone(id, partial(runtime.send, id, prompt, agent=agent, caller=caller, **own))
    return {key: getattr(result, key) for key in _RESULT}


# Children: agents in sessions of their own, each in a task of the program. Spec: 10 §A1.15, §C9, §C10.


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
    """Start a child in a session of its own; return `{child_id, session_id, parent_id}`.

    The spec: `agent` (a function of messages and turn, a definition, or options of `agent_loop`), `mode`
    (`handoff`, `fork`, `fresh`), `task`, `context`, `messages`, `detached`, `metadata`, `child_id`,
    `session_id`. It ends with the program, and with the turn that started it unless it is detached.
    Spec: 10 §A1.15, §C9, §C10.
    """
    ref = _spawned(call, id, _spec(call, id, spec))
    return {"child_id": ref.child_id, "session_id": ref.session_id, "parent_id": ref.parent_id}


@builtin("__session_wait_child(child_id: string, opts?: dict) -> dict", "timeout?: float | duration")
def wait_child(call: Call, child_id: str, opts: Dict) -> Dict:
    """Wait for a child, and return its outcome.

    That is `{child_id, session_id, status, summary, reason, error, external_id, usage, artifacts}`. Options:
    `timeout` (seconds, or a duration). Spec: 10 §A1.15, §C9, §C10.
    """
    given = opts.get("timeout")
    seconds = given.ms / 1000 if isinstance(given, Duration) else given
    return _value(_outcome(call, child_id, seconds))


@builtin("__session_run_child(id: string, spec: dict, opts?: dict) -> dict")
def run_child(call: Call, id: str, spec: Dict, opts: Dict) -> Dict:
    """Run a child, and return its outcome. Spec: 10 §A1.15, §C9, §C10."""
    ref = _spawned(call, id, _spec(call, id, spec))
    return _value(_outcome(call, ref.child_id, None))


@builtin("__session_schedule_child(id: string, spec: dict, opts?: dict) -> dict")
def schedule_child(call: Call, id: str, spec: Dict, opts: Dict) -> Dict:
    """Start a child at its spec's `due_at` (seconds since 1970); never if the program ends before.

    Spec: 10 §A1.15, §C9, §C10.
    """
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
    """Record that a child's outcome was used; return what the log says about the child.

    Options: `artifact_ids` (all), `note`, `metadata`. Spec: 10 §A1.15, §C9, §C10.
    """
    ids = opts.get("artifact_ids")
    if ids is not None and not all(type(each) is str for each in ids):
        raise invalid(f"{call.name}: option `artifact_ids` must be a list of strings", id)
    return call.runtime.merge_child(_parent(call, id), child_id, **opts).data()


@builtin("__session_child_runs(id: string, opts?: dict) -> list")
def runs(call: Call, id: str, opts: Dict) -> list[Dict]:
    """Return what a session's log says about its children, in the order of the requests.

    Spec: 10 §A1.15, §C9, §C10.
    """
    return [run.data() for run in child_runs(call.session(id))]
