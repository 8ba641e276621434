"""What a search means, the same in all stores, and how one passes over records without decoding them.

A query is words and ``"phrases"``; a text that holds all of them, whatever the case, is found. Most records
are told by their JSON not to hold them: it has words as the text has them. Spec: 10 §C6, "Search".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from harnpy.faults import paced
from harnpy.storage.contract import Hit
from harnpy.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.storage.contract import Row, Search

_TERM: Final = re.compile(r'"([^"]*)"?|(\S+)')
#: What JSON writes as it is, unless it writes letters as ``\\u…``, too: words, and one blank between two.
_PLAIN: Final = re.compile(r"[\w.-]+(?: [\w.-]+)*")
#: A letter that is written as a number.
_LETTER: Final = re.compile(r"\\u(?!00[01])")
#: Longer ones wouldn't tell more, and SQLite takes no pattern of any length.
_LONGEST: Final = 200


def terms(query: str) -> list[str]:
    """Return the terms of ``query`` with their case folded. Raises `StorageError` when there are none."""
    found = [phrase or word for phrase, word in paced(_TERM.findall(query))]
    folded = [term.casefold() for term in paced(found) if term.strip()]
    if not folded:
        raise StorageError("a search needs at least one word to look for")
    return folded


def holds(text: str, wanted: Sequence[str]) -> bool:
    """Return whether ``text`` holds every one of the folded terms."""
    folded = text.casefold()
    return all(term in folded for term in wanted)


def hits(search: Search, name: str, rows: Sequence[Row], texts: Sequence[str | None]) -> list[Hit]:
    """Return the rows of a stream that ``search`` finds, by looking at every one."""
    wanted, types = terms(search.query), search.types
    return [
        Hit(search.kind, name, row.seq, row.type, text)
        for row, text in zip(rows, texts, strict=True)
        if text is not None and (types is None or row.type in types) and holds(text, wanted)
    ]


def needle(terms: Sequence[str]) -> str:
    """Return the longest part of the folded terms that JSON of a text that holds them has, too; "" for none.

    The codec must not be an `Encoded` one.
    """
    parts = [part for term in terms for part in _PLAIN.findall(term)]
    return max(parts, key=len, default="")[:_LONGEST]


def has_numbered_letters(json: str) -> bool:
    """Return whether the JSON has letters written as numbers, so that it may hold any `needle`."""
    return "\\u" in json and _LETTER.search(json) is not None
