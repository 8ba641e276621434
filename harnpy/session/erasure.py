"""Erasing sessions for good: their streams, durable runs, artifacts, and what a project's files say of them.

A fork holds what it shares with its parent, also when it has settled, so forks are erased together with it or
not at all. What a fork shares is its parent's: erasing the fork leaves it there. A run keeps what came of its
steps, a model's replies among it: it goes as a whole. Spec: 10 §C21.1.
"""

from __future__ import annotations

import json
import os.path
import zlib
from base64 import b64decode
from collections import defaultdict
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.json import parse_json, to_json
from harnpy.project import RUNS_VARIABLE, STATE_VARIABLE, project_root, runs_directory, state_directory
from harnpy.session.artifacts import FileArtifactStore, beside
from harnpy.session.chunks import KIND as CHUNKS
from harnpy.session.errors import SessionError, SessionNotFound
from harnpy.session.events import ARTIFACT_RECORDED, MESSAGE_ADDED
from harnpy.session.info import FORK_SEQ, PARENT
from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.session.trajectory import KIND as EPISODES
from harnpy.storage.contract import HeadQuery, all_heads
from harnpy.storage.copying import Rows
from harnpy.storage.errors import LeaseHeld
from harnpy.world.files import private_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from harnpy.storage.contract import Head, Store
    from harnpy.storage.leases import Lease
    from harnpy.world import World

#: A shorter text may be anybody's.
_LEAST = 16
#: The directories of logs that the environment names.
_LOGS = ("HARN_LLM_TRANSCRIPT_DIR", "HARN_EVENT_LOG_DIR")
#: What a store calls the streams of durable runs, and the statuses of those that are over. Their engine lies
#: above this package: here they are rows.
RUNS = "run"
ENDED = frozenset({"completed", "failed", "cancelled", "dead"})
#: Seconds that the lease of a run that has ended may take to be let go.
_LETTING_GO = 1.0
#: How the records of a run write bytes, and texts that JSON can't hold.
_BASE64 = ("$bytes", "$text")
#: At most this much of a compressed reply is looked at.
_UNPACKED = 1 << 28


class Erasure(NamedTuple):
    """What was erased, and in sentences what isn't in reach."""

    sessions: list[str]
    runs: list[str]
    artifacts: list[str]
    #: Files that were removed, or rewritten without what they had of the sessions.
    files: list[str]
    notes: list[str]


def erase(
    store: Store, ids: Sequence[str], world: World, alone: Callable[[str], AbstractContextManager[object]]
) -> Erasure:
    """Erase sessions and everything that a store and a project keep of them.

    ``alone(id)`` keeps loops from a session. Raises `SessionNotFound`, and `SessionError` for forks that
    aren't among ``ids`` and for runs that haven't ended.
    """
    ids = sorted(set(ids))
    with ExitStack() as stack:
        for id in ids:
            if store.head(KIND, id) is None:
                raise SessionNotFound(id)
            stack.enter_context(alone(id))
        sessions = [session for id in ids if (session := StoredSession.load(id, store, world)) is not None]
        heads = {head.name: head for head in all_heads(store, HeadQuery(KIND))}
        traces = _Traces(ids, sessions, heads)
        _check_forks(store, heads, ids, traces, world)
        runs = _ended_runs(store, traces, stack.enter_context)
        artifacts = _own_artifacts(store, sessions, world)
        streams = [(kind, id) for kind in (CHUNKS, EPISODES, KIND) for id in ids]
        note = store.erase([*((RUNS, run) for run in runs), *streams])
    bodies = FileArtifactStore(beside(store.url, _state(world)), world=world)
    erased = [id for id in artifacts if bodies.delete(id)]
    files, notes = _clean(world, traces, store.url.partition(":")[2])
    return Erasure(ids, runs, erased, files, [*([note] if note else []), *notes])


