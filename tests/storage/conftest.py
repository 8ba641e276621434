"""The stores that the contract is tested on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harnpy.storage import Store, open_store
from harnpy.storage.leases import Machine

#: Every store, as a URL with a place for the directory of the test. Waiting for the disk after each append
#: is left to tests of its own.
STORES = {
    "memory": "memory:",
    "jsonl": "jsonl:{directory}/store?durability=relaxed",
    "sqlite": "sqlite:{directory}/store.db?durability=relaxed",
    "postgres": "{postgres}",
}


def url_of(name: str, request: pytest.FixtureRequest, directory: Path) -> str:
    """The URL of an empty store, one of `STORES`."""
    if name == "postgres":
        return str(request.getfixturevalue("postgres"))
    return STORES[name].format(directory=directory)


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store, one of each kind in turn."""
    return url_of(request.param, request, tmp_path)


class Uptime:
    """The clock that leases go by. It stands still unless the test moves it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._now = 100.0

    def __call__(self) -> float:
        return self._now

    def passes(self, seconds: float) -> None:
        self._now += seconds
        if self._url.startswith("postgresql:"):
            self._pass_on_server(seconds)

    def _pass_on_server(self, seconds: float) -> None:
        """The server's clock goes on: bring the ends nearer instead."""
        import psycopg

        with psycopg.connect(self._url) as connection:
            for end in ("leases SET expires_at = expires_at", "tickets SET alive_until = alive_until"):
                connection.execute(f"UPDATE harn.{end} - %s * interval '1 second'", [seconds])


@pytest.fixture
def uptime(url: str) -> Uptime:
    return Uptime(url)


@pytest.fixture
def opened(url: str) -> Iterator[Callable[..., Store]]:
    """Open the store of the test once more; all of them are closed in the end."""
    stores: list[Store] = []

    def one_more(uptime: Callable[[], float] | None = None) -> Store:
        stores.append(open_store(url, machine=Machine(uptime)))
        return stores[-1]

    yield one_more
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[..., Store]) -> Store:
    return opened()
