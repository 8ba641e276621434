"""Turns: an agent of the program on a prompt. Spec: 10 §C7.1, §C9."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from harnpy.agent.option_tables import LOOP
from harnpy.builtins.agents.durable.errors import errors_told, invalid
from harnpy.builtins.agents.durable.verbs import builtin, read_options
from harnpy.builtins.bridge.callables import python_function
from harnpy.builtins.bridge.option_tables import check_options as check_loop_options
from harnpy.session.agents.definition import AgentDef
from harnpy.session.agents.values import Reply, Waiting
from harnpy.vm.values.objects import Builtin, Fn, Generator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.builtins.agents.durable.verbs import Call
    from harnpy.session.agents.turn import Turn
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

    Dict = dict[str, Any]

_REPLY: Final = frozenset({"text", "messages", "usage", "cost", "model", "stop_reason"})
_WAITING: Final = frozenset({"waiting", "external_id"})
_OWN: Final = ("idempotency_key", "expected_revision")
#: Options of a loop that a turn doesn't have, and why.
_NOT_OPTIONS: Final = {
    "session_id": "the session is the one that is sent to",
    "messages": "they are the session's",
    "daemon": "a turn ends",
}
_RESULT: Final = ("status", "stop_reason", "text", "messages", "usage", "cost", "steps", "turn_id")


class _Agent:
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


@builtin(
    "__session_send(id: string, prompt: string | dict | list | nil, opts?: dict) -> dict",
    "agent?: closure | dict, idempotency_key?: string, expected_revision?: int",
    LOOP,
)
def send(call: Call, id: str, prompt: Value, opts: Dict) -> Dict:
    """Run an agent on a prompt, as one turn, and return what became of it."""
    own = {key: opts[key] for key in _OWN if key in opts}
    loop = {key: value for key, value in opts.items() if key not in (*_OWN, "agent")}
    runtime, caller = call.runtime, call.durable.caller()
    agent = _agent(call, id, opts.get("agent"), loop)
    result = call.alone(id, partial(runtime.send, id, prompt, agent=agent, caller=caller, **own))
    return {key: getattr(result, key) for key in _RESULT}


def _agent(call: Call, id: str, given: Value, options: Dict) -> _Agent | AgentDef:
    """Return what the turn runs: a function, or a loop with these options."""
    if isinstance(given, Fn | Builtin):
        if options:
            key = next(iter(options))
            raise invalid(f"{call.name}: option `{key}` is one of a loop, and `agent` is a function", id)
        return _Agent(call, given)
    definition = call.info(id).definition if given is None else given
    if definition is None:
        found = AgentDef("agent_loop")
    else:
        found = AgentDef.stored(definition) if given is None else AgentDef.of(given)
    for key, why in _NOT_OPTIONS.items():
        if key in options:
            raise invalid(f"{call.name}: option `{key}` isn't one of a turn: {why}", id)
    check_loop_options(call.vm, "agent_loop", options)
    return replace(found, options={**found.options, **options})
