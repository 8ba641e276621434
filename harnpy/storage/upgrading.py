"""A store's version: which one it has, and raising it to the newest one. Spec: 10 §C6.

Opening a store never raises its version, so a process of an older harnpy goes on working beside a newer one.
"""

from __future__ import annotations

from contextlib import closing
from os.path import exists
from typing import TYPE_CHECKING, NamedTuple

from harnpy.storage.errors import NoStore, Unsupported
from harnpy.storage.opening import StoreUrl, parse_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection


class Upgrade(NamedTuple):
    """``found`` is the version that a store had, ``newest`` the newest one that this harnpy knows of it."""

    url: str
    found: int
    newest: int


def upgrade_store(url: str, *, dry_run: bool = False) -> Upgrade:
    """Give the store at ``url`` the newest version, or only look with ``dry_run``.

    Raises `NoStore` where there is none, `SchemaTooNew` for one of a newer harnpy, which isn't touched,
    `Unsupported` for a kind of store that has no versions, and whatever keeps the store from being opened.
    """
    parsed = parse_url(url)
    upgrade = _UPGRADES.get(parsed.scheme)
    if upgrade is None:
        raise Unsupported(f"{parsed} has no version: nothing can be upgraded")
    return Upgrade(str(parsed), *upgrade(parsed, dry_run))


def _jsonl(url: StoreUrl, dry_run: bool) -> tuple[int, int]:
    from harnpy.storage.jsonl.layout import FORMAT_VERSION, Folder, disk_errors, format_version

    with disk_errors(url), closing(Folder(url.target)) as root:
        return format_version(root, url), FORMAT_VERSION


def _sqlite(url: StoreUrl, dry_run: bool) -> tuple[int, int]:
    from sqlite3 import connect

    from harnpy.storage.sqlite import database

    if not exists(url.target):
        raise NoStore(str(url))
    with (
        database.failures(url),
        closing(connect(url.target, timeout=url.timeout, isolation_level=None)) as connection,
    ):
        return database.upgrade(connection, url, dry_run=dry_run), database.VERSION


def _postgres(url: StoreUrl, dry_run: bool) -> tuple[int, int]:
    from harnpy.storage.postgres import database

    found = 0

    def look(connection: Connection, where: str) -> None:
        nonlocal found
        found = database.version(connection, where)

    database.Database(url, look).close()
    return found, database.VERSION


#: By scheme: what returns the version found and the newest one. The formats of `jsonl:` and of PostgreSQL are
#: still the first, so there is nothing to raise yet.
_UPGRADES: dict[str, Callable[[StoreUrl, bool], tuple[int, int]]] = {
    "jsonl": _jsonl,
    "sqlite": _sqlite,
    "postgresql": _postgres,
}
