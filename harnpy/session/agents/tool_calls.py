"""Calls of tools by agents: each is logged, and carried out once. Spec: 10 §A1.13, §C7.1."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, Protocol

from harnpy.session import events as kinds
from harnpy.session.errors import AgentError, ApprovalDenied, ToolAmbiguous
from harnpy.session.events import EventDraft
from harnpy.session.parts.arguments import function
from harnpy.session.shown.message_parts import calls_of
from harnpy.session.turns.calls import tool_key
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harnpy.session.events import Event
    from harnpy.session.guards.approvals import ApprovalGate
    from harnpy.session.guards.guards import Guards
    from harnpy.session.runtime.txn import Txn

_MESSAGES = frozenset({kinds.MESSAGE_ADDED})


class Turn(Protocol):
    """What calls need of a turn."""

    events: list[Event]

    @property
    def session(self) -> Txn: ...

    @property
    def guards(self) -> Guards: ...

    @property
    def turn_id(self) -> str: ...

    def write(self, *drafts: EventDraft) -> None: ...


class Call:
    """A call of a tool, and its key. Without ``id`` it is the turn's own, and gets one."""

    def __init__(self, turn: Turn, name: str, args: Any, id: str | None) -> None:
        self.turn = turn
        self.name = name
        self.args = args
        number = sum(event.type == kinds.TOOL_STARTED for event in turn.events)
        self.id = f"call_{number + 1}" if id is None else id
        place = None if id is None else _place(turn, id)
        message, number = place or (turn.turn_id, number)
        self.text = compact_json(args)
        self.key = tool_key(turn.session.id, message, name, number, self.text)
        self._began = 0.0

    def begin(self) -> None:
        self._began = self.turn.session.clock.monotonic()
        data = {"tool": self.name, "args": self.text, "id": self.id, "idempotency_key": self.key}
        self.turn.write(EventDraft(kinds.TOOL_STARTED, data))

    def end(self, output: Any) -> Any:
        """Log what the call came to, and return it."""
        told = output if isinstance(output, str) else compact_json(output)
        outcome: dict[str, Any] = {"output": told}
        if told is not output:
            outcome["details"] = {"output": output}
        self._end(outcome)
        return output

    def refuse(self, error: Exception) -> None:
        """Log that it wasn't carried out."""
        data = {"tool": self.name, "id": self.id, "idempotency_key": self.key}
        self.turn.write(EventDraft(kinds.TOOL_COMPLETED, {**data, "rejected": True, "error": str(error)}))

    def fail(self, error: BaseException) -> None:
        self._end({"error": str(error) or type(error).__name__})

    def recall(self, end: Event) -> Any:
        """Return what the call came to in an earlier run of the turn."""
        self.turn.write(EventDraft(kinds.TOOL_COMPLETED, end.data))
        return _recorded(end.data)

    def _end(self, outcome: dict[str, Any]) -> None:
        took = round((self.turn.session.clock.monotonic() - self._began) * 1000)
        data = {"tool": self.name, "id": self.id, "idempotency_key": self.key, **outcome}
        self.turn.write(EventDraft(kinds.TOOL_COMPLETED, {**data, "duration_ms": took}))


def run(call: Call, fn: Callable[[Any], Any], *, idempotent: bool) -> Any:
    """Return what the call comes to, or came to already.

    Raises `ToolAmbiguous` where it began and has no end, unless it is ``idempotent``, `AgentError` with the
    text of an error that it came to before, and `ApprovalDenied`. On a loop, what needs an approval is
    returned as an awaitable.
    """
    function("fn", fn)
    known = call.turn.session.find_call(call.key)
    if known is not None and known.type == kinds.TOOL_COMPLETED:
        return _known(known.data) if _is_async(fn) else _recorded(known.data)
    if known is not None and not idempotent:
        raise ToolAmbiguous(call.key, call.turn.session.id)
    gate = call.turn.guards.approvals
    if gate is None:
        return _carried_out(call, fn, idempotent)
    if is_on_loop():
        return _once_admitted(call, fn, idempotent, gate)
    call.turn.session.caller(_admitted, call, gate)
    return _carried_out(call, fn, idempotent)


def is_on_loop() -> bool:
    """Whether the agent runs on a loop, which it can't keep from running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _carried_out(call: Call, fn: Callable[[Any], Any], idempotent: bool) -> Any:
    call.begin()
    recalled = call.turn.session.recall(kinds.TOOL_STARTED, tool=call.name, id=call.id)
    if recalled is not None:
        if recalled.end is not None:
            return _recalled(call, recalled.end) if _is_async(fn) else call.recall(recalled.end)
        if not idempotent:
            raise ToolAmbiguous(call.key, call.turn.session.id)
    try:
        output = fn(call.args)
        return _waited(call, output) if inspect.isawaitable(output) else call.end(output)
    except BaseException as error:
        call.fail(error)
        raise


async def _admitted(call: Call, gate: ApprovalGate) -> None:
    try:
        await gate.admit(call.turn.session, call.name, call.text, call.turn)
    except ApprovalDenied as denied:
        call.refuse(denied)
        raise


async def _once_admitted(call: Call, fn: Callable[[Any], Any], idempotent: bool, gate: ApprovalGate) -> Any:
    await _admitted(call, gate)
    output = _carried_out(call, fn, idempotent)
    return await output if inspect.isawaitable(output) else output


async def _waited(call: Call, output: Awaitable[Any]) -> Any:
    try:
        found = await output
    except BaseException as error:
        call.fail(error)
        raise
    return call.end(found)


async def _known(done: dict[str, Any]) -> Any:
    return _recorded(done)


async def _recalled(call: Call, end: Event) -> Any:
    return call.recall(end)


def _is_async(fn: Callable[[Any], Any]) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


def _recorded(done: dict[str, Any]) -> Any:
    if "error" in done:
        raise AgentError(done["error"])
    return done["details"]["output"] if "details" in done else done["output"]


def _place(turn: Turn, id: str) -> tuple[str, int] | None:
    """Return the id of the assistant's last message that makes the call, and the call's number there."""
    for event in turn.session.stream.read(types=_MESSAGES, reverse=True):
        ids = [call.id for call in calls_of(event.body)]
        if id in ids:
            return turn.session.origin.own(event).id, ids.index(id)
    return None
