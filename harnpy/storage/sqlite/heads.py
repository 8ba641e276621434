"""What lists show of streams, read from their rows. Spec: 10 §C6.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import DecodeError
from msgspec.json import decode

from harnpy.storage.contract import Head, Page
from harnpy.storage.errors import CorruptLog
from harnpy.storage.paging import mark, position, unknown_order

if TYPE_CHECKING:
    from sqlite3 import Connection

    from harnpy.storage.contract import HeadQuery

_SELECT = """
SELECT s.kind, s.name, s.version, s.created, s.updated, p.name, s.fork_seq, s.head
FROM current s LEFT JOIN streams p ON p.sid = s.parent AND p.kind = s.kind
WHERE s.version > 0 AND s.kind = ?"""

#: By what a page of each order is continued, and how it is sorted.
_ORDERS = {
    "updated": ("-s.updated", "s.updated DESC, s.name"),
    "created": ("-s.created", "s.created DESC, s.name"),
    "id": ("0", "s.name"),
}


def head(db: Connection, kind: str, name: str, where: str) -> Head | None:
    """Return the head of a stream, None when nobody has written it."""
    row = db.execute(f"{_SELECT} AND s.name = ?", (kind, name)).fetchone()
    if row is None:
        return None
    found = _head(row)
    if isinstance(found, Head):
        return found
    raise CorruptLog(where, f"stream '{name}': {found}")


def heads(db: Connection, query: HeadQuery) -> Page:
    """Return the page that ``query`` asks for."""
    if query.order not in _ORDERS:
        raise unknown_order(query)
    key, order = _ORDERS[query.order]
    where, values = _conditions(query)
    if query.after is not None:
        number, name = position(query.after)
        where += f" AND ({key} > ? OR {key} = ? AND s.name > ?)"
        values += [number, number, name]
    rows = db.execute(
        f"{_SELECT}{where} ORDER BY {order} LIMIT ?", (query.kind, *values, query.limit + 1)
    ).fetchall()
    items: list[Head] = []
    errors: list[tuple[str, str]] = []
    for row in rows[: query.limit]:
        found = _head(row)
        if isinstance(found, Head):
            items.append(found)
        else:
            errors.append((row[1], found))
    return Page(items, _next(rows, query), errors)


def _next(rows: list[tuple[Any, ...]], query: HeadQuery) -> str | None:
    """Return where the page is continued, None when it is the last one."""
    if len(rows) <= query.limit or not query.limit:
        return None
    return mark(Head(*rows[query.limit - 1][:7]), query)


def _head(row: tuple[Any, ...]) -> Head | str:
    """Return the head, or what is wrong with it."""
    try:
        data = decode(row[7])
    except DecodeError as error:
        return f"its head is not JSON: {error}"
    return Head(*row[:7])._replace(data=data) if isinstance(data, dict) else "its head is not a JSON object"


def _conditions(query: HeadQuery) -> tuple[str, list[Any]]:
    where = ""
    values: list[Any] = []
    if query.statuses is not None:
        where += f" AND s.status IN ({_marks(query.statuses)})"
        values += query.statuses
    if query.without:
        where += f" AND s.status NOT IN ({_marks(query.without)})"
        values += query.without
    for column, value in (("s.agent", query.agent), ("p.name", query.parent)):
        if value is not None:
            where += f" AND {column} = ?"
            values.append(value)
    return where, values


def _marks(values: frozenset[str]) -> str:
    return ", ".join("?" * len(values))
