"""A LangGraph thread as a stream: each checkpoint and each task's writes is a record. Spec: 10 §C20.

A checkpoint's record holds the values of the channels that changed, so a thread grows by what changed. Every
object of the framework is kept as its own serializer writes it; `checkpoints` reads what is plain data in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NotRequired, TypedDict

from msgspec.json import Decoder
from msgspec.json import encode as to_json

from harnpy.adapters.checkpoints import CHANGES, Typed, Unread, is_internal, plain, texts
from harnpy.storage import Apart, Encoded, Row

#: A version of a channel. Only the framework knows how they are ordered.
Version = str | int | float

#: What a store calls a stream of ours.
KIND = "checkpoint"

PUT = "checkpoint_put"
WRITES = "checkpoint_writes"
REMOVED = "checkpoints_removed"


#: Each so many steps a checkpoint's record has the values of all channels, so that opening a thread needs no
#: older ones.
_WHOLE = 32


def is_whole(step: Any) -> bool:
    """Return whether the record of the checkpoint of that step has the values of all channels."""
    return isinstance(step, int) and step > 0 and step % _WHOLE == 0


class _Put(TypedDict):
    """The data of a checkpoint's record. JSON has bytes in base64."""

    ns: str
    id: str
    parent_id: str | None
    checkpoint: Typed
    metadata: Typed
    run_id: Any
    deltas: list[str]
    versions: dict[str, Any]
    #: Channel → its version, and its value as a `Typed` has it.
    values: dict[str, tuple[Any, str, bytes]]
    empty: NotRequired[list[str]]


class _Writes(TypedDict):
    """The data of the record of what one task wrote after a checkpoint."""

    ns: str
    id: str
    task_id: str
    task_path: str
    #: Number, channel, and the value as a `Typed` has it.
    writes: list[tuple[int, str, str, bytes]]


class ThreadRecord(NamedTuple):
    """One record of a thread."""

    seq: int
    type: str
    time: int
    data: dict[str, Any]


class ThreadCodec(Apart, Encoded):
    """Writes the records of threads as rows, and reads them."""

    def __init__(self) -> None:
        # Told where bytes are, the decoder reads their base64 itself, several times faster than `base64`.
        self._decoders: dict[str, Decoder[Any]] = {PUT: Decoder(_Put), WRITES: Decoder(_Writes)}
        self._other = Decoder[Any]()

    def encode(self, records: Sequence[ThreadRecord]) -> list[Row]:
        count = len(records)
        return [
            Row(record.seq, record.type, record.time, to_json(record.data).decode(), count - number)
            for number, record in enumerate(records, 1)
        ]

    def decode(self, rows: Sequence[Row]) -> list[ThreadRecord]:
        return [ThreadRecord(row.seq, row.type, row.time, self._data(row)) for row in rows]

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        return [_text(row.type, self._data(row)) or None for row in rows]

    def _data(self, row: Row) -> Any:
        return self._decoders.get(row.type, self._other).decode(row.data)


class Write(NamedTuple):
    """A value that a task wrote to a channel. ``number`` orders its writes; the framework's are negative."""

    task_id: str
    number: int
    channel: str
    value: Typed
    task_path: str = ""


class Saved(NamedTuple):
    """A checkpoint without its values."""

    id: str
    parent_id: str | None
    checkpoint: Typed
    metadata: Typed
    #: The run that made it.
    run_id: str | None
    #: Channels whose value is in an earlier checkpoint, and the writes since: they need their ancestors.
    deltas: tuple[str, ...]
    #: The version of each channel.
    versions: Mapping[str, Version]
    #: Channels that have none, though an earlier checkpoint may have one of the same version.
    empty: tuple[str, ...] = ()


class Namespace:
    """The checkpoints of a graph, or of a subgraph, in a thread."""

    def __init__(self) -> None:
        self.checkpoints: dict[str, Saved] = {}
        self.values: dict[tuple[str, Version], Typed] = {}
        #: Checkpoint id → (task id, number) → the write.
        self.writes: dict[str, dict[tuple[str, int], Write]] = {}

    def latest(self) -> str | None:
        """The id of the newest checkpoint: the one that was written last."""
        return next(reversed(self.checkpoints), None)

    def values_of(self, saved: Saved) -> dict[str, Typed]:
        """The values of a checkpoint's channels; a channel without one is left out."""
        found = ((channel, self.values.get((channel, at))) for channel, at in saved.versions.items())
        return {name: value for name, value in found if value is not None and name not in saved.empty}

    def writes_of(self, id: str) -> list[Write]:
        """The pending writes of a checkpoint, in the order in which a run applies them."""
        found = self.writes.get(id, {}).values()
        return sorted(found, key=lambda write: (write.task_path, write.task_id, write.number))

    def needed_by(self, saved: Saved) -> list[Saved]:
        """The checkpoint, and the ancestors without which its channels couldn't be put together again."""
        needed = [saved]
        missing = set(saved.deltas) - self.values_of(saved).keys()
        parent = saved.parent_id
        while missing and parent in self.checkpoints:
            ancestor = self.checkpoints[parent]
            needed.append(ancestor)
            missing -= self.values_of(ancestor).keys()
            parent = ancestor.parent_id
        return needed

    def remove(self, ids: Iterable[str]) -> None:
        for id in ids:
            self.checkpoints.pop(id, None)
            self.writes.pop(id, None)


