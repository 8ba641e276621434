"""What a search means, the same in all stores. Spec: 10 §C6.

A query is words and ``"phrases"``; a text that holds all of them, whatever the case, is found.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harnpy.storage.contract import Hit
from harnpy.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.storage.contract import Row

_TERM = re.compile(r'"([^"]*)"?|(\S+)')


def terms(query: str) -> list[str]:
    """Return the terms of ``query`` with their case folded. Raises `StorageError` when there are none."""
    found = [phrase or word for phrase, word in _TERM.findall(query)]
    folded = [term.casefold() for term in found if term.strip()]
    if not folded:
        raise StorageError("a search needs at least one word to look for")
    return folded


def holds(text: str, wanted: list[str]) -> bool:
    """Whether ``text`` holds every one of the folded terms."""
    folded = text.casefold()
    return all(term in folded for term in wanted)


def hits(
    kind: str,
    name: str,
    rows: Sequence[Row],
    texts: Sequence[str | None],
    query: str,
    types: frozenset[str] | None,
) -> list[Hit]:
    """Return the rows that ``query`` finds, by looking at every one."""
    wanted = terms(query)
    return [
        Hit(kind, name, row.seq, row.type, text)
        for row, text in zip(rows, texts, strict=True)
        if text is not None and (types is None or row.type in types) and holds(text, wanted)
    ]
