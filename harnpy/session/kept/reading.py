"""Reading a session from a store: from its newest projection snapshot on, or all of it.

A view that was made from a snapshot knows the window, registers, clients and statuses. Whoever wants more
(transcript events, history, where turns began, what a cut left) makes it read the log behind the snapshot,
once. Spec: 10 §C5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.cuts import Cut
from harnpy.session.kept.info import SNAPSHOT, Digest, info_of
from harnpy.session.kept.projections import Basis, load
from harnpy.session.log import Session
from harnpy.session.views import replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harnpy.session.events import Event, Origin
    from harnpy.session.views import View
    from harnpy.storage.contract import Head, Stream


class KeptLog(Session):
    """A session's log on a store, as far as this object has read it. ``heard`` is called with the events that
    others have appended."""

    __slots__ = ("_basis", "_cuts", "_digest", "_former", "_head", "_last", "_snapshot", "heard")
    is_kept = True

    def __init__(self, origin: Origin, stream: Stream, view: View | None = None, moment: float = 0) -> None:
        self._attach(origin, stream, view, moment)
        self.heard: Callable[[Sequence[Event]], None] | None = None
        self._cuts: dict[int, Event] = {}  # by number: a cut has its window once a view has applied it
        self._digest = Digest(origin.shared)
        self._head: dict[str, object] | None = None
        self._last: Event | None = None  # as this object has seen it: none of those before a fork
        #: What the next snapshot builds on.
        self._basis = Basis()
        self._snapshot = 0  # the one that the view was made from
        self._former: View | None = None  # the same view, made of the log behind it

    @property
    def revision(self) -> int:
        return self._digest.revision

    @property
    def total_cost(self) -> float:
        return self._digest.cost

    def agent_facts(self) -> dict[str, Any]:
        return self._digest.agent()

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> list[Event]:
        found = list(self.stream.read(after, until, types=types, reverse=reverse, limit=limit))
        if self._is_light and not all(seq in self._cuts for seq, _ in _cuts(found)):
            self._whole()
        return [self.origin.own(self._cuts.get(event.seq, event)) for event in found]

    def refresh(self) -> None:
        """Take notice of what others have appended."""
        if self.audience is not None:
            self.audience.check()
        if self.stream.refresh() > self.version:
            news = self._take_in()
            self._head = None
            if self.audience is not None:
                self.audience.pass_on(news)
            if self.heard is not None:
                self.heard(news)

    @property
    def _is_light(self) -> bool:
        """Whether the log behind a snapshot hasn't been read yet."""
        return self._snapshot > 0 and self._former is None

    def _read(self, head: Head | None) -> None:
        """Read the log: behind the newest snapshot that ``head`` knows of, if it knows one."""
        self.version = 0
        if head is not None and head.data.get(SNAPSHOT):
            self._read_from(head.data[SNAPSHOT], head)
        self._take_in()
        self._head = self._digest.head()

    def _read_from(self, seq: int, head: Head) -> None:
        """Read snapshot number ``seq`` and what follows it, up to where the log ended when ``head`` was read.

        Do nothing if the snapshot is damaged.
        """
        loaded = load(self.stream, seq, self._whole)
        if loaded is None:
            return
        view, self._basis, created, self.moment = loaded
        facts = info_of(head)
        view.log, view.status, view.execution = self.view.log, facts.status, facts.execution
        self.view, self.version, self._snapshot = view, seq, seq
        shared = created.body.fork_seq
        if seq <= shared:  # an ancestor's: the session begins behind what it shares with that
            self._apply(list(self.stream.read(seq, shared)))
            view.apply(created)
        self._apply(list(self.stream.read(self.version, head.version)))
        open_turns = [turn for turn in view.open_turns if turn > self.origin.shared]
        self._digest = Digest.of(head, self.origin.shared, open_turns)

    def _whole(self) -> View:
        """Return the view at the snapshot that this one was made from, made of the log behind it."""
        if self._former is None:
            past = list(self.stream.read(until=self._snapshot))
            self._former = replay(past)
            self._cuts.update(_cuts(past))
        return self._former

    def _take_in(self) -> list[Event]:
        """Apply what the stream has and the view lacks."""
        news = list(self.stream.read(after=self.version))
        if news:
            self._digest.add(news)
            self._apply(news)
            self._digest.rewound(self.view.execution)
        return news

    def _apply(self, events: Sequence[Event]) -> None:
        if events:
            self.version += len(events)
            self._cuts.update(_cuts(events))
            self._last = events[-1]
            self.moment = self._last.moment
            self.view.read(events)


def _cuts(events: Iterable[Event]) -> Iterator[tuple[int, Event]]:
    return ((event.seq, event) for event in events if isinstance(event.body, Cut))
