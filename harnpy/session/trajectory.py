"""Trajectories: a run read from its log, trees of runs, and episodes to keep. Spec: 10 §A1.16, §C10."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.formats.tool_messages import results_of
from harnpy.session import arguments
from harnpy.session import events as kinds
from harnpy.session.arguments import check_session, checked
from harnpy.session.child_records import child_runs
from harnpy.session.cuts import Cut
from harnpy.session.errors import InvalidArgument, SessionNotFound
from harnpy.session.events import read_stamp
from harnpy.session.prompt import entry_of
from harnpy.session.rewind import active
from harnpy.session.transfer.blocks import shape_of
from harnpy.storage.contract import Encoded, Row
from harnpy.storage.errors import VersionConflict
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.session.artifacts import Artifact
    from harnpy.session.child_records import ChildRun
    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.session.prompt import HistoryEntry
    from harnpy.storage.contract import Hit, Store, Stream
    from harnpy.world.ids import Ids

    Message = dict[str, Any]
    Load = Callable[[str], Session | None]

# One answer of a model: what it was given, what it said, which tools it called with what result.
#
# Spec: 10 §A1.16, §C10.


@dataclass(frozen=True)
class RunTurn:
    """``input`` is what was added since the answer before, ``input_entries`` the same with event ids and
    context marks. ``tool_calls`` and ``tool_results`` have the shapes of 10 §A1.3, ``failed`` are the results
    of calls that failed. ``cost`` is in USD, ``metrics`` the tokens used, by name."""

    turn_id: str
    timestamp: str
    input: list[Message]
    input_entries: list[dict[str, Any]]
    output: Message
    tool_calls: list[Message] = field(default_factory=list)
    tool_results: list[Message] = field(default_factory=list)
    cost: float = 0.0
    metrics: dict[str, Any] | None = None
    failed: list[Message] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """Return it as JSON."""
        optional = {
            "tool_calls": self.tool_calls,
            "tool_results": self.tool_results,
            "metrics": self.metrics,
        }
        return {
            "turn_id": self.turn_id,
            "timestamp": self.timestamp,
            "input": self.input,
            "input_entries": self.input_entries,
            "output": self.output,
            "cost": self.cost,
            **{key: value for key, value in optional.items() if value},
        }


class Answer:
    """An answer while the log is read: what comes behind it may belong to it."""

    def __init__(
        self, output: HistoryEntry, given: list[HistoryEntry], event: Event, steps: list[Event]
    ) -> None:
        self.steps = steps
        self._output = output
        self._given = given
        self._event = event
        self._results: list[Message] = []
        self._begun: list[Message] = []
        self._ended: list[Message] = []
        self._failed: list[Message] = []

    def take(self, event: Event) -> None:
        """Take notice of an event behind the answer."""
        if event.type == kinds.MESSAGE_ADDED:
            for part in shape_of(event.body).results:
                self._results.append(_result(part.id, part.name, part.text))
                if part.is_error or part.id in {one["tool_id"] for one in self._failed}:
                    self._failed.append(self._results[-1])
        elif event.type == kinds.TOOL_STARTED:
            data = event.data
            self._begun.append(_call(data.get("id"), data.get("tool", ""), data.get("args", "")))
        elif event.type == kinds.TOOL_COMPLETED:
            data = event.data
            text = data["error"] if "error" in data else data.get("output", "")
            self._ended.append(_result(data.get("id"), data.get("tool", ""), text))
            if "error" in data:
                self._failed.append(self._ended[-1])
                self._failed += [one for one in self._results if one["tool_id"] == data.get("id")]

    def turn(self) -> RunTurn:
        """Return what is known of it now. Calls and results that are text are those that were logged."""
        message = self._output.message
        calls = [_call(*part) for part in shape_of(message).calls]
        used: Counter[str] = Counter()
        for step in self.steps:
            used.update(step.data.get("usage") or {})
        return RunTurn(
            turn_id=self._event.id,
            timestamp=self._event.timestamp,
            input=[entry.message for entry in self._given],
            input_entries=[entry.shown() for entry in self._given],
            output=message,
            tool_calls=calls or self._begun,
            tool_results=self._results or self._ended,
            cost=float(self._event.cost + sum(step.cost for step in self.steps)),
            metrics=dict(used) or None,
            failed=list(self._failed),
        )


def _call(id: str | None, name: str, arguments: str) -> Message:
    return {"id": id or "", "type": "function", "function": {"name": name, "arguments": arguments}}


def _result(id: str | None, name: str, text: str) -> Message:
    named = {"name": name} if name else {}
    return {"role": "tool", "tool_id": id or "", **named, "content": text}


# A run as what was read and what was said to it, answer by answer. Spec: 10 §A1.16, §C10.
#
# It is read from the log alone, in its order, whatever windows have shown since. What was taken back is left
# out.


@dataclass(frozen=True)
class RunLog:
    """A session's run. Times are RFC 3339, of its first and last event; ``total_cost`` is in USD.

    ``child_runs`` is None unless a tree was asked for (`export_run_tree`).
    """

    session_id: str
    agent_id: str
    start_time: str
    end_time: str
    turns: list[RunTurn]
    total_cost: float = 0.0
    metadata: dict[str, Any] = field(default_factory=dict)
    child_runs: list[ChildLog] | None = None

    def _repr_html_(self) -> str:
        from harnpy.formats.markup import cell, money, plural
        from harnpy.session.cells import MOST, called, said

        rows = []
        for turn in self.turns[-MOST:]:
            usage = ", ".join(f"{name} {n}" for name, n in (turn.metrics or {}).items())
            rows.append(
                (said(turn.input[-1]) if turn.input else "", said(turn.output), called(turn.output), usage)
            )
        cost = money(self.total_cost) if self.total_cost else ""
        pairs = [("agent", self.agent_id), ("", plural(len(self.turns), "turn")), ("cost", cost)]
        return cell(f"Run of {self.session_id}", pairs, ("Input", "Answer", "Tool calls", "Usage"), rows).html

    def data(self) -> dict[str, Any]:
        """Return it as JSON."""
        shown: dict[str, Any] = {
            "session_id": self.session_id,
            "agent_id": self.agent_id,
            "start_time": self.start_time,
            "end_time": self.end_time,
            "turns": [turn.data() for turn in self.turns],
            "total_cost": self.total_cost,
        }
        if self.metadata:
            shown["metadata"] = self.metadata
        if self.child_runs is not None:
            shown["child_runs"] = [child.data() for child in self.child_runs]
        return shown


@dataclass(frozen=True)
class ChildLog:
    """A child in its parent's tree. ``run`` is None where there is no log of it, or it stands above."""

    child_id: str
    session_id: str
    agent_id: str
    mode: str
    status: str
    summary: str = ""
    artifacts: list[Artifact] = field(default_factory=list)
    run: RunLog | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """Return it as JSON."""
        known = {key: getattr(self, key) for key in ("child_id", "session_id", "agent_id", "mode", "status")}
        optional = {
            "summary": self.summary,
            "artifacts": [artifact.data() for artifact in self.artifacts],
            "run": None if self.run is None else self.run.data(),
            "metadata": self.metadata,
        }
        return {**known, **{key: value for key, value in optional.items() if value}}


