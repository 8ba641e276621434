"""A page of a list of heads, for the stores that have them all at hand. Spec: 10 §C6."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.storage.contract import Page
from harnpy.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.storage.contract import Head, HeadQuery

    Position = tuple[int, str]


def page(heads: Iterable[Head], query: HeadQuery, errors: list[tuple[str, str]] | None = None) -> Page:
    """Return the page of ``heads`` that ``query`` asks for."""
    shown = sorted((head for head in heads if matches(head, query)), key=lambda head: _position(head, query))
    if query.after is not None:
        after = position(query.after)
        shown = [head for head in shown if _position(head, query) > after]
    items = shown[: query.limit]
    more = len(shown) > len(items) and bool(items)
    return Page(items, mark(items[-1], query) if more else None, errors or [])


def matches(head: Head, query: HeadQuery) -> bool:
    """Whether a list shows ``head``."""
    status = head.data.get("status", "")
    return (
        (query.statuses is None or status in query.statuses)
        and status not in query.without
        and (query.agent is None or head.data.get("agent", "") == query.agent)
        and (query.parent is None or head.parent == query.parent)
    )


def mark(head: Head, query: HeadQuery) -> str:
    """Return where a page that ends with ``head`` is continued: a `HeadQuery.after`."""
    number, name = _position(head, query)
    return f"{number}:{name}"


def unknown_order(query: HeadQuery) -> StorageError:
    """Return the error of a list in an order that doesn't exist."""
    return StorageError(f"a list's order is updated, created or id, not `{query.order}`")


def _position(head: Head, query: HeadQuery) -> Position:
    if query.order == "id":
        return 0, head.name
    if query.order not in ("updated", "created"):
        raise unknown_order(query)
    return -(head.updated if query.order == "updated" else head.created), head.name


def position(after: str) -> Position:
    """Return what a `mark` says: a number to sort by, and a name."""
    number, _, name = after.partition(":")
    try:
        return int(number), name
    except ValueError:
        raise StorageError(f"`{after}` is not where a page of a list ended") from None