class Thread:
    """A thread as its records describe it. ``version`` is the number of the last one."""

    def __init__(self) -> None:
        self.version = 0
        self.namespaces: dict[str, Namespace] = {}

    def apply(self, record: ThreadRecord) -> None:
        """Apply the next record."""
        self.version = record.seq
        effect = _EFFECTS.get(record.type)
        if effect is not None:  # a store that was repaired says so in a record of its own
            effect(self.namespaces.setdefault(record.data["ns"], Namespace()), record.data)


def looked_up(records: Iterable[ThreadRecord], ns: str, id: str | None) -> tuple[Namespace, Saved] | None:
    """Return a checkpoint, the newest for None, and a namespace that has its values and writes.

    ``records`` are the thread's, the newest first; they are read no further than to where the checkpoint's
    channels have all their values.
    """
    namespace = Namespace()
    saved: Saved | None = None
    removed: set[str] = set()
    writes: list[dict[str, Any]] = []
    lacking: dict[str, Version] = {}
    parent: str | None = None
    for record in records:
        data = record.data
        if record.type not in _EFFECTS or data["ns"] != ns:
            continue
        if record.type == REMOVED:
            removed.update(data["ids"])
        elif record.type == WRITES and saved is None:
            writes.append(data)
        elif record.type == PUT:
            if saved is None:
                if data["id"] in removed or id not in (None, data["id"]):
                    continue
                saved = _saved(data)
                lacking = {name: at for name, at in saved.versions.items() if name not in saved.empty}
            elif data["id"] == parent:
                # What an ancestor has another version of got no value when it changed.
                known = data["versions"]
                lacking = {channel: at for channel, at in lacking.items() if known.get(channel) == at}
            parent = data["parent_id"] if data["id"] in (saved.id, parent) else parent
            for channel, (version, sort, value) in data["values"].items():
                if lacking.get(channel) == version:
                    namespace.values[channel, version] = sort, value
                    del lacking[channel]
            if not lacking:
                break
    if saved is None:
        return None
    namespace.checkpoints[saved.id] = saved
    for data in reversed(writes):
        if data["id"] == saved.id:
            _written(namespace, data)
    return namespace, saved


# A thread as people see it.


class Shown(NamedTuple):
    """A checkpoint as plain data. Whatever can't be read here is an `Unread`."""

    ns: str
    id: str
    parent_id: str | None
    #: The number and the time of its record.
    seq: int
    time: int
    metadata: Any
    #: What its state is, and which part of that its record holds. Without the framework's own channels.
    values: dict[str, Any]
    changed: dict[str, Any]
    #: What tasks have written behind it: (task id, channel, value).
    writes: list[tuple[str, str, Any]]

    @property
    def step(self) -> str:
        """The step of its run, in LangGraph's words."""
        known = self.metadata if isinstance(self.metadata, dict) else {}
        return f"step {known.get('step')} ({known.get('source')})" if "step" in known else ""