def _check_forks(
    store: Store, heads: dict[str, Head], ids: Sequence[str], traces: _Traces, world: World
) -> None:
    left = []
    for name in heads.keys() - set(ids):
        known, above = _forked_from(heads, name, ids)
        if not known and above is not None:
            # What is above it was deleted: the fork itself must show what it holds.
            fork = StoredSession.load(name, store, world)
            known = fork is not None and traces.found(to_json([*fork.history()]))
        if known:
            left.append(name)
    if left:
        raise SessionError(
            f"their forks hold what was said, too: {', '.join(sorted(left))}; name them as well", left[0]
        )


def _forked_from(heads: dict[str, Head], name: str, ids: Sequence[str]) -> tuple[bool, str | None]:
    """Return whether a session was forked from one of ``ids``, directly or not, with some of its past.

    If not, return also the deleted session above it, if there is one.
    """
    passed = set[str]()
    while name not in passed:
        passed.add(name)
        head = heads[name]
        parent = head.data.get(PARENT)
        if parent is None or head.data.get(FORK_SEQ, 0) <= 1:
            break
        if not _has_parent(heads, head):
            return False, parent
        if parent in ids:
            return True, None
        name = parent
    return False, None


def _has_parent(heads: dict[str, Head], head: Head) -> bool:
    """Return whether the session that another was forked from is there, and not one that took its name."""
    parent = heads.get(head.data.get(PARENT) or "")
    return parent is not None and parent.created <= head.created


def _ended_runs(store: Store, traces: _Traces, keep: Callable[[Lease], object]) -> list[str]:
    """Return the runs that hold what was said, each under its lease, which ``keep`` is given.

    Forks of runs are runs. Raises `SessionError` for those that go on.
    """
    ended, others = list[str](), list[str]()
    for head in all_heads(store, HeadQuery(RUNS, order="id")):
        rows = store.stream(RUNS, head.name, Rows()).read()
        if not traces.told(dict(head.data)) and not any(traces.told(json.loads(row.data)) for row in rows):
            continue
        try:
            if _has_ended(head):  # else a worker might find it taken
                keep(store.lease(f"{RUNS}:{head.name}", wait=_LETTING_GO))
        except LeaseHeld:
            others.append(head.name)
            continue
        (ended if _has_ended(store.head(RUNS, head.name)) else others).append(head.name)
    if others:
        which = "a run that goes on holds" if len(others) == 1 else "runs that go on hold"
        raise SessionError(
            f"{which} what was said, too: {', '.join(others)}; end {'it' if len(others) == 1 else 'them'} "
            f"first: `harnpy runs cancel {others[0]}`",
        )
    return ended


def _has_ended(run: Head | None) -> bool:
    return run is None or run.data.get("status") in ENDED


def _own_artifacts(store: Store, sessions: Sequence[StoredSession], world: World) -> list[str]:
    """Return the artifacts that no other session has recorded."""
    own = _recorded(sessions)
    erased = {session.id for session in sessions}
    if own:
        others = (head.name for head in all_heads(store, HeadQuery(KIND)) if head.name not in erased)
        own -= _recorded(filter(None, (StoredSession.load(id, store, world) for id in others)))
    return sorted(own)


def _recorded(sessions: Iterable[StoredSession]) -> set[str]:
    types = frozenset({ARTIFACT_RECORDED})
    return {
        event.data["artifact"]["id"] for session in sessions for event in session.stream.read(types=types)
    }


class _Traces:
    """What gives erased sessions away: their ids as JSON strings, and whole texts of messages.

    Messages that a session shares with its parent are the parent's, as long as that is there.
    """

    def __init__(self, ids: Sequence[str], sessions: Sequence[StoredSession], heads: dict[str, Head]) -> None:
        self._names = frozenset(ids)
        self._ids = {form for id in ids for form in (to_json(id), to_json(to_json(id))[1:-1])}
        said = (
            text
            for session in sessions
            for event in session.events(after=_shared(heads, heads[session.id]))
            if event.type == MESSAGE_ADDED and event.data.get("role") != "system"
            for text in _texts(event.data.get("content"))
        )
        self._said = {text for text in said if len(text) >= _LEAST}
        self._texts = {to_json(text)[1:-1] for text in self._said}

    def named(self, text: str) -> bool:
        return any(id in text for id in self._ids)

    def found(self, text: str) -> bool:
        return self.named(text) or any(said in text for said in self._texts)

    def told(self, record: Any) -> bool:
        """Return whether a record of a run gives them away, however its steps have wrapped it."""
        if self.found(to_json(record)):
            return True
        texts = defaultdict[str, list[str]](list)
        for key, text in _unwrapped(record):
            if text in self._names:
                return True
            texts[key].append(text)
        # A reply that came in pieces has them under the same key.
        whole = ["".join(pieces) for pieces in texts.values()]
        return any(said in text for said in self._said for text in whole)


