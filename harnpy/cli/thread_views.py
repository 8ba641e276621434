"""Threads of LangGraph on a terminal: the state of one, its checkpoints, its records. Spec: 10 §C20, §C21."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING, Any

from harnpy.adapters.checkpoints import INTERRUPT, Unread, is_internal, messages, questions
from harnpy.adapters.conversations import THREAD, thread_history, thread_stream
from harnpy.adapters.threads import KIND, Shown, ThreadHistory, ThreadRecord, plain_data, readable
from harnpy.cli.console import counted, one_line, say
from harnpy.cli.session_views import message_lines, short, stamp
from harnpy.formats.json import compact_json
from harnpy.session.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.past import Until
    from harnpy.storage import Store

#: How long one look for news takes at most, in seconds.
_GLANCE = 60.0


def show_thread(
    store: Store, as_json: bool, id: str, what: str | None, until: Until | None, *, follow: bool
) -> None:
    """Print the state of a thread, its checkpoints (``history``) or its records (``events``)."""
    history = thread_history(store, id, None if isinstance(until, str) else until)
    shown = history.shown(_place(history, id, until if isinstance(until, str) else None))
    if isinstance(until, str) and what is not None:
        history = thread_history(store, id, shown.seq)
    if what is None:
        state = checkpoint_as_dict(id, shown, shown.values)
        say(compact_json(state) if as_json else thread_lines(id, history, shown))
    else:
        _say_thread(store, history, as_json, id, what)
    while follow:
        seen = history.thread.version
        if store.changes(KIND, id, seen, _GLANCE) > seen:
            history = thread_history(store, id)
            _say_thread(store, history, as_json, id, what or "history", after=seen)


def _place(history: ThreadHistory, id: str, checkpoint: str | None) -> tuple[str, str]:
    """The place of the checkpoint of that id, None for the last one. Raises `SessionError`."""
    if checkpoint is None:
        latest = history.latest()
        if latest is None:
            raise SessionError(f"thread '{id}' has no checkpoint", id)
        return latest
    for place in history.places():
        if place[1] == checkpoint:
            return place
    raise SessionError(f"Checkpoint not found in thread '{id}': '{checkpoint}'", id)


def _say_thread(
    store: Store, history: ThreadHistory, as_json: bool, id: str, what: str, after: int = 0
) -> None:
    """All records behind ``after``, or the checkpoints among them."""
    if what == "events":
        for record in thread_stream(store, id).read(after, history.thread.version):
            say(compact_json(record_as_dict(record)) if as_json else record_line(record))
        return
    before: dict[tuple[str, str | None], Shown] = {}
    deltas = history.deltas()
    for place in history.places():
        shown = before[place] = history.shown(place)
        if shown.seq <= after:
            continue
        if as_json:
            say(compact_json(checkpoint_as_dict(id, shown, shown.changed)))
        else:
            say(checkpoint_lines(shown, before.get((shown.ns, shown.parent_id)), deltas))


def thread_lines(id: str, history: ThreadHistory, shown: Shown) -> str:
    """A thread as it is at a checkpoint: which one that is, then its state, and what it waits for."""
    count = counted(len(history.places()), "checkpoint")
    lines = [f"thread {one_line(id)}: {count}", _place_line(shown)]
    for channel, value in shown.values.items():
        lines += _value_lines(f"{channel}:", value)
    for _, channel, value in shown.writes:
        if channel == INTERRUPT:
            lines += [f"asks: {one_line(_text(question))}" for question in questions(value)]
        elif not is_internal(channel):
            lines += _value_lines(f"then {channel}:", value)
    return "\n".join(lines)


def checkpoint_lines(shown: Shown, before: Shown | None, deltas: set[str]) -> str:
    """A checkpoint: number, time, step, and what has changed in it since the one before.

    Of the channels ``deltas``, what was written behind it: that is all that there is of them.
    """
    lines = [f"{shown.seq:6}  {_place_line(shown)}"]
    for channel, value in shown.changed.items():
        former = None if before is None else before.values.get(channel)
        named = f"{channel}:"
        if isinstance(value, list) and isinstance(former, list) and value[: len(former)] == former != []:
            named, value = f"{channel} +", value[len(former) :]
        lines += _indented(_value_lines(named, value, short))
    for _, channel, value in shown.writes:
        if channel in deltas:
            lines += _indented(_value_lines(f"then {channel}:", value, short))
    return "\n".join(lines)


def _indented(lines: list[str]) -> list[str]:
    return [indent(line, " " * 8) for line in lines]


def record_line(record: ThreadRecord) -> str:
    """A record of a thread: number, time, type, and the beginning of its data."""
    return (
        f"{record.seq:6}  {stamp(record.time)}  {record.type:20}  {short(compact_json(plain_data(record)))}"
    )


def record_as_dict(record: ThreadRecord) -> dict[str, Any]:
    """A record of a thread as JSON shows it."""
    return {
        "seq": record.seq,
        "type": record.type,
        "timestamp": stamp(record.time),
        "data": plain_data(record),
    }


def checkpoint_as_dict(id: str, shown: Shown, values: dict[str, Any]) -> dict[str, Any]:
    """A checkpoint as JSON shows it, with some of its values."""
    return {
        "kind": THREAD,
        "id": id,
        "ns": shown.ns,
        "checkpoint_id": shown.id,
        "parent_id": shown.parent_id,
        "seq": shown.seq,
        "timestamp": stamp(shown.time),
        "metadata": readable(shown.metadata),
        "values": {name: value for name, value in values.items() if not isinstance(value, Unread)},
        "unread": {name: value.why for name, value in values.items() if isinstance(value, Unread)},
        "writes": [
            {"task_id": task, "channel": channel, "value": readable(value)}
            for task, channel, value in shown.writes
        ],
    }


def _place_line(shown: Shown) -> str:
    of = f" of {one_line(shown.ns)}" if shown.ns else ""
    known = [stamp(shown.time), shown.step, f"checkpoint {one_line(shown.id)}{of}"]
    if isinstance(shown.metadata, Unread):
        known.append(f"metadata {shown.metadata}")
    return "  ".join(filter(None, known))


def _value_lines(name: str, value: Any, shown: Callable[[str], str] = one_line) -> list[str]:
    """A value behind its name; messages below it."""
    said = messages(value)
    if said is not None:
        return [one_line(name), *map(message_lines, said)]
    return [f"{one_line(name)} {shown(_text(value))}"]


def _text(value: Any) -> str:
    value = readable(value)
    return value if isinstance(value, str) else compact_json(value)