def export_run(session: Session) -> RunLog:
    """Return what a session did: a turn for each answer of a model."""
    check_session(session)
    events = session.events()
    return RunLog(
        session_id=session.id,
        agent_id=_agent(session, events),
        start_time=events[0].timestamp,
        end_time=events[-1].timestamp,
        turns=list(_turns(active(events, 0))),
        total_cost=float(sum(event.cost for event in events)),
        metadata=session.metadata,
    )


def _agent(session: Session, events: list[Event]) -> str:
    """Return the session's agent, or the one that first had a turn."""
    name: str | None = session.agent_facts().get("agent_name")
    began = (event.data.get("agent_id") for event in events if event.type == kinds.TURN_STARTED)
    return name or next(filter(None, began), "")


def _turns(events: list[Event]) -> Iterator[RunTurn]:
    gathered: list[HistoryEntry] = []
    steps = _Steps()
    answer: Answer | None = None
    for event in _with_brought(events):
        steps.take(event, answer)
        if answer is not None:
            answer.take(event)
        entry = entry_of(event) if event.type in _SAID else None
        if entry is None:
            continue
        if entry.message.get("role") == "assistant":
            if answer is not None:
                yield answer.turn()
            answer = Answer(entry, gathered, event, steps.waiting)
            gathered, steps.waiting = [], []
        elif answer is not None or results_of(entry.message) is None:
            gathered.append(entry)
    if answer is not None:
        yield answer.turn()


