"""Lists of a store's sessions, and who descends from whom. Spec: 10 §C6, §C7."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.session.errors import SessionError, SessionNotFound
from harnpy.session.kept.info import SessionInfo, info_of
from harnpy.session.log import KIND
from harnpy.session.parts import arguments
from harnpy.session.statuses import DELETED, check_status
from harnpy.storage.contract import PAGE, HeadQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.storage.contract import Store


class SessionQuery(NamedTuple):
    """Which sessions a list shows: of a ``status``, of an agent, forks of a ``parent``.

    ``order`` is ``updated`` or ``created`` (newest first) or ``id``. Deleted ones are shown only with
    ``deleted``, or when ``status`` asks for them. ``after`` is the `InfoPage.next` of the page before.
    """

    status: str | None = None
    agent: str | None = None
    parent: str | None = None
    order: str = "updated"
    limit: int = PAGE
    after: str | None = None
    deleted: bool = False


class InfoPage(NamedTuple):
    """A part of a list. ``errors`` says which sessions can't be shown, as (id, reason)."""

    items: list[SessionInfo]
    next: str | None = None
    errors: Sequence[tuple[str, str]] = ()

    @property
    def first(self) -> SessionInfo | None:
        return self.items[0] if self.items else None

    def filter_status(self, status: str) -> InfoPage:
        return self._replace(items=[info for info in self.items if info.status == status])

    def filter_agent(self, name: str) -> InfoPage:
        return self._replace(items=[info for info in self.items if info.agent_name == name])


def page_of(store: Store, query: SessionQuery) -> InfoPage:
    """Return the sessions that ``query`` asks for."""
    arguments.instance("query", query, SessionQuery)
    arguments.count("limit", query.limit)
    for name in ("status", "agent", "parent", "after"):
        arguments.optional_text(name, getattr(query, name))
    if query.status is not None:
        check_status(query.status)
    wanted = None if query.status is None else frozenset({query.status})
    hidden = frozenset() if query.deleted or query.status is not None else frozenset({DELETED})
    heads = HeadQuery(KIND, wanted, hidden, query.agent, query.parent, query.order, query.limit, query.after)
    page = store.heads(heads)
    return InfoPage([info_of(head) for head in page.items], page.next, page.errors)


def info(store: Store, id: str) -> SessionInfo:
    """Return a session's info, as the store has it. Raises `SessionNotFound`."""
    head = store.head(KIND, arguments.session_id(id))
    if head is None:
        raise SessionNotFound(id)
    return info_of(head)


def parent(store: Store, id: str) -> SessionInfo | None:
    """Return the session that this one was forked from; None if there is none any more."""
    above = info(store, id).parent_id
    head = None if above is None else store.head(KIND, above)
    return None if head is None else info_of(head)


def children(store: Store, id: str) -> list[SessionInfo]:
    """Return the forks of a session, oldest first."""
    info(store, id)
    return list(_all(store, SessionQuery(parent=id, order="created", deleted=True)))[::-1]


def lineage(store: Store, id: str) -> list[SessionInfo]:
    """Return the sessions that this one descends from, the first one first, and itself.

    Raises `SessionError` for a circle, which imported records can make.
    """
    line = [info(store, id)]
    while (above := parent(store, line[0].id)) is not None:
        if any(below.id == above.id for below in line):
            raise SessionError(f'session ancestry "{id}": cycle detected at "{above.id}"', id)
        line.insert(0, above)
    return line


def _all(store: Store, query: SessionQuery) -> Iterator[SessionInfo]:
    while True:
        page = page_of(store, query)
        yield from page.items
        if page.next is None:
            return
        query = query._replace(after=page.next)
