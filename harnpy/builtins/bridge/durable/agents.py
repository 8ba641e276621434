"""What programs give as agents: functions, definitions, options of loops. Spec: 10 §C7.1, §C9."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from harnpy.builtins.bridge.callables import python_function
from harnpy.builtins.bridge.durable.errors import errors_told, invalid
from harnpy.builtins.bridge.durable.program_loops import ProgramLoops
from harnpy.builtins.bridge.durable.verbs import read_options
from harnpy.builtins.bridge.option_tables import check_options as check_loop_options
from harnpy.session.agents.definition import AgentDef
from harnpy.session.agents.values import Reply, Waiting
from harnpy.vm.values.objects import Builtin, Fn, Generator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.builtins.bridge.durable.verbs import Call
    from harnpy.session.agents.turn import Turn
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

    Dict = dict[str, Any]
    from typing import TypeAlias

    Agent: TypeAlias = "FunctionAgent | LoopAgent | AgentDef"

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
