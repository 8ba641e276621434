"""Running an agent on a prompt: which agent, calling it, reading what it returned, and the action.

Spec: 10 §C7.1.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from contextlib import aclosing, closing
from copy import copy
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from harnpy import telemetry
from harnpy.session import arguments, clients
from harnpy.session import events as kinds
from harnpy.session.agent_turn import NO_GUARDS, Turn
from harnpy.session.agents import OVERFLOW, AgentDef, TurnResult, Waiting
from harnpy.session.errors import InvalidArgument
from harnpy.session.events import EventDraft
from harnpy.session.history import message_drafts
from harnpy.session.lanes import within
from harnpy.session.messages import text_of
from harnpy.session.turns import events_of
from harnpy.storage.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping
    from typing import Self

    from harnpy.session.agent_turn import Sink
    from harnpy.session.agents import Budget
    from harnpy.session.calling import Caller
    from harnpy.session.events import Event
    from harnpy.session.guards import Guards
    from harnpy.session.log import Session
    from harnpy.session.transaction import Txn

    Message = dict[str, Any]
    Prompt = str | Message | Iterable[Message] | None

# Calling agents: functions and generators, sync and async, and objects with ``run``. Spec: 10 §C7.1.


def name_of_agent(agent: Any) -> str:
    """Return what an agent is called."""
    return str(getattr(agent, "name", None) or getattr(agent, "__name__", type(agent).__name__))


def check_agent(agent: Any, session_id: str) -> None:
    """Raise `Unsupported` where there is no agent, `InvalidArgument` for what is none."""
    if agent is None:
        raise Unsupported(f"session '{session_id}' has no agent: pass agent= or create it with a definition")
    if not callable(agent) and not callable(getattr(agent, "run", None)):
        kind = type(agent).__name__
        raise InvalidArgument(f"an agent is a function or has a method `run`, got {kind}", session_id)


def run_agent(agent: Any, turn: Turn) -> None:
    """Run an agent on its turn: whatever it gives, the turn gets."""
    call = turn.session.caller
    run = getattr(agent, "run", None)
    if callable(run):
        found = call(run, turn)
    elif _takes_turn(agent):
        found = call(agent, turn.messages, turn)
    else:
        found = call(agent, turn.messages)
    if found is None or type(found) is str:
        turn.answer(found)
    elif inspect.isgenerator(found):
        with closing(found):
            for item in found:
                seen = turn.take(item)
                if seen is not None:
                    seen.result()
                turn.check()
    elif inspect.isasyncgen(found):
        call(_drain, turn, found)
    else:
        turn.answer(found)


async def _drain(turn: Turn, items: AsyncGenerator[Any, None]) -> None:
    async with aclosing(items):
        async for item in items:
            seen = turn.take(item)
            if seen is not None:
                import asyncio

                await asyncio.wrap_future(seen)
            turn.check()


def _takes_turn(agent: Any) -> bool:
    """Return whether a function wants a second argument: one without a default, or called ``turn``."""
    if type(agent) is FunctionType and not agent.__dict__:  # not wrapped: it says so itself, and at once
        names = agent.__code__.co_varnames[: agent.__code__.co_argcount]
        defaults = len(agent.__defaults__ or ())
        return len(names) > 1 and (len(names) - defaults > 1 or names[1] == "turn")
    try:
        parameters = inspect.signature(agent).parameters.values()
    except ValueError:  # built in, and tells nothing
        return False
    positional = [
        each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    return len(positional) > 1 and (
        positional[1].default is inspect.Parameter.empty or positional[1].name == "turn"
    )


# Which agent a turn has: the one that is passed, or the session's definition in a loop. Spec: 10 §C7.1.


#: The option of any agent: how often it is called again with a smaller window when a request was too long.
RETRIES: Final = "overflow_retries"


class AgentFactory(ABC):
    """Makes what runs a definition: an object with ``run(turn)``, for one turn."""

    #: What it runs in the place of a session's own definition.
    definition: AgentDef | None = None

    def running(self, definition: AgentDef) -> Self:
        """Return the same factory, which runs that definition in whatever session."""
        factory = copy(self)
        factory.definition = definition
        return factory

    @abstractmethod
    def __call__(self, definition: AgentDef, session: Any) -> Any:
        """Return what runs the definition in the session's next turn.

        Nothing has been appended yet: whatever is wrong with the definition raises here.
        """

    @abstractmethod
    def check(self, definition: AgentDef) -> None:
        """Raise for a definition that can't be run, as far as shows without a session."""

    @abstractmethod
    def close(self, call: Caller) -> None:
        """End the connections that were opened for what ``call`` called."""


