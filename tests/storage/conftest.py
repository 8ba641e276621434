"""The stores that the contract is tested on, and records for them."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harnpy.storage import Encoded, Row, Store, open_store
from harnpy.storage.leases import Machine

#: Every store, as a URL with a place for the directory of the test. Waiting for the disk after each append
#: is left to tests of its own.
STORES = {
    "memory": "memory:",
    "jsonl": "jsonl:{directory}/store?durability=relaxed",
    "sqlite": "sqlite:{directory}/store.db?durability=relaxed",
    "postgres": "{postgres}",
}


class Note(NamedTuple):
    """A record of the tests."""

    seq: int
    text: str
    type: str = "note"
    key: str | None = None
    id: str | None = None
    #: Seconds since 1970; None: its number. Isn't read back.
    time: int | None = None


class Notes:
    """The codec of `Note`s. Their times are their numbers, in seconds."""

    def encode(self, records: Sequence[Note]) -> list[Row]:
        return [self._row(note, len(records) - number) for number, note in enumerate(records, 1)]

    def _row(self, note: Note, more: int) -> Row:
        rest = None if note.id is None else json.dumps({"id": note.id})
        data = json.dumps({"text": note.text}, ensure_ascii=False, separators=(",", ":"))
        time = note.seq if note.time is None else note.time
        return Row(note.seq, note.type, time * 1_000_000, data, more, key=note.key, rest=rest)

    def decode(self, rows: Sequence[Row]) -> list[Note]:
        return [self._note(row) for row in rows]

    def _note(self, row: Row) -> Note:
        id = None if row.rest is None else json.loads(row.rest)["id"]
        return Note(row.seq, json.loads(row.data)["text"], row.type, row.key, id)

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        return [json.loads(row.data)["text"] if row.type == "note" else None for row in rows]


NOTES = Notes()


class Together(Notes):
    """A codec whose rows say where in their append they are; it reads them from its first one on."""

    def encode(self, records: Sequence[Note]) -> list[Row]:
        rows = super().encode(records)
        return [row._replace(turn=number) for number, row in enumerate(rows)]

    def decode(self, rows: Sequence[Row]) -> list[Note]:
        expected = 0
        for row in rows:
            assert row.turn in (0, expected), "a part of an append, without its begin"
            expected = (row.turn or 0) + 1
        return super().decode(rows)

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        self.decode(rows)
        return super().texts(rows)


TOGETHER = Together()


class Coded(Notes, Encoded):
    """A codec whose rows don't show the texts of its records."""

    def encode(self, records: Sequence[Note]) -> list[Row]:
        return [row._replace(data=json.dumps(_coded(row.data))) for row in super().encode(records)]

    def decode(self, rows: Sequence[Row]) -> list[Note]:
        return super().decode([_uncoded(row) for row in rows])

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        return super().texts([_uncoded(row) for row in rows])


def _coded(data: str) -> str:
    return b64encode(data.encode()).decode()


def _uncoded(row: Row) -> Row:
    return row._replace(data=b64decode(json.loads(row.data)).decode())


CODED = Coded()


def notes(first: int, *texts: str, **more: Any) -> list[Note]:
    """Records numbered from ``first``."""
    return [Note(number, text, **more) for number, text in enumerate(texts, first)]


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