_SAID = frozenset({kinds.MESSAGE_ADDED, kinds.CONTEXT_ADDED, kinds.BRANCH_SUMMARY})


def _with_brought(events: list[Event]) -> Iterator[Event]:
    """Give the events, and those that a fork onto the session brought from another log."""
    for event in events:
        if isinstance(event.body, Cut) and event.body.parent_id is not None:
            yield from event.body.window.history()
        else:
            yield event


class _Steps:
    """Finds a model call's answer: the last one within it, else the next one of its turn."""

    def __init__(self) -> None:
        self.waiting: list[Event] = []
        self._has_answered = False

    def take(self, event: Event, answer: Answer | None) -> None:
        if event.type == kinds.STEP_STARTED:
            self._has_answered = False
        elif event.type == kinds.MESSAGE_ADDED and event.body.get("role") == "assistant":
            self._has_answered = True
        elif event.type == kinds.STEP_COMPLETED and "purpose" not in event.data:
            if answer is not None and self._has_answered:
                answer.steps.append(event)
            else:
                self.waiting.append(event)
        elif event.type == kinds.TURN_COMPLETED:
            self.waiting = []


# Run logs with those of the children, and theirs. Spec: 10 §A1.16.


def export_run_tree(session: Session, load: Load) -> RunLog:
    """Return what a session and its children did, and theirs.

    ``load(id)`` returns a session, or None, or raises `SessionNotFound`: that child has no log then.
    """
    check_session(session)
    return _tree(session, load, frozenset())


def _tree(session: Session, load: Load, above: frozenset[str]) -> RunLog:
    path = above | {session.id}
    runs = sorted(child_runs(session), key=lambda run: run.child_id)
    return replace(export_run(session), child_runs=[_child(run, load, path) for run in runs])


def _child(run: ChildRun, load: Load, path: frozenset[str]) -> ChildLog:
    found = None
    if run.session_id and run.session_id not in path:
        with suppress(SessionNotFound):
            found = load(run.session_id)
    return ChildLog(
        child_id=run.child_id,
        session_id=run.session_id,
        agent_id=run.agent_id,
        mode=run.mode,
        status=run.status,
        summary=run.summary,
        artifacts=run.artifacts,
        run=None if found is None else _tree(found, load, path),
        metadata=run.metadata,
    )


# What is worth remembering of a run: what it came to, and the calls that led there. Spec: 10 §A1.16.