class ThreadHistory:
    """The checkpoints of a thread, from its records."""

    def __init__(self, records: Iterable[ThreadRecord]) -> None:
        self.thread = Thread()
        self._puts: dict[tuple[str, str], ThreadRecord] = {}
        for record in records:
            self.thread.apply(record)
            if record.type == PUT:
                place = record.data["ns"], record.data["id"]
                self._puts.pop(place, None)  # pruned: written once more, and as old as that
                self._puts[place] = record

    def places(self) -> list[tuple[str, str]]:
        """Return namespace and id of the checkpoints that weren't removed, in the order of their records."""
        spaces = self.thread.namespaces
        return [(ns, id) for ns, id in self._puts if id in spaces[ns].checkpoints]

    def deltas(self) -> set[str]:
        """Return the channels of which only the changes are kept."""
        spaces = self.thread.namespaces.values()
        return {name for space in spaces for saved in space.checkpoints.values() for name in saved.deltas}

    def latest(self) -> tuple[str, str] | None:
        """Return the place of the graph's newest checkpoint; a subgraph's, if it has none itself."""
        root = self.thread.namespaces.get("", Namespace()).latest()
        return ("", root) if root is not None else next(reversed(self.places()), None)

    def shown(self, place: tuple[str, str]) -> Shown:
        """Return the checkpoint at a place."""
        ns, id = place
        namespace, record = self.thread.namespaces[ns], self._puts[place]
        saved = namespace.checkpoints[id]
        values = _state(namespace.values_of(saved))
        values |= {name: CHANGES for name in saved.deltas if name not in values}
        return Shown(
            ns,
            id,
            saved.parent_id,
            record.seq,
            record.time,
            plain(saved.metadata),
            values,
            {name: values[name] for name in record.data["values"] if name in values},
            [(write.task_id, write.channel, plain(write.value)) for write in namespace.writes_of(id)],
        )


def _state(channels: Mapping[str, Typed]) -> dict[str, Any]:
    return {name: plain(value) for name, value in channels.items() if not is_internal(name)}


def plain_data(record: ThreadRecord) -> dict[str, Any]:
    """Return the data of a record as JSON has it: values as plain data, or as the reason why not."""
    data = dict(record.data)
    if record.type == PUT:
        for name in ("checkpoint", "metadata"):
            data[name] = readable(plain(data[name]))
    if record.type in (PUT, WRITES):
        channels = _channels(record.type, data)
        data["values" if record.type == PUT else "writes"] = [
            [channel, readable(plain(value))] for channel, value in channels
        ]
    return data


def readable(value: Any) -> Any:
    """Return the value, or as text why it can't be read."""
    return str(value) if isinstance(value, Unread) else value


def _channels(type: str, data: dict[str, Any]) -> list[tuple[str, Typed]]:
    """Return what a record holds of channels, each with its value."""
    if type == PUT:
        return [(channel, (sort, value)) for channel, (_, sort, value) in data["values"].items()]
    return [(channel, (sort, value)) for _, channel, sort, value in data["writes"]] if type == WRITES else []


def _text(type: str, data: dict[str, Any]) -> str:
    return "\n".join(texts(_channels(type, data)))


# The data of the records, and what each type does.


def put_data(ns: str, saved: Saved, values: Mapping[str, Typed]) -> dict[str, Any]:
    """A checkpoint and those of its values that earlier records don't hold."""
    kept = {channel: (saved.versions[channel], *value) for channel, value in values.items()}
    return {
        "ns": ns,
        "id": saved.id,
        "parent_id": saved.parent_id,
        "checkpoint": saved.checkpoint,
        "metadata": saved.metadata,
        "run_id": saved.run_id,
        "deltas": list(saved.deltas),
        "versions": dict(saved.versions),
        "values": kept,
        **({"empty": list(saved.empty)} if saved.empty else {}),
    }


def writes_data(ns: str, id: str, writes: Sequence[Write]) -> dict[str, Any]:
    """Return the data of what one task wrote after a checkpoint."""
    return {
        "ns": ns,
        "id": id,
        "task_id": writes[0].task_id,
        "task_path": writes[0].task_path,
        "writes": [(write.number, write.channel, *write.value) for write in writes],
    }


def removed_data(ns: str, ids: Iterable[str]) -> dict[str, Any]:
    """Checkpoints that are no longer there."""
    return {"ns": ns, "ids": list(ids)}


def _put(namespace: Namespace, data: dict[str, Any]) -> None:
    for channel, (version, sort, value) in data["values"].items():
        namespace.values[channel, version] = sort, value
    namespace.checkpoints[data["id"]] = _saved(data)


def _saved(data: dict[str, Any]) -> Saved:
    return Saved(
        data["id"],
        data["parent_id"],
        data["checkpoint"],
        data["metadata"],
        data["run_id"],
        tuple(data["deltas"]),
        data["versions"],
        tuple(data.get("empty", ())),
    )


def _written(namespace: Namespace, data: dict[str, Any]) -> None:
    known = namespace.writes.setdefault(data["id"], {})
    for number, channel, sort, value in data["writes"]:
        key = (data["task_id"], number)
        if number < 0 or key not in known:  # a task that runs again doesn't change what it wrote
            known[key] = Write(data["task_id"], number, channel, (sort, value), data["task_path"])


def _removed(namespace: Namespace, data: dict[str, Any]) -> None:
    namespace.remove(data["ids"])


_EFFECTS = {PUT: _put, WRITES: _written, REMOVED: _removed}
