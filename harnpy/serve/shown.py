"""What the API shows of sessions, events, messages, turns and runs. Spec: 11 §1.3."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from harnpy.client import types as t
from harnpy.formats.json import ordered_json
from harnpy.serve.streams import encoded
from harnpy.session import events as kinds
from harnpy.session.rewind import has_ended
from harnpy.session.send import result_of
from harnpy.session.turns import events_of
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from harnpy.session.agents import AgentDef
    from harnpy.session.events import Event, Origin
    from harnpy.session.info import SessionInfo
    from harnpy.session.log import Session
    from harnpy.workflow.engines.contract import RunInfo, StepInfo

#: The key of a session's metadata that names its owner.
OWNER: Final = "principal"
#: What the keys of a session's metadata begin with that servers keep for themselves.
OWN: Final = "serve."
#: The key of a client's metadata that names the principal who has attached it.
CLIENT_OWNER: Final = f"{OWN}principal"
#: What the keys of turns begin with that a server has begun, and that another one may go on with.
KEYS: Final = "serve:"

#: Events that history shows: what was said, and what took the place of it in the window.
SAID: Final = frozenset(
    {
        kinds.MESSAGE_ADDED,
        kinds.CONTEXT_ADDED,
        kinds.COMPACTION_TRIGGERED,
        kinds.HISTORY_REPLACED,
        kinds.BRANCH_SUMMARY,
    }
)
#: How many events are read at once, and as long as so many bytes come of that, at most.
_FEW, _MANY, _SMALL = 1, 64, 1 << 18
_ENDS: Final = frozenset({kinds.TURN_COMPLETED})
_TURNS: Final = frozenset({kinds.TURN_STARTED})
_GIVEN_UP: Final = ("cancelled", "interrupted")


# Sessions.


def info(of: SessionInfo, owner: str | None) -> t.Info:
    return t.Info(
        id=of.id,
        status=of.status,
        execution=of.execution,
        agent=of.agent_name,
        label=of.branch_label or of.agent_label,
        owner=owner,
        parent=of.parent_id,
        fork_seq=of.fork_seq if of.parent_id is not None else None,
        depth=of.depth,
        messages=None,
        cost=of.cost,
        created_at=of.created_at,
        updated_at=of.updated_at,
        seq=of.seq,
        revision=of.revision,
        metadata=_public(of.metadata),
    )


def _public(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata without what servers keep for themselves."""
    return {key: value for key, value in metadata.items() if not key.startswith(OWN)}


def session(
    of: t.Info,
    *,
    messages: int,
    clients: t.ClientList,
    running: str | None,
    requests: list[t.Request],
    lineage: list[t.Info],
    children: list[t.Info],
    shares: dict[str, list[Any]],
    may: list[Any],
) -> t.Session:
    return t.Session(
        **{**{name: getattr(of, name) for name in of.__struct_fields__}, "messages": messages},
        clients=clients.clients,
        controller=clients.controller,
        running=running,
        requests=requests,
        lineage=lineage,
        children=children,
        shares=shares,
        may=may,
    )


# Events and messages.


def turn_of(of: Event) -> int | None:
    """Return the number of the event that began the turn of an event; None outside of turns."""
    if of.type == kinds.TURN_STARTED:
        return of.seq
    return (of.turn.seq or None) if of.turn is not None else None


def event(of: Event) -> t.Event:
    return t.Event(
        id=of.id,
        seq=of.seq,
        type=of.type,
        time=of.timestamp,
        turn=turn_of(of),
        cost=of.cost or None,
        data=of.data if isinstance(of.data, dict) else {"value": of.data},
    )


def sized(
    log: Session, after: int, *, until: int | None = None, types: frozenset[str] | None = None
) -> Iterator[tuple[t.Event, int]]:
    """Yield the events behind a number, and how many bytes each has. They are read as they are asked for, and
    few at once where they are large."""
    count = _FEW
    while until is None or after < until:
        events = log.read(after=after, until=until, types=types, limit=count)
        size = 0
        for each in events:
            found = event(each)
            size += (of := len(encoded(found)))
            yield found, of
        if len(events) < count:
            return
        after = events[-1].seq
        count = min(2 * count, _MANY) if size < _SMALL else _FEW


def entry(of: t.Event) -> t.Entry:
    """Return an event of one of the types `SAID` as an entry of the history."""
    data = of.data
    if of.type != kinds.MESSAGE_ADDED:
        text = next((data[key] for key in ("content", "summary", "text") if data.get(key)), "")
        data = {"role": "system", "content": text, "metadata": {"reason": data.get("reason") or of.type}}
    known = ("name", "tool_calls", "tool_call_id", "reasoning", "metadata")
    return t.Entry(
        id=of.id,
        seq=of.seq,
        type=of.type,
        role=str(data.get("role", "")),
        content=data.get("content", data.get("parts")),
        time=of.time,
        turn=of.turn,
        cost=of.cost,
        **{key: data[key] for key in known if key in data},
    )


class Branch:
    """Which events of a log the conversation goes on from, by the moves of its leaf: those that no move has
    taken back."""

    def __init__(self, moves: Sequence[Event], version: int) -> None:
        """``moves`` are the `leaf_moved` events of a log, ``version`` is its last number."""
        self._parts: list[tuple[int, int]] = []
        at = version
        for move in reversed(moves):
            if move.seq <= at:
                self._parts.append((move.seq, at))
                at = move.body.target
        self._parts.append((0, at))

    def has(self, seq: int) -> bool:
        return any(after < seq <= until for after, until in self._parts)


