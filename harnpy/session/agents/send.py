"""`Send`: the action that runs an agent on a prompt, and what it leaves in the log. Spec: 10 §C7.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from harnpy.session import events as kinds
from harnpy.session.agents.factories import RETRIES, resolved
from harnpy.session.agents.running import name_of_agent, run_agent
from harnpy.session.agents.turn import NO_GUARDS, Turn
from harnpy.session.agents.values import OVERFLOW, TurnResult, Waiting
from harnpy.session.errors import InvalidArgument
from harnpy.session.parts import arguments
from harnpy.session.parts.history import message_drafts
from harnpy.session.runtime.limits import within
from harnpy.session.turns.open_turns import events_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harnpy.session.agents.turn import Sink
    from harnpy.session.events import Event
    from harnpy.session.guards.guards import Guards
    from harnpy.session.log import Session
    from harnpy.session.runtime.txn import Txn

    Message = dict[str, Any]
    Prompt = str | Message | Iterable[Message] | None

_TURNS: Final = frozenset({kinds.TURN_STARTED})
_ANSWERS: Final = ("assistant", "tool")


class Send:
    """Runs an agent on a prompt: a text, a message, messages, or None for what is there.

    Without an ``agent`` it is the session's own; ``options`` are added to those of a definition. ``sink``
    gets the pieces of a streamed answer; after ``timeout`` seconds the agent is stopped. ``events`` are those
    of the turn, once it has run.
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
    ) -> None:
        given = {"content": prompt} if isinstance(prompt, str) else prompt
        self._prompt = [] if given is None else message_drafts(given)
        if given is not None and not self._prompt:
            raise InvalidArgument("runtime send: prompt must contain at least one message")
        if sink is not None:
            arguments.function("stream", sink)
        self._agent = agent
        self._sink = sink
        self._options = options or {}
        self._timeout = arguments.optional_seconds("timeout", timeout)
        self._guards = guards
        self.events: list[Event] = []

    def __call__(self, session: Txn) -> None:
        agent = resolved(self._agent, session, self._options, self._guards.budget)
        session.check(*self._prompt)
        turn = Turn(session, name_of_agent(agent), self._sink, self._guards)
        # A definition's loop asks its model again by itself.
        is_loop = getattr(agent, "is_loop", False)
        retries = 0 if is_loop else self._options.get(RETRIES, 1)
        turn.begin(self._prompt, session.key, is_looped=is_loop)
        waiting = None
        with within(self._timeout, session.caller, session.id):
            try:
                _run(agent, turn, retries)
            except Waiting as wait:
                waiting = {"reason": wait.reason}
                if wait.external_id is not None:
                    waiting["external_id"] = wait.external_id
            turn.check()
        turn.finish(waiting)
        self.events = turn.events


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


def recorded(session: Session, key: str) -> list[Event]:
    """Return the events of the last turn of that key. Raises `InvalidArgument` if another action had it."""
    for start in session.stream.read(types=_TURNS, reverse=True):
        if start.body.get("key") == key:
            return [session.origin.own(event) for event in (start, *events_of(session, start))]
    raise InvalidArgument(f"idempotency key '{key}' was used by an action that is no turn", session.id)


def result_of(session: Session, events: list[Event]) -> TurnResult:
    """Return what became of an ended turn, from its events."""
    end = next(event.body for event in reversed(events) if event.type == kinds.TURN_COMPLETED)
    added = [event.body for event in events if event.type == kinds.MESSAGE_ADDED]
    messages = [message for message in added if message["role"] in _ANSWERS]
    said = [message for message in messages if message["role"] == "assistant"]
    return TurnResult(
        status=_status(end),
        stop_reason=end["turn_stop_reason"],
        text=end["text"] if "text" in end else _text(said[-1]) if said else "",
        messages=messages,
        usage=end.get("usage"),
        cost=float(sum(event.cost for event in events)),
        steps=end["steps"],
        turn_id=events[0].id,
        session=session,
    )


def _status(end: dict[str, Any]) -> Any:
    if "error" in end:
        return "failed"
    reason = end["turn_stop_reason"]
    return reason if reason in ("completed", "waiting") else "stopped"


def _text(message: Message) -> str:
    content = message.get("content") or message.get("parts")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""
