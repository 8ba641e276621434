"""A turn as its agent sees it: what it reads and writes, and its tool calls.

Spec: 10 §A1.13, §C7.1, §C16.1.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from harnpy import telemetry
from harnpy.faults import is_cancelled
from harnpy.formats.dicts import detached
from harnpy.formats.json import compact_json
from harnpy.formats.tool_messages import calls_of
from harnpy.session import events as kinds
from harnpy.session.agents import YIELDED, Pairing, Reply, messages_of, problem_of_use, unexpected
from harnpy.session.arguments import function
from harnpy.session.errors import (
    AgentError,
    ApprovalDenied,
    InvalidArgument,
    SessionError,
    ToolAmbiguous,
)
from harnpy.session.events import EventDraft
from harnpy.session.guards import Guards, check_budget
from harnpy.session.lifecycle import tool_key
from harnpy.session.prompt import SYSTEM, known_to_all, memo_message
from harnpy.session.turns import Fact, usage
from harnpy.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from concurrent.futures import Future

    from harnpy.session.events import Event
    from harnpy.session.guards import ApprovalGate
    from harnpy.session.transaction import Txn

    Message = dict[str, Any]
    Sink = Callable[[str], Any]

# Calls of tools by agents: each is logged, and carried out once. Spec: 10 §A1.13, §C7.1.


_MESSAGES = frozenset({kinds.MESSAGE_ADDED})


class CallingTurn(Protocol):
    """The part of a turn that calls need."""

    @property
    def events(self) -> list[Event]: ...

    @property
    def session(self) -> Txn: ...

    @property
    def guards(self) -> Guards: ...

    @property
    def turn_id(self) -> str: ...

    def write(self, *drafts: EventDraft) -> None: ...


class Call:
    """A call of a tool, and its key. Without ``id`` it is the turn's own, and gets one."""

    def __init__(self, turn: CallingTurn, name: str, args: Any, id: str | None) -> None:
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

    def replay(self, end: Event) -> Any:
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
    """Return whether the agent runs on a loop, which it can't keep from running."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


def _carried_out(call: Call, fn: Callable[[Any], Any], idempotent: bool) -> Any:
    call.begin()
    recorded = call.turn.session.recorded_call(kinds.TOOL_STARTED, tool=call.name, id=call.id)
    if recorded is not None:
        if recorded.end is not None:
            return _replayed(call, recorded.end) if _is_async(fn) else call.replay(recorded.end)
        if not idempotent:
            raise ToolAmbiguous(call.key, call.turn.session.id)
    try:
        if inspect.iscoroutinefunction(fn):
            return _waited(call, fn(call.args))
        with telemetry.tool_span(call.name, call.id):
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
        with telemetry.tool_span(call.name, call.id):
            found = await output
    except BaseException as error:
        call.fail(error)
        raise
    return call.end(found)


async def _known(done: dict[str, Any]) -> Any:
    return _recorded(done)


async def _replayed(call: Call, end: Event) -> Any:
    return call.replay(end)


def _is_async(fn: Callable[[Any], Any]) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


def _recorded(done: dict[str, Any]) -> Any:
    if "error" in done:
        raise AgentError(done["error"])
    return done["details"]["output"] if "details" in done else done["output"]


def _place(turn: CallingTurn, id: str) -> tuple[str, int] | None:
    """Return the id of the assistant's last message that makes the call, and the call's number there."""
    for event in turn.session.stream.read(types=_MESSAGES, reverse=True):
        ids = [call.id for call in calls_of(event.body)]
        if id in ids:
            return turn.session.origin.own(event).id, ids.index(id)
    return None


# A turn as its agent sees it: what it reads, and through what it writes. Spec: 10 §C7.1, §C16.1.


NO_GUARDS = Guards()
#: What an agent has to say that gives no `Reply`.
_SILENT = Reply()
_SETTINGS = "settings."
_REQUEST = "settings.request."


class Step:
    """One call of a model, while it lasts. Before its end set ``usage`` (tokens by name), ``cost`` (USD)."""

    def __init__(self, turn: Turn, model: str | None) -> None:
        self._turn = turn
        self._model = model
        self.usage: dict[str, Any] | None = None
        self.cost = 0.0

    def __enter__(self) -> Step:
        self._turn.begin_step(self._model)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        told = None if error is None else str(error) or type(error).__name__
        self._turn.end_step(self.usage, self.cost, told)


class Turn:
    """The turn as its agent sees it, which gets it beside the messages. ``session`` can be read and written;
    ``prompt`` are the messages that were sent, ``messages`` the request: window, prompt, memo."""

    def __init__(
        self, session: Txn, agent: str, sink: Sink | None = None, guards: Guards = NO_GUARDS
    ) -> None:
        self.session = session
        self.guards = guards
        self._began = session.clock.monotonic()
        self.agent = agent
        self._events: list[Event] = []
        self._open: Callable[[], object] | None = None  # writes the beginning, as long as that waits
        self._opening: list[EventDraft] = []
        self._prompt: list[Message] | None = None
        self._prompts = 0  # how many of the events are its messages
        self.messages: list[Message] = []
        self._sink = sink
        self._held: list[EventDraft] = []
        self._pieces: list[str] = []
        self._pairing = Pairing(agent)
        self._steps = 0
        self._in_step = self._is_own_step = self._is_looped = False
        self._reply: Reply | None = None
        #: What people read of the answer, where its message has markup.
        self.visible: str | None = None

    @property
    def events(self) -> list[Event]:
        """The events that the turn has written, its beginning first."""
        if self._open is not None:
            self._open()
        return self._events

    # What an agent reads.

    @property
    def turn_id(self) -> str:
        return self.events[0].id

    @property
    def prompt(self) -> list[Message]:
        """The messages that were sent: copies."""
        if self._prompt is None:
            self._prompt = [detached(event.body) for event in self.events[1 : 1 + self._prompts]]
        return self._prompt

    @property
    def system(self) -> str | None:
        """The system prompt."""
        system: str | None = self.session.get(SYSTEM)
        return system

    @property
    def model(self) -> Any:
        """The model that was chosen; None: the default one."""
        return self.session.get("model")

    @property
    def tools(self) -> list[str] | None:
        """The names of the tools that were chosen; None: nobody chose."""
        tools: list[str] | None = self.session.get("tools")
        return tools

    @property
    def memo(self) -> Any:
        return self.session.memo

    @property
    def settings(self) -> dict[str, Any]:
        """The session's own settings."""
        return {
            key.removeprefix(_SETTINGS): detached(known.value)
            for key, known in self.session.view.registers.items()
            if key.startswith(_SETTINGS) and not key.startswith(_REQUEST) and known.value is not None
        }

    @property
    def cancelled(self) -> bool:
        """Return whether nobody wants the answer any more."""
        try:
            self.check()
        except BaseException as error:
            if is_cancelled(error):
                return True
            raise
        return False

    def check(self) -> None:
        """Raise `asyncio.CancelledError` if nobody wants the answer any more."""
        self.session.caller.check()

    # What an agent does.

    def emit(self, text: str) -> None:
        """Show a text to whoever streams. It becomes part of no message."""
        self.show(text)

    def step(self, model: str | None = None) -> Step:
        """Return a context manager around one call of a model."""
        return Step(self, model)

    def tool(
        self,
        name: str,
        args: Any,
        fn: Callable[[Any], Any],
        *,
        call_id: str | None = None,
        idempotent: bool = False,
    ) -> Any:
        """Return ``fn(args)``, an awaitable when that is one, and log the call.

        A call of an assistant's message, which ``call_id`` names, is carried out once: later its output is
        returned. Where approvals are asked for, an agent that runs on a loop gets an awaitable. Raises what
        ``fn`` raises, `ApprovalDenied`, and `ToolAmbiguous` for a call that began and never ended, unless it
        is ``idempotent``.
        """
        return run(Call(self, name, args, call_id), fn, idempotent=idempotent)

    def ask(self, prompt: str) -> Any:
        """Ask a person, through the `InputGate` that the turn was sent with, and return the answer; an
        awaitable, in an agent that runs on a loop. Raises `InvalidArgument` without a gate."""
        gate = self.guards.inputs
        if gate is None:
            raise InvalidArgument("a turn can't ask anybody that was sent without `inputs`", self.session.id)
        if is_on_loop():
            return gate.request(self.session, prompt, self)
        return self.session.caller(gate.request, self.session, prompt, self)

    # What the runtime does with it.

    def begin(self, prompt: list[EventDraft], key: str | None, *, is_looped: bool = False) -> None:
        """Write the turn's beginning and the prompt, and read the request, unless a loop makes its own. Then
        the beginning waits for the loop's first step, if nobody may be in between."""
        data = {"agent_id": self.agent} if key is None else {"agent_id": self.agent, "key": key}
        started = EventDraft(kinds.TURN_STARTED, data)
        for draft in prompt:
            draft.turn = started
        self._prompts, self._opening = len(prompt), [started, *prompt]
        self._open = self._write_opening
        if is_looped:
            if not self.session.may_wait:
                self.open()
            return
        self.open()
        self.session.resize_if_due(turn=self._events[0])
        self._read_request()

    def open(self) -> None:
        """Write the turn's beginning, if that hasn't been done."""
        if self._open is not None:
            self._open()

    def opening(self, write: Callable[[], object]) -> list[EventDraft]:
        """Return the drafts of the beginning for who writes them with more: ``write()`` does it at once. None
        where they are written."""
        if self._open is None:
            return []
        self._open = write
        return self._opening

    def wrote(self, events: list[Event]) -> None:
        """Take notice of events of the turn that were written."""
        self._open = None
        self._events += events

    def hold(self, drafts: list[EventDraft]) -> None:
        """Write these with what the turn writes next: its end."""
        self._held += drafts

    def _write_opening(self) -> None:
        self.wrote(self.session.write(*self._opening))

    def recover(self, attempt: int, error: Exception) -> bool:
        """Make the window smaller for a model that has refused the request as too long, and read it again.

        Return False where that is of no use, or the agent has already answered something.
        """
        told = any(event.type == kinds.MESSAGE_ADDED for event in self.events[1 + self._prompts :])
        if told or self._pieces or self._held:
            return False
        retry = {
            "agent_id": self.agent,
            "scope": "overflow_recovery",
            "attempt": attempt,
            "error": str(error),
        }
        self.write(EventDraft(kinds.ESCALATION_RETRIED, retry))
        self.start_answer()
        report = self.session.resize_after_overflow(turn=self.events[0])
        self._read_request()
        return report is not None and report.shrunk

    def _read_request(self) -> None:
        self.messages = [copy() for copy in self.session.stable(_copier).messages]
        memo = self.session.view.register("memo")
        if memo is not None:
            self.messages.append(memo_message(memo))

    def write(self, *drafts: EventDraft) -> None:
        """Append events of the turn."""
        begun = self.events[0]
        for draft in drafts:
            draft.turn = begun
        self._events += self.session.write(*drafts)

    def begin_step(self, model: str | None, *, own: bool = True) -> None:
        """Write that a model is called, behind the end of a step that the agent didn't begin itself."""
        if self._in_step:
            if self._is_own_step:
                raise AgentError(f"agent {self.agent} began a step inside a step")
            self._held.append(self._step_completed(None, 0.0, None))
        budget = self.guards.budget
        if budget is not None:
            clock = self.session.clock
            seconds = clock.monotonic() - self._began
            check_budget(budget, self.events, self._steps, seconds, clock.now())
        self._held.append(self._step_started(model))
        self._is_own_step = own
        self._write_held()

    def end_step(self, used: dict[str, Any] | None, cost: float, error: str | None) -> None:
        """Write what a step took. Raises `AgentError` for what that can't be."""
        problem = problem_of_use(used, cost)
        if problem is not None:
            told = f"agent {self.agent} ended a step whose {problem}"
            self.end_step(None, 0.0, error or told)
            raise AgentError(told)
        self._held.append(self._step_completed(used, cost, error))
        self._write_held()

    def answer(self, found: Any) -> None:
        """Take what the agent returned. Nothing of it is written before `finish`."""
        messages = messages_of(self.agent, found)
        self._pairing.take(messages)
        self._pairing.close()
        self._hold(messages)
        if isinstance(found, Reply):
            self._reply = found

    def take(self, item: Any) -> Future[None] | None:
        """Take what the agent yielded; a message that is complete is written. Return what has a result
        once whoever streams has seen it, if they want to be waited for."""
        if self._reply is not None:
            raise AgentError(f"agent {self.agent} yielded {type(item).__name__} after its Reply")
        if isinstance(item, str):
            self._pieces.append(item)
            return self.show(item)
        if not isinstance(item, dict | Reply):
            raise unexpected(self.agent, "yielded", item, YIELDED)
        messages = messages_of(self.agent, item)
        self._take_pieces()
        self._pairing.take(messages)
        self._hold(messages)
        if isinstance(item, Reply):
            self._reply = item
            return None
        if not self._steps:
            self._held.insert(0, self._step_started(None))
            self._is_own_step = False
        self._write_held()
        return None

    def finish(self, waiting: dict[str, Any] | None = None) -> None:
        """End the turn as planned; ``waiting`` is the data of the ``wait_started`` that it ends with."""
        self.session.refresh_if_behind()
        self._take_pieces()
        if waiting is None:
            self._pairing.close()
        self._end_last_step()
        if self._is_looped and self.session.is_followed:
            self._write_held()  # others work before the end is stored
        reason = "completed" if self._reply is None else self._reply.stop_reason
        if waiting is not None:
            self._held.append(EventDraft(kinds.WAIT_STARTED, waiting))
            reason = "waiting"
        facts = [Fact(event.type, event.body) for event in self._events if event.type == kinds.STEP_COMPLETED]
        facts += [Fact(draft.type, draft.data) for draft in self._held if draft.type == kinds.STEP_COMPLETED]
        used = usage(facts)
        end: dict[str, Any] = {"agent_id": self.agent, "steps": self._steps}
        if used is not None:
            end["usage"] = used
        if self.visible is not None:
            end["text"] = self.visible
        self._held.append(EventDraft(kinds.TURN_COMPLETED, {**end, "turn_stop_reason": reason}))
        self._write_held()

    def looped(self, stop_reason: str, steps: int) -> None:
        """Take notice that an agent loop was the turn, and has written all of it but its end."""
        self._is_looped, self._steps, self._reply = True, steps, Reply(stop_reason=stop_reason)
        self.session.keeps_answer = True

    def show(self, text: str) -> Future[None] | None:
        """`emit` a text. Return what has a result once it was seen, if whoever streams wants to be waited
        for."""
        if not isinstance(text, str):
            raise unexpected(self.agent, "emitted", text, "text")
        self.show_watches(text)
        return self.show_sender(text)

    def show_watches(self, text: str) -> None:
        """Show a text to those who watch the session."""
        if not self.session.is_replaying:
            self.session.live.show(self.events[0].seq, text)

    @property
    def is_streamed(self) -> bool:
        """Whether the sender is shown the answers as they come."""
        return self._sink is not None

    def show_sender(self, text: str) -> Future[None] | None:
        """Show a text to whoever streams. Return what has a result once it was seen, if they want to be
        waited for."""
        if self._sink is None:
            return None
        told = self._sink(text)
        if told is None:
            return None
        from concurrent.futures import Future

        if isinstance(told, Coroutine):
            told.close()
            raise InvalidArgument("`stream` must be a plain function: `aio` has `stream()` for loops")
        return told if isinstance(told, Future) else None

    def leave(self) -> None:
        """Write what is there of a turn that fails: its beginning, and what its loop has come to."""
        with suppress(StorageError, SessionError):  # whoever ends the turn says what went wrong
            self.open()
            if self._is_looped:
                self._write_held()
        self.start_answer()  # what was shown becomes no message

    def start_answer(self) -> None:
        """Have the next text that is shown take the place of what was shown of the answer: a model that
        failed is asked again."""
        if self._events:
            self.session.live.end_answer(self._events[0].seq)

    def _take_pieces(self) -> None:
        if not self._pieces:
            return
        messages = messages_of(self.agent, "".join(self._pieces))
        self._pieces = []
        self._pairing.take(messages)
        self._hold(messages)

    def _hold(self, messages: list[Message]) -> None:
        self._held += [EventDraft(kinds.MESSAGE_ADDED, message) for message in messages]

    def _write_held(self) -> None:
        held, self._held = self._held, []
        if held:
            self.write(*held)

    def _end_last_step(self) -> None:
        """Put before the last messages what they took: as a step, if the agent has none of its own."""
        if self._is_looped:
            return
        reply = self._reply or _SILENT
        ends: list[EventDraft] = []
        if not self._steps or (not self._in_step and (reply.usage or reply.cost or reply.model)):
            ends.append(self._step_started(reply.model))
        if self._in_step:
            ends.append(self._step_completed(reply.usage, reply.cost, None))
        self._held[:0] = ends

    def _step_started(self, model: str | None) -> EventDraft:
        self._steps += 1
        self._in_step = True
        data = {"agent_id": self.agent, "iteration": self._steps}
        return EventDraft(kinds.STEP_STARTED, data if model is None else {**data, "model": model})

    def _step_completed(self, used: dict[str, Any] | None, cost: float, error: str | None) -> EventDraft:
        self._in_step = False
        data: dict[str, Any] = {"agent_id": self.agent, "iteration": self._steps}
        if used is not None:
            data["usage"] = used
        if error is not None:
            data["error"] = error
        return EventDraft(kinds.STEP_COMPLETED, data, cost=cost)


def _copier(message: Message) -> Callable[[], Message]:
    """Return what makes copies of a message that share no list and no dict with it."""
    message = known_to_all(message)
    for value in message.values():
        if type(value) is not str:
            return partial(detached, message)
    return message.copy