# Turns.


def key_of(started: Event) -> str | None:
    """Return the key of a turn as clients know it; None of one that has none."""
    key: str | None = started.body.get("key")
    return None if key is None else key.removeprefix(KEYS)


def open_turns(log: Session) -> list[Event]:
    """Return what began the turns that have no end, but for those that a rewind or a fork has cut off from
    theirs: nobody goes on with them."""
    return [
        turn
        for turn in list(log.view.open_turns.values())
        if turn.seq > log.view.linked_at and not has_ended(turn, log.read(after=turn.seq, types=_ENDS))
    ]


def find_turn(log: Session, key: str) -> Event | None:
    """Return the event that began the last turn of that key."""
    for started in log.read(types=_TURNS, reverse=True):
        if started.body.get("key") in (KEYS + key, key):
            return started
    return None


def turn(log: Session, started: Event, key: str) -> t.Turn:
    """Return what became of a turn so far. One that a rewind or a fork has cut is stopped."""
    status: Any
    is_open = any(each.seq == started.seq for each in open_turns(log))  # before its end is looked for
    events = [log.origin.own(each) for each in (started, *events_of(log, started))]
    end = next((each for each in events if each.type == kinds.TURN_COMPLETED), None)
    if end is None:
        status = "running" if is_open else "stopped"
        return t.Turn(key=key, status=status, cost=float(sum(each.cost for each in events)))
    result = result_of(log, events)
    status = result.status
    if result.stop_reason in _GIVEN_UP:
        status = "stopped"
    return t.Turn(
        key=key,
        status=status,
        text=result.text,
        usage=result.usage,
        cost=result.cost,
        steps=result.steps,
        stop_reason=result.stop_reason,
        error=end.body.get("error"),
    )


def prompt_of(log: Session, started: Event) -> list[dict[str, Any]]:
    """Return the messages that a turn was begun with: those that were written together with its beginning."""
    found: list[dict[str, Any]] = []
    left = started.more
    for each in log.read(after=started.seq, limit=left) if left else ():
        if each.type != kinds.MESSAGE_ADDED or each.body.get("role") == "assistant":
            break
        found.append(each.data)
    return found


def digest(prompt: Any) -> str:
    """Return what tells prompts apart: a text, a message, messages, or None, as `prompt_of` has them, too."""
    given = prompt if isinstance(prompt, list) else [] if prompt is None else [prompt]
    said = [
        [each.get("role", "user"), each.get("content", each.get("parts"))]
        if isinstance(each, dict)
        else ["user", each]
        for each in given
    ]
    return sha256(ordered_json(said).encode("utf-8", "replace")).hexdigest()


# Runs.


def works_for(log: Session, run_id: str) -> bool:
    """Return whether an open turn of the session is a stage of that run."""
    return any(
        str(turn.body.get("key", "")).startswith(f"{run_id}:") for turn in log.view.open_turns.values()
    )


def run(of: RunInfo, *, steps: int, output: Any = None, left: bool = False) -> t.Run:
    return t.Run(
        id=of.id,
        name=of.name,
        kind=of.kind,
        status=of.status,
        steps=steps,
        created_at=rfc3339(of.created),
        started_at=None if of.started is None else rfc3339(of.started),
        ended_at=None if of.finished is None else rfc3339(of.finished),
        output=output,
        error=of.error,
        left=left,
    )


def step(of: StepInfo) -> t.RunStep:
    return t.RunStep(n=of.n, key=of.key, output=of.output, time=rfc3339(of.time))


def clients(records: Iterable[dict[str, Any]], controller: str | None, is_stale: Any) -> t.ClientList:
    found = [
        t.Client(
            client_id=each["client_id"],
            mode=each["mode"],
            attached_at=each["attached_at"],
            last_seen_at=each["last_seen_at"],
            metadata=_public(each["metadata"]),
            stale=is_stale(each),
            principal=client_owner(each),
        )
        for each in records
    ]
    return t.ClientList(clients=found, controller=controller)


def client_owner(record: Mapping[str, Any]) -> str | None:
    """Return whose client a record is of; None for one that a program has attached."""
    found = record["metadata"].get(CLIENT_OWNER)
    return found if isinstance(found, str) else None


def text_of(value: Any) -> str:
    """Return a JSON value as text."""
    from harnpy.formats.json import compact_json

    return compact_json(value)


def owned(definition: AgentDef, principal: str) -> AgentDef:
    """Return a definition whose sessions belong to the principal, whatever its metadata says."""
    return replace(definition, metadata={**definition.metadata, OWNER: principal})


def common(left: Origin, right: Origin, left_version: int, right_version: int) -> int:
    """Return the number of the last event that two sessions have in common; 0 without any."""
    shared: dict[str, int] = {}
    above: Origin | None = left
    until = left_version
    while above is not None:
        shared[above.id] = until
        until, above = min(until, above.shared), above.parent
    above, until = right, right_version
    while above is not None:
        if above.id in shared:
            return min(shared[above.id], until)
        until, above = min(until, above.shared), above.parent
    return 0
