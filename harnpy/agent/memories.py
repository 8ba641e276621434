"""Memories: records in namespaces, found again by the words in them. Spec: 06 §20.

<memory root>/<namespace>/events.jsonl    a record or a tombstone on each line; it only grows
"""

from __future__ import annotations

import os.path
import re
from collections import Counter
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import MisuseError
from harnpy.formats.dicts import as_texts
from harnpy.formats.json import parse_json, to_json
from harnpy.formats.paths import path_text
from harnpy.world.clock import rfc3339
from harnpy.world.files import system_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from harnpy.formats.dicts import Dict
    from harnpy.world import World
    from harnpy.world.files import Files

RECORD, SUMMARY, FORGET = "memory_record", "memory_summary", "memory_forget"

_FILE = "events.jsonl"
_TOKEN = re.compile(r"[^\W_]{2,}")
#: BM25's.
_K1, _B = 1.2, 0.75
_IN_KEY, _IN_TAGS = 0.4, 0.25
_MOST_FOUND = 100
_MOST_BYTES = 4000


class Window(NamedTuple):
    """The newest ``limit`` records that have a token of ``query`` and one of ``tags``, as far as given."""

    limit: int
    query: str | None
    tags: tuple[str, ...]


class Memories:
    """Those of one namespace below ``root``."""

    def __init__(self, root: str, namespace: str, world: World, files: Files) -> None:
        self._namespace = namespace
        self.path = os.path.join(root, *_names(namespace), _FILE)
        self._world = world
        self._files = files

    def store(self, key: str, value: Any, tags: list[str], options: Dict) -> Dict:
        """Add a record and return it. Raises `MisuseError`."""
        record = {
            "_type": RECORD,
            "id": _id(options, self._world, "memory"),
            "namespace": self._namespace,
            "key": key,
            "value": value,
            "text": value if isinstance(value, str) else to_json(value),
            "tags": tags,
            "stored_at": self._time(options),
            "provenance": options.get("provenance"),
        }
        self._add(record)
        return record

    def recall(self, query: str, most: int) -> list[Dict]:
        """Return the records that fit the query best, with their ``score``; the newest if it has no words."""
        records = self._records()[::-1]
        terms = [*dict.fromkeys(_tokens(query))]
        most = min(max(most, 1), _MOST_FOUND)
        if not terms:
            return [{**record, "score": 0.0} for record in records[:most]]
        scored = [
            {**record, "score": score}
            for record, score in zip(records, _scores(records, terms), strict=True)
            if score > 0
        ]
        return sorted(scored, key=lambda record: -record["score"])[:most]

    def summarize(self, window: Window) -> Dict:
        """Return the records of a window, oldest first, and a text with a line of each."""
        wanted = {*_tokens(window.query or "")}
        records = [
            record
            for record in self._records()
            if (not wanted or wanted & {*_tokens(search_text(record))})
            and (not window.tags or {*window.tags} & {*record["tags"]})
        ][-window.limit :]
        text = "\n".join(map(_line, records)).encode()[:_MOST_BYTES].decode(errors="ignore")
        return {
            "_type": SUMMARY,
            "namespace": self._namespace,
            "count": len(records),
            "text": text,
            "records": records,
        }

    def forget(self, predicate: str | Dict, options: Dict) -> Dict:
        """Forget what a predicate is true of: a tombstone hides it. Raises `MisuseError`."""
        ids = [record["id"] for record in self._records() if _is_meant(record, predicate)]
        tombstone = {
            "_type": FORGET,
            "id": _id(options, self._world, "forget"),
            "namespace": self._namespace,
            "forgotten": len(ids),
            "forgotten_ids": ids,
            "forgotten_at": self._time(options),
        }
        if ids:
            self._add(tombstone)
        return tombstone

    def _time(self, options: Dict) -> str:
        now = options.get("now")
        return now if isinstance(now, str) else rfc3339(self._world.clock.now())

    def _add(self, line: Dict) -> None:
        try:
            self._files.write_text(self.path, to_json(line) + "\n", append=True, durable=True)
        except OSError as error:
            raise MisuseError(f"memory write failed: {system_reason(error)}: {self.path}") from error

    def _records(self) -> list[Dict]:
        """Return the records that aren't forgotten, oldest first."""
        lines = list(self._lines())
        gone = {id for line in lines if line.get("_type") == FORGET for id in line.get("forgotten_ids", ())}
        return [line for line in lines if line.get("_type") == RECORD and line.get("id") not in gone]

    def _lines(self) -> Iterator[Dict]:
        try:
            text = self._files.read_text(self.path)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise MisuseError(f"memory read failed: {system_reason(error)}: {self.path}") from error
        for number, line in enumerate(text.split("\n"), 1):
            read = _read(line)
            if read is not None:
                yield read
            elif line.strip():
                self._world.warn("memory", f"{self.path}:{number} is no record, and is left out")