def check_send(agent: Any, session_id: str, options: Mapping[str, Any]) -> None:
    """Raise `InvalidArgument` for what is no agent, and for options that it can't have."""
    if agent is None or type(agent) is AgentDef or (not options and type(agent) is FunctionType):
        return
    if isinstance(agent, AgentDef | AgentFactory):
        return
    if isinstance(agent, type) and (issubclass(agent, AgentDef | AgentFactory) or hasattr(agent, "run")):
        raise InvalidArgument(f"an agent is no class: pass an instance of {agent.__name__}", session_id)
    check_agent(agent, session_id)
    retries = options.get(RETRIES, 0)
    if type(retries) is not int or retries < 0:
        raise InvalidArgument(f"send: {RETRIES} must be an int >= 0, got {retries!r}", session_id)
    given = next((name for name in options if name != RETRIES), None)
    if given is not None:
        name = name_of_agent(agent)
        raise InvalidArgument(
            f"send: unknown option '{given}': those of a loop are for definitions, and agent {name} is none",
            session_id,
        )


def resolved(agent: Any, session: Txn, options: Mapping[str, Any], budget: Budget | None = None) -> Any:
    """Return the agent to run in a session: a function, or an object with ``run(turn)``.

    ``options`` are added to those of a definition; a ``budget`` takes the place of its own. Raises
    `Unsupported` where there is no agent, or no loop for the definition, and whatever is wrong with it.
    """
    if type(agent) is FunctionType and not options:
        return agent
    agents = session.agents
    if agent is None:
        agent = agents if agents is not None else session.live.agent_def
    if isinstance(agent, AgentFactory):
        agents, agent = agent, agent.definition or session.live.agent_def
    if isinstance(agent, dict):
        agent = AgentDef.stored(agent)
    check_send(agent, session.id, options)
    if not isinstance(agent, AgentDef):
        check_agent(agent, session.id)
        return agent
    if not isinstance(agents, AgentFactory):
        raise Unsupported(
            f"agent definition '{agent.name}' has no loop to run in: open the runtime with harnpy.runtime(), "
            "or pass agents=LoopFactory()"
        )
    if options:
        agent = replace(agent, options={**agent.options, **options})
    if budget is not None:
        agent = replace(agent, budget=budget)
    return agents(agent, session)


# `Send`: the action that runs an agent on a prompt, and what it leaves in the log. Spec: 10 §C7.1.


_TURNS: Final = frozenset({kinds.TURN_STARTED})
_ANSWERS: Final = ("assistant", "tool")