@dataclass(frozen=True)
class Episode:
    """``conclusion`` is the last thing that was said with no call of a tool; ``calls`` are
    ``{"tool", "args", "result"}``, in order. ``total_cost`` is in USD."""

    id: str
    session_id: str
    agent_id: str
    start_time: str
    end_time: str
    conclusion: str = ""
    calls: list[dict[str, str]] = field(default_factory=list)
    total_cost: float = 0.0
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the text that a search looks through: the conclusion and the names of the tools."""
        return " ".join([self.conclusion, *(call["tool"] for call in self.calls)])

    def data(self) -> dict[str, Any]:
        """Return it as JSON."""
        shown = asdict(self)
        if not self.metadata:
            del shown["metadata"]
        return shown

    @classmethod
    def of(cls, data: dict[str, Any]) -> Episode:
        """Return the episode that ``data`` gave. Unknown keys are left out."""
        return cls(**{one.name: data[one.name] for one in fields(cls) if one.name in data})


def distill(run: RunLog, *, ids: Ids | None = None) -> Episode:
    """Return the episode of a run, under a new id. Calls without a result, or that failed, are left out."""
    return Episode(
        id=(World().ids if ids is None else ids).new(),
        session_id=run.session_id,
        agent_id=run.agent_id,
        start_time=run.start_time,
        end_time=run.end_time,
        conclusion=next(filter(None, map(_said, reversed(run.turns))), ""),
        calls=[call for turn in run.turns for call in _calls(turn)],
        total_cost=run.total_cost,
        metadata=dict(run.metadata),
    )


def _said(turn: RunTurn) -> str:
    """Return the text of an answer without calls."""
    text = "" if turn.tool_calls else shape_of(turn.output).text
    return text if text.strip() else ""


def _calls(turn: RunTurn) -> Iterator[dict[str, str]]:
    left = list(turn.tool_results)
    for call in turn.tool_calls:
        result = next((one for one in left if one["tool_id"] == call["id"]), None)
        if result is not None:
            left.remove(result)
        if result is not None and not any(result is one for one in turn.failed):
            function = call["function"]
            yield {"tool": function["name"], "args": function["arguments"], "result": result["content"]}


# Episodes on a store: a stream of them for each session, in the order in which they were first stored.
#
# An episode that is kept again is written behind; the last one of an id counts. So it works on every store, a
# caller's own too. Spec: 10 §A1.16, §C10.


#: What a store calls our streams; their names are the sessions' ids.
KIND = "episode"
#: As many hits as there are: they are put in order here.
_ALL = 1 << 31


class _StoredEpisode(NamedTuple):
    seq: int
    episode: Episode


class EpisodeCodec(Encoded):
    """Episodes ↔ rows. The time of a row is that of the run's end. Their texts are made of several parts."""

    def encode(self, records: Sequence[_StoredEpisode]) -> list[Row]:
        return [self._row(seq, episode) for seq, episode in records]

    def _row(self, seq: int, episode: Episode) -> Row:
        data = to_json(episode.data()).decode()
        return Row(seq, KIND, read_stamp(episode.end_time), data, key=_key(episode.id))

    def decode(self, rows: Sequence[Row]) -> list[_StoredEpisode]:
        return [_StoredEpisode(row.seq, _episode(row)) for row in rows]

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        return [_episode(row).text for row in rows]


def _episode(row: Row) -> Episode:
    return Episode.of(from_json(row.data))


def _key(id: str) -> str:
    return f"{KIND}:{id}"


_CODEC = EpisodeCodec()


class EpisodesMixin:
    """The part of a `SessionRuntime` that keeps episodes."""

    store: Store

    def save_episode(self, episode: Episode) -> None:
        """Keep an episode, in the place of one of its session that has its id.

        Raises `InvalidArgument` for what is no episode, `EventRejected` for what isn't JSON.
        """
        if not isinstance(episode, Episode):
            raise InvalidArgument(f"an episode is what `distill` returns, got {type(episode).__name__}")
        stored = Episode.of(checked(episode.data()))
        stream = self._episodes_of(episode.session_id)
        while True:
            seen = stream.refresh()
            try:
                return stream.append([_StoredEpisode(seen + 1, stored)], seen)
            except VersionConflict:
                continue  # somebody else has kept one just now

    def episodes(self, session_id: str) -> list[Episode]:
        """Return the episodes of a session, in the order in which they were first stored."""
        stream = self._episodes_of(arguments.session_id(session_id))
        stream.refresh()
        found: dict[str, Episode] = {}
        for _, episode in stream.read():
            found[episode.id] = episode
        return list(found.values())

    def search_episodes(self, query: str, limit: int = 50) -> list[Episode]:
        """Return the episodes that say every term of ``query`` or name it as a tool, the newest run first.

        Raises `StorageError` for a query without a term.
        """
        arguments.count("limit", limit)
        hits = self.store.search(arguments.text("query", query), KIND, codec=_CODEC, limit=_ALL)
        found = [episode for hit in reversed(hits) if (episode := self._current(hit)) is not None]
        found.sort(key=lambda episode: read_stamp(episode.end_time), reverse=True)
        return found[:limit]

    def _current(self, hit: Hit) -> Episode | None:
        """Return the episode that was found; None if it was kept again since."""
        stream = self._episodes_of(hit.name)
        stored: _StoredEpisode = next(stream.read(hit.seq - 1, hit.seq))
        newest: _StoredEpisode | None = stream.find_key(_key(stored.episode.id))
        return stored.episode if newest is not None and newest.seq == stored.seq else None

    def _episodes_of(self, session_id: str) -> Stream:
        return self.store.stream(KIND, session_id, _CODEC)
