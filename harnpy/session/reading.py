"""Questions to a session's log: events, branches, the last message, the state of a reducer.

All of it are verbs of `Session`. Spec: 10 §A1.6, §A1.9, §C3, §C5.
"""

from __future__ import annotations

from copy import copy
from functools import reduce as fold
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from harnpy.session import arguments
from harnpy.session import events as kinds
from harnpy.session.cuts import Cut
from harnpy.session.prompt import FILES_LIMIT
from harnpy.session.rewind import active

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy.session.events import Event
    from harnpy.session.info import TurnInfo
    from harnpy.session.log import Session
    from harnpy.session.past import Until
    from harnpy.session.prompt import HistoryEntry

    Message = dict[str, Any]

State = TypeVar("State")

_WAITS = frozenset({kinds.WAIT_STARTED, kinds.APPROVAL_REQUESTED})
_GOES_ON = frozenset({kinds.WAIT_RESOLVED, kinds.APPROVAL_RESOLVED, kinds.APPROVAL_CANCELED})
_MESSAGES = frozenset({kinds.MESSAGE_ADDED})

# Events.


def events(
    session: Session,
    after: int = 0,
    until: Until | None = None,
    *,
    types: Iterable[str] | None = None,
    reverse: bool = False,
    limit: int | None = None,
    branch: bool = False,
) -> list[Event]:
    """Return the events behind number ``after`` up to ``until``, oldest first: all that ever happened.

    ``until`` is a number, the id of an event, or a moment. ``types`` chooses some, ``limit`` the first so
    many, ``reverse`` begins with the newest, ``branch`` leaves out what was taken back. Raises
    `EventNotFound` for an id that isn't there, and for a moment before the first event.
    """
    end = _number_at(session, until)
    arguments.count("after", after)
    if limit is not None:
        arguments.count("limit", limit)
    wanted = None if types is None else arguments.types(types)
    if not branch:
        return session.read(after, end, types=wanted, reverse=reverse, limit=limit)
    found = [
        event
        for event in active(session.read(0, end), 0)
        if event.seq > after and (wanted is None or event.type in wanted)
    ]
    return (found[::-1] if reverse else found)[:limit]


def branch(session: Session, event_id: str) -> list[Event]:
    """Return the events that lead to the one of that id, and itself. Raises `EventNotFound`."""
    return session.events(until=event_id, branch=True) if event_id else []


def _number_at(session: Session, until: Until | None) -> int | None:
    if until is None or type(until) is int:
        return until
    from harnpy.session.past import number_of

    return number_of(session.stream, until, session.origin)


# Messages.


def every_message(session: Session) -> list[dict[str, Any]]:
    """Return the messages of the whole log, including those before a reset. A fork onto this session
    counts as the messages that it brought."""
    found: list[dict[str, Any]] = []
    for event in session.read():
        if event.type == kinds.MESSAGE_ADDED:
            found.append(event.body)
        elif isinstance(event.body, Cut) and event.body.parent_id is not None:
            found += [entry.body for entry in event.body.window.history()]
    return found


def prompt_state(session: Session) -> tuple[list[dict[str, Any]], str | None]:
    """Return what a loop starts from: the messages, led by the summary unless they show it, and the
    summary (08 §1.11)."""
    window = session.view.window
    opening = [] if window.shows_summary() else [{"role": "user", "content": window.summary}]
    return opening + session.messages(), window.summary


def last_event(session: Session) -> Event | None:
    """Return the last event, as this session's."""
    last = session.stream.last()
    return None if last is None else session.event(last.seq)


def last_message(session: Session) -> Message | None:
    """Return the last message that was ever added."""
    return next(_newest(session), None)


def last_assistant_message(session: Session) -> Message | None:
    """Return the last message of an assistant that says something and calls no tool."""
    return next((message for message in _newest(session) if _answers(message)), None)


def _newest(session: Session) -> Iterator[Message]:
    return (event.body for event in session.stream.read(types=_MESSAGES, reverse=True))


def _answers(message: Message) -> bool:
    if message.get("role") != "assistant" or message.get("tool_calls"):
        return False
    content = message.get("content")
    if isinstance(content, list):
        kinds_of_parts = {part.get("type") for part in content if isinstance(part, dict)}
        return bool(content) and "tool_use" not in kinds_of_parts
    said = any(isinstance(text, str) and text.strip() for text in (content, message.get("reasoning")))
    return said or bool(message.get("thinking_blocks"))


class Rebuilder:
    """``files_limit`` is how many files of each sort a working set names."""

    def __init__(self, files_limit: int = FILES_LIMIT) -> None:
        self.files_limit = files_limit

    def entries(self, session: Session) -> list[HistoryEntry]:
        """Return the messages with their events, context marks and what the log knows of calls."""
        return session.entries(self.files_limit)

    def messages(self, session: Session) -> list[dict[str, Any]]:
        """Return the messages alone."""
        return [entry.message for entry in self.entries(session)]


# States.


class ModelSettings(NamedTuple):
    """The settings of later turns. ``model`` None is the default one, ``tools`` None those not chosen."""

    model: Any = None
    thinking: str = "off"
    tools: list[str] | None = None


def is_waiting(session: Session) -> bool:
    """Return whether it waits for an approval or for something outside."""
    last = next(session.stream.read(types=_WAITS | _GOES_ON, reverse=True, limit=1), None)
    return last is not None and last.type in _WAITS


class Reduction:
    """The state that ``fn(state, event)`` makes of all events, beginning with an empty dict.

    Calling it gives a shallow copy. The events since the last call are read when it is called, so it costs an
    append nothing.
    """

    def __init__(self, fn: Callable[[Any, Event], Any], read: Callable[[int], list[Event]]) -> None:
        self._fn = fn
        self._read = read
        #: The number of the last event taken in, and the state there.
        self._reached: tuple[int, Any] = 0, {}

    def __call__(self) -> Any:
        seq, state = self._reached
        for event in self._read(seq):
            seq, state = event.seq, self._fn(state, event)
        self._reached = seq, state
        return copy(state)


def reduce(session: Session, fn: Callable[[State, Event], State], init: State) -> State:
    """Return the state that ``fn(state, event)`` makes of all events, beginning with ``init``."""
    return fold(fn, session.read(), init)


def attach_reducer(session: Session, fn: Callable[[Any, Event], Any]) -> Callable[[], Any]:
    """Return what gives the state that ``fn(state, event)`` makes of all events so far, beginning with an
    empty dict; `state` gives it, too."""
    session.reduction = Reduction(fn, session.read)
    return session.reduction


def turns(session: Session) -> list[TurnInfo]:
    """Return the turns that the conversation consists of, oldest first."""
    from harnpy.session.info import turns_of

    return turns_of(session.read(), session.view.turns.items())