class Send:
    """Runs an agent on a prompt: a text, a message, messages, or None for what is there.

    Without an ``agent`` it is the session's own; ``options`` are added to those of a definition. ``sink``
    gets the pieces of a streamed answer; after ``timeout`` seconds the agent is stopped. ``client`` is the
    live client that sends. ``events`` are those of the turn, once it has run.
    """

    name: ClassVar[str] = "send"
    mode: ClassVar[str] = "stream"

    def __init__(
        self,
        prompt: Prompt,
        agent: Any = None,
        *,
        sink: Sink | None = None,
        options: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        guards: Guards = NO_GUARDS,
        client: str | None = None,
    ) -> None:
        if client is not None:
            clients.check_client_id(client)
        if type(prompt) is str:
            self._prompt = [EventDraft(kinds.MESSAGE_ADDED, {"role": "user", "content": prompt})]
        else:
            given = {"content": prompt} if isinstance(prompt, str) else prompt
            self._prompt = [] if given is None else message_drafts(given)
        if prompt is not None and not self._prompt:
            raise InvalidArgument("runtime send: prompt must contain at least one message")
        if sink is not None:
            arguments.function("stream", sink)
        self._agent = agent
        self._sink = sink
        self._options = options or {}
        self._timeout = None if timeout is None else arguments.seconds("timeout", timeout)
        self._guards = guards
        self._client = client
        self.events: list[Event] = []

    def __call__(self, session: Txn) -> None:
        agent = resolved(self._agent, session, self._options, self._guards.budget)
        if self._client is not None:
            self._sign(session, self._client)
        for draft in self._prompt:
            draft.turn = None  # that of the turn that this one takes the place of
        session.check(*self._prompt)
        turn = Turn(session, name_of_agent(agent), self._sink, self._guards)
        # A definition's loop asks its model again by itself.
        is_loop = getattr(agent, "is_loop", False)
        retries = 0 if is_loop else self._options.get(RETRIES, 1)
        turn.begin(self._prompt, session.key, is_looped=is_loop)
        session.on_appended = None
        span = telemetry.OFF if is_loop else telemetry.agent_span(turn.agent, session.id)
        if self._timeout is None and span is telemetry.OFF:
            waiting = _answered(agent, turn, retries)
        else:
            with within(self._timeout, session.caller, session.id), span:
                waiting = _answered(agent, turn, retries)
        turn.finish(waiting)
        self.events = turn.events

    def _sign(self, session: Txn, client_id: str) -> None:
        """Have the prompt say which client typed it. Raises `NotController`, unless the turn has begun."""
        if session.key is None or not has_turn(session.live, session.key):
            clients.check_sender(session.live, client_id)
            # Until the turn's beginning is stored somebody may take over.
            session.on_appended = lambda _: clients.check_sender(session.live, client_id)
        signature = {"live_session": {"client_id": client_id}}
        for draft in self._prompt:
            if draft.data["role"] == "user":
                draft.data["metadata"] = {**(draft.data.get("metadata") or {}), **signature}


def _answered(agent: Any, turn: Turn, retries: int) -> dict[str, Any] | None:
    """Run an agent to its end. Return what the turn waits for then; None for nothing."""
    waiting = None
    try:
        try:
            _run(agent, turn, retries)
        except Waiting as wait:
            waiting = {"reason": wait.reason}
            if wait.external_id is not None:
                waiting["external_id"] = wait.external_id
        turn.check()
    except BaseException:
        turn.leave()
        raise
    return waiting


def _run(agent: Any, turn: Turn, retries: int) -> None:
    """Run an agent, once more with a smaller window when its model has refused the request as too long."""
    attempt = 0
    while True:
        try:
            return run_agent(agent, turn)
        except Exception as error:
            attempt += 1
            is_overflow = getattr(error, "reason", None) == OVERFLOW
            if not is_overflow or attempt > retries or not turn.recover(attempt, error):
                raise


def has_turn(session: Session, key: str) -> bool:
    """Return whether the session has a turn of that key, ended or not."""
    starts = session.stream.read(types=_TURNS, reverse=True)
    return any(start.body.get("key") == key and start.seq > session.origin.shared for start in starts)


def recorded(session: Session, key: str) -> list[Event]:
    """Return the events of the last turn of that key. Raises `InvalidArgument` if another action had it."""
    for start in session.stream.read(types=_TURNS, reverse=True):
        if start.body.get("key") == key:
            return [session.origin.own(event) for event in (start, *events_of(session, start))]
    raise InvalidArgument(f"idempotency key '{key}' was used by an action that is no turn", session.id)


def result_of(session: Session, events: list[Event]) -> TurnResult:
    """Return what became of an ended turn, from its events."""
    messages, cost, end, reply, said = [], 0.0, None, None, None
    for event in events:
        if event.type == kinds.MESSAGE_ADDED:
            if event.body["role"] in _ANSWERS:
                messages.append(event.body)
                if event.body["role"] == "assistant":
                    said = event.body
        elif event.type == kinds.STEP_COMPLETED:
            reply = event.body.get("reply")
        elif event.type == kinds.TURN_COMPLETED:
            end = event.body
        cost += event.cost
    assert end is not None, "an ended turn says how"
    return TurnResult(
        status=_status(end),
        stop_reason=end["turn_stop_reason"],
        finish_reason=None if reply is None else reply.get("stop_reason"),
        text=end["text"] if "text" in end else text_of(said) if said is not None else "",
        messages=messages,
        usage=end.get("usage"),
        cost=cost,
        steps=end["steps"],
        turn_id=events[0].id,
        session=session,
    )


def _status(end: dict[str, Any]) -> Any:
    if "error" in end:
        return "failed"
    reason = end["turn_stop_reason"]
    return reason if reason in ("completed", "waiting") else "stopped"
