"""The formats that a session's file can have, and which one a file has. Spec: 10 §C17."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session.errors import TransferError
from harnpy.session.transfer import agently, cognesy, documents
from harnpy.session.transfer.canto import writing
from harnpy.session.transfer.canto.reading import are_cantos, read_log
from harnpy.session.transfer.documents import JSON, YAML
from harnpy.session.transfer.logs import dump_log, load_rows, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.session.kept.stored import StoredSession
    from harnpy.session.log import Session
    from harnpy.session.transfer.losses import Loss
    from harnpy.storage import Store
    from harnpy.world import World

    Json = dict[str, Any]
    Load = Callable[[Store, World, str | None], StoredSession]

AUTO = "auto"
#: Where a directory of Canto says which session was forked from which.
ANCESTRY = "ancestry.jsonl"


class Parsed(NamedTuple):
    """A file's session: ``load(store, world, id)`` makes it, under its own id for None."""

    parent: str | None
    losses: Sequence[Loss]
    load: Load


class Format(NamedTuple):
    """``parse(text, record)`` reads a file; ``record`` is its session's in an ancestry."""

    name: str
    suffix: str
    dumps: Callable[[Session], str]
    lost: Callable[[Session], Sequence[Loss]]
    parse: Callable[[str, Json | None], Parsed]


def format_called(name: str) -> Format:
    """Return the format of that name. Raises `TransferError`."""
    found = next((format for format in FORMATS if format.name == name), None)
    if found is None:
        known = ", ".join(format.name for format in FORMATS)
        raise TransferError(f"unknown format '{name}' (known: {known})")
    return found


def format_of(path: str, text: str, name: str = AUTO) -> Format:
    """Return the format of a file: the one called ``name``, else by what is in it. Raises `TransferError`."""
    if name != AUTO:
        return format_called(name)
    suffix = posixpath.splitext(path)[1].lower()
    if suffix == ".jsonl":
        return format_called("canto" if are_cantos(lines_of(text)) else "jsonl")
    language = _LANGUAGES.get(suffix)
    if language is not None:
        keys = _value(text, language)
        if isinstance(keys, dict) and keys.keys() >= {"header", "state"}:
            return format_called("cognesy")
        if isinstance(keys, dict) and "full_context" in keys:
            return format_called("agently-json" if language == JSON else "agently-yaml")
    raise TransferError(f"cannot tell the format of {path}: pass format=")


_LANGUAGES = {".json": JSON, ".json5": JSON, ".yaml": YAML, ".yml": YAML}


def lines_of(text: str) -> list[str]:
    """Return the lines, each with its end. JSON texts hold other characters that end lines elsewhere."""
    *whole, last = text.split("\n")
    return [*(f"{line}\n" for line in whole), *([last] if last else [])]


def _value(text: str, language: str) -> Any:
    try:
        return documents.read_text(text, language)
    except ValueError as error:
        raise TransferError(
            f"Cannot load {language} content or file path not existed.\nError: {error}"
        ) from None


# One of each.


def _parse_log(text: str, record: Json | None) -> Parsed:
    lines = lines_of(text)
    if record is not None or are_cantos(lines):
        rows, losses = read_log(lines, record)
    else:
        rows, losses = rows_of(lines), []
    facts = rows[0]["data"] if rows else None
    parent = facts.get("parent_session_id") if isinstance(facts, dict) else None
    return Parsed(parent, losses, lambda store, world, id: load_rows(rows, store, world, id))


def _parse_cognesy(text: str, record: Json | None) -> Parsed:
    value = _value(text, JSON)
    header = value.get("header") if isinstance(value, dict) else None
    parent = header.get("parentId") if isinstance(header, dict) else None
    return Parsed(parent, [], lambda store, world, id: cognesy.load_file(value, store, world, id))


def _parse_agently(language: str) -> Callable[[str, Json | None], Parsed]:
    def parse(text: str, record: Json | None) -> Parsed:
        value = _value(text, language)
        return Parsed(None, [], lambda store, world, id: agently.load_state(value, store, world, id))

    return parse


def _nothing(session: Session) -> Sequence[Loss]:
    return []


def _agently(name: str, suffix: str, language: str) -> Format:
    return Format(
        name,
        suffix,
        lambda session: agently.dumps(session, language),
        agently.lost,
        _parse_agently(language),
    )


FORMATS = (
    Format("jsonl", ".jsonl", lambda session: "".join(dump_log(session)), _nothing, _parse_log),
    Format("canto", ".jsonl", lambda session: "".join(writing.dump_lines(session)), _nothing, _parse_log),
    Format("cognesy", ".json", cognesy.dumps, cognesy.lost, _parse_cognesy),
    _agently("agently-json", ".json", JSON),
    _agently("agently-yaml", ".yaml", YAML),
)