def _shared(heads: dict[str, Head], head: Head) -> int:
    return int(head.data.get(FORK_SEQ, 0)) if _has_parent(heads, head) else 0


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a message's content."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _unwrapped(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts in a value with their keys: also those in JSON that is a text, or a line of one, as
    bodies of HTTP have it, and in bytes."""
    if isinstance(value, str):
        yield key, value
        for inner in _documents(value):
            yield from _unwrapped(inner, key)
    elif isinstance(value, list):
        for item in value:
            yield from _unwrapped(item, key)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield key, name
            if name in _BASE64 and isinstance(item, str):
                yield from _unwrapped(_readable(item), key)
            else:
                yield from _unwrapped(item, name)


def _documents(text: str) -> Iterator[Any]:
    """Yield the JSON documents that a text is, or has in lines of their own."""
    for part in (text,) if "\n" not in text else (text, *text.split("\n")):
        part = part.removeprefix("data:").strip()
        if part.startswith(("{", "[", '"')):
            try:
                document = parse_json(part)
            except ValueError:  # it only looks like one, or is too deep
                continue
            yield document
            if part == text:
                return


def _readable(encoded: str) -> str:
    """Return the text in bytes that a run has recorded, compressed or not."""
    try:
        data = b64decode(encoded)
    except ValueError:
        return encoded
    with suppress(zlib.error):  # it is plain
        data = zlib.decompressobj(47).decompress(data, _UNPACKED)
    return data.decode("utf-8", "replace")


def _state(world: World) -> str:
    here = world.files.cwd()
    root = project_root(here, world.files) or here
    return state_directory(root, world.environment.get(STATE_VARIABLE))


def _clean(world: World, traces: _Traces, store: str) -> tuple[list[str], list[str]]:
    """Take the sessions out of a project's files; return which have changed, and what is still to be done.

    A record of a run or a worker that names one goes as a whole; a log loses lines, what a program keeps by
    key loses keys.
    """
    here, state, store = (
        world.files.cwd(),
        _state(world),
        store and os.path.normpath(os.path.join(world.files.cwd(), store)),
    )
    runs = os.path.join(here, runs_directory(here, world.environment.get(RUNS_VARIABLE)))
    logs = {os.path.join(here, place) for name in _LOGS if (place := world.environment.get(name))}
    files, changed, notes = private_files(world.files), list[str](), list[str]()
    paths = {os.path.join(place, name) for place in {state, runs, *logs} for name in files.files_under(place)}
    for path in sorted(paths):
        of_store = store and (path == store or path.startswith((f"{store}/", f"{store}-")))
        if of_store or not path.endswith((".json", ".jsonl")):
            continue
        text = files.read_text(path, "replace")
        if not traces.found(text):
            continue
        directory = os.path.dirname(path)
        if path.endswith(".jsonl"):
            lines = [line for line in text.split("\n") if not traces.found(line)]
            files.replace_text(path, "\n".join(lines))
        elif directory in (state, os.path.join(state, "checkpoints")):
            kept = {
                key: item for key, item in json.loads(text).items() if not traces.found(to_json([key, item]))
            }
            files.replace_text(path, to_json(kept) + "\n")
        elif traces.named(text) and directory in (runs, os.path.join(state, "workers")):
            files.remove(path)
        else:
            notes.append(f"{path} holds what was said there, too")
            continue
        changed.append(path)
    return changed, notes