def _names(namespace: str) -> tuple[str, ...]:
    parts = path_text(namespace)
    if not namespace.strip() or not (parts.names or parts.root):
        raise MisuseError("memory namespace must be non-empty")
    if parts.root:
        raise MisuseError("memory namespace must be relative")
    if ".." in parts.names or "\0" in namespace:
        raise MisuseError("memory namespace must not escape the memory root")
    return parts.names


def _id(options: Dict, world: World, kind: str) -> str:
    id = options.get("id")
    return id if isinstance(id, str) and id else f"{kind}_{world.ids.new()}"


def _read(line: str) -> Dict | None:
    try:
        read = parse_json(line)
    except ValueError:
        return None
    return read if isinstance(read, dict) and isinstance(read.get("tags", []), list) else None


# Words.


def search_text(record: Dict) -> str:
    """Return all that is searched in a record."""
    return " ".join([record["key"], record["text"], *record["tags"], to_json(record["value"])])


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


def _scores(records: list[Dict], terms: list[str]) -> Iterable[float]:
    counts = [Counter(_tokens(search_text(record))) for record in records]
    sizes = [sum(count.values()) for count in counts]
    average = sum(sizes) / len(sizes) if sizes else 0
    known = {term: sum(term in count for count in counts) for term in terms}
    weights = {term: log((len(records) - df + 0.5) / (df + 0.5) + 1) for term, df in known.items()}
    for record, count, size in zip(records, counts, sizes, strict=True):
        norm = _K1 * (1 - _B + _B * size / average) if average else _K1
        score = sum(weights[term] * count[term] * (_K1 + 1) / (count[term] + norm) for term in terms)
        score += _IN_KEY * len({*terms} & {*_tokens(record["key"])})
        yield score + _IN_TAGS * len({*terms} & {*_tokens(" ".join(record["tags"]))})


def _line(record: Dict) -> str:
    tags = f"[{','.join(record['tags'])}] " if record["tags"] else ""
    return f"- {tags}{record['key']}: {record['text'].partition(chr(10))[0]}"


def _is_meant(record: Dict, predicate: str | Dict) -> bool:
    if isinstance(predicate, str):
        return bool(predicate) and predicate.lower() in search_text(record).lower()
    return bool(predicate) and all(PREDICATES[key](record, given) for key, given in predicate.items())


def _has_tag(record: Dict, given: Any) -> bool:
    return bool({*record["tags"]} & {*_several(given)})


def _has_word(record: Dict, given: Any) -> bool:
    return isinstance(given, str) and bool({*_tokens(given)} & {*_tokens(search_text(record))})


def _several(given: Any) -> list[Any]:
    return as_texts(given) if isinstance(given, list) else [given]


#: What a predicate may ask, by its key.
PREDICATES: Mapping[str, Callable[[Dict, Any], bool]] = {
    "id": lambda record, given: record["id"] in _several(given),
    "key": lambda record, given: record["key"] in _several(given),
    "tag": _has_tag,
    "tags": _has_tag,
    "query": _has_word,
}
