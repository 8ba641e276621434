"""Searching a few hundred short texts: by words (BM25) or by a regular expression. Pure. Spec: 07 §5."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.text.regex.dialect import PatternError, compiled

if TYPE_CHECKING:
    from collections.abc import Mapping

K1 = 1.5
B = 0.75
MOST_RESULTS = 20

#: Seconds for one text. A model's pattern may backtrack for ever.
_TIMEOUT = 0.25

_TOKEN = re.compile(r"[^\W_]+")
_NO_WORDS = "empty query after tokenization; use alphanumeric search terms"
_NO_MATCH = "no tools matched your regex; widen the alternation or relax quantifiers"
_NO_TOOL = "no tools matched your BM25 query; try shorter or more generic terms"


class Hits(NamedTuple):
    """Names in order of relevance, or else the reason why there are none."""

    names: list[str]
    diagnostic: str | None = None


def search_words(texts: Mapping[str, str], query: str) -> Hits:
    """Return the texts that have words of the query, by BM25; ties by name."""
    terms = dict.fromkeys(_tokens(query))
    if not terms:
        return Hits([], _NO_WORDS)
    documents = {name: Counter(_tokens(text)) for name, text in texts.items()}
    lengths = {name: words.total() for name, words in documents.items()}
    average = sum(lengths.values()) / len(documents) if documents else 0.0
    scores = dict.fromkeys(documents, 0.0)
    for term in terms:
        holding = [name for name, words in documents.items() if term in words]
        rarity = math.log(1 + (len(documents) - len(holding) + 0.5) / (len(holding) + 0.5))
        for name in holding:
            count = documents[name][term]
            norm = K1 * (1 - B + B * lengths[name] / average)
            scores[name] += rarity * count * (K1 + 1) / (count + norm)
    return _ranked(scores) or Hits([], _NO_TOOL)


def search_pattern(texts: Mapping[str, str], pattern: str) -> Hits:
    """Return the texts that match, ignoring case, those with the most matches first; ties by name."""
    try:
        found: Any = compiled(f"(?i){pattern}")
    except PatternError as error:
        return Hits([], f"regex compile error: {error}")
    scores = {}
    for name, text in texts.items():
        try:
            scores[name] = float(sum(1 for _ in found.finditer(text, timeout=_TIMEOUT)))
        except TimeoutError:
            return Hits([], "regex compile error: the pattern takes too long; simplify its repetitions")
    return _ranked(scores) or Hits([], _NO_MATCH)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


def _ranked(scores: Mapping[str, float]) -> Hits | None:
    found = sorted((name for name in scores if scores[name] > 0), key=lambda name: (-scores[name], name))
    return Hits(found[:MOST_RESULTS]) if found else None
