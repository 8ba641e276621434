"""Records of the tests, and codecs for them. Processes of tests import it, so nothing here is of pytest."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple

from harnpy.storage import Encoded, Row


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
