"""A record as a line of JSON, and back.

A line is an object: ``seq``, ``turn``, ``type``, ``timestamp``, ``data``, what the row keeps besides,
``cost``, ``more``, ``key``, then ``log``, what the store has to say about the log itself (`Facts`), then
``crc``, the CRC-32 of the text without it. A line without ``seq`` only has facts. Spec: 10 §C4, §C6.1.
"""

from __future__ import annotations

import zlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from harnpy.storage.contract import Row
from harnpy.storage.errors import SchemaTooNew

if TYPE_CHECKING:
    from collections.abc import Sequence

#: ``,"crc":"0bc4b29f"}``
_CRC = 18
#: How the lines of this store begin. Those of other systems may do without a checksum.
_OURS = (b'{"seq":', b'{"log":')
#: The newest version of a line.
_VERSION = 1
#: How a turn begins that isn't a number.
_NAMED = b'"'
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a branch comes from: the records 2 … ``at`` are those of the log ``uid``.

    Without a ``uid``, the branch has a copy of them, and the name is for people.
    """

    name: str
    at: int
    uid: str = ""


class Facts(msgspec.Struct, omit_defaults=True):
    """What a line says about its log."""

    #: The stream's full name, and what distinguishes this log from an earlier one of that name.
    name: str | None = None
    uid: str | None = None
    branch: Origin | None = None
    #: How many records there are behind this line, where that isn't the line's ``seq``.
    version: int | None = None
    #: The records up to this number are gone.
    dropped: int = 0
    #: The times of the first and last record, where they are gone.
    created: str | None = None
    updated: str | None = None
    #: The new data of the head; ``set`` has only those members that changed.
    head: dict[str, Any] | None = None
    set: dict[str, Any] | None = None


class Brief(msgspec.Struct):
    """What the state of a log depends on."""

    seq: int = 0
    timestamp: str = ""
    more: int = 0
    v: int = 1
    log: Facts | None = None


class BadLine(Exception):
    """A line that can't be read, and why."""


_BRIEF = msgspec.json.Decoder(Brief)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_INT = msgspec.json.Decoder(int)
_FLOAT = msgspec.json.Decoder(float)


def written(rows: Sequence[Row], facts: Facts | None = None) -> bytes:
    """Return the lines of one append. ``facts`` stand on the first one."""
    if not rows:
        return b"" if facts is None else _summed("{", facts)
    return b"".join(_summed(_opened(row), None if n else facts) for n, row in enumerate(rows))


def _opened(row: Row) -> str:
    """Return the object of a row without its end."""
    parts = [f'{{"seq":{row.seq}']
    if row.turn is not None:
        parts.append(f'"turn":{row.turn}')
    parts += [
        f'"type":{_json(row.type)}',
        f'"timestamp":"{timestamp(row.time)}"',
        f'"data":{_line(row.data)}',
    ]
    if row.rest is not None and len(row.rest) > 2:
        parts.append(_line(row.rest)[1:-1])
    if row.cost is not None:
        parts.append(f'"cost":{_json(row.cost)}')
    if row.more:
        parts.append(f'"more":{row.more}')
    if row.key is not None:
        parts.append(f'"key":{_json(row.key)}')
    return ",".join(parts)


def _summed(opened: str, facts: Facts | None) -> bytes:
    """Close an object: with facts, and with its checksum."""
    if facts is not None:
        comma = "," if len(opened) > 1 else ""
        opened += f'{comma}"log":{_json(facts)}'
    text = opened.encode("utf-8", "replace")
    return b'%b,"crc":"%08x"}\n' % (text, zlib.crc32(b"}", zlib.crc32(text)))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _line(text: str) -> str:
    """Return JSON text without line ends."""
    if "\n" not in text and "\r" not in text:
        return text
    return msgspec.json.format(text, indent=-1)


def checked(line: bytes) -> None:
    """Raise `BadLine` unless a line, without its end, is as it was written."""
    if line[-_CRC:-10] == b',"crc":"':
        if line[-10:-2] != b"%08x" % zlib.crc32(b"}", zlib.crc32(line[:-_CRC])):
            raise BadLine("bad checksum")
    elif line.startswith(_OURS):
        raise BadLine("no checksum")


def brief(line: bytes) -> Brief:
    """Return what the state of a log depends on. Raises `BadLine`, or `SchemaTooNew` for a newer line."""
    checked(line)
    try:
        found = _BRIEF.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadLine(str(error)) from error
    if found.v > _VERSION:
        raise SchemaTooNew("a line of the log", found.v, _VERSION)
    return found


def row(line: bytes, seq: int) -> Row | None:
    """Return the row of a line; None for one that has facts only. ``seq`` is for lines that have none.

    Raises `BadLine`.
    """
    checked(line)
    try:
        return _row(line, seq)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, KeyError) as error:
        raise BadLine(str(error)) from error


def _row(line: bytes, seq: int) -> Row | None:
    members = _MEMBERS.decode(line)
    if "type" not in members:
        return None
    pop = members.pop
    type = _TEXT.decode(pop("type"))
    time = microseconds(_TEXT.decode(pop("timestamp")))
    data = str(pop("data", b"null"), "utf-8")
    number = _INT.decode(pop("seq")) if "seq" in members else seq
    more = _INT.decode(pop("more")) if "more" in members else 0
    named = bytes(members.get("turn", _NAMED)).startswith(_NAMED)  # a name is kept among the rest
    turn = None if named else _INT.decode(pop("turn"))
    cost = _FLOAT.decode(pop("cost")) if "cost" in members else None
    key = _TEXT.decode(pop("key")) if "key" in members else None
    for mine in ("crc", "log", "v"):
        pop(mine, None)
    rest = None
    if members:
        rest = "{" + ",".join(f"{_json(name)}:{str(raw, 'utf-8')}" for name, raw in members.items()) + "}"
    return Row(number, type, time, data, more, turn, cost, key, rest)


def timestamp(time: int) -> str:
    """Microseconds since 1970 as RFC 3339 with 6 decimals."""
    return (_EPOCH + timedelta(microseconds=time)).isoformat(timespec="microseconds")[:-6] + "Z"


def microseconds(timestamp: str) -> int:
    """A time of RFC 3339, as other systems write it, too, in microseconds since 1970."""
    when = datetime.fromisoformat(timestamp)
    return ((when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
