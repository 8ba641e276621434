"""All sessions of a store out to a directory, and those of a directory in. Spec: 10 §A1.11, §C17."""

from __future__ import annotations

import posixpath
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import DecodeError
from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.formats.json import lines_of
from harnpy.session.arguments import validate_session_id
from harnpy.session.errors import InvalidArgument, SessionError, SessionExists, SessionNotFound, TransferError
from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.session.transfer import admission
from harnpy.session.transfer.canto import ancestry_of, read_log
from harnpy.session.transfer.cognesy import cognesy_id
from harnpy.session.transfer.formats import (
    ANCESTRY,
    AUTO,
    ERROR,
    admitted,
    format_called,
    parsed_file,
)
from harnpy.session.transfer.logs import load_rows
from harnpy.storage import StorageError, open_store
from harnpy.storage.copying import all_names, copy_streams
from harnpy.storage.jsonl.layout import file_name
from harnpy.world import World
from harnpy.world.files import plain_reason

if TYPE_CHECKING:
    from harnpy.session.transfer.admission import Loss
    from harnpy.session.transfer.formats import Format, Json
    from harnpy.storage import Store

# Records of where sessions stand whose logs are elsewhere. Spec: 10 §A1.11.


_TEXTS: Final = ("created_at", "parent_session_id", "fork_point_event_id", "branch_label", "fork_reason")


def save_ancestry(record: dict[str, Any], store: Store, world: World) -> bool:
    """Make a session of a record of Canto's ancestry: it has no messages, and the place that the record says.

    Return False if there is one of that id: it stays as it is. Raises `InvalidArgument`, `TransferError`.
    """
    if not isinstance(record, dict):
        raise InvalidArgument(f"a record of the ancestry is a dict, got {type(record).__name__}")
    id = record.get("session_id")
    if not isinstance(id, str) or not id.strip():
        raise InvalidArgument("session ancestry missing session id")
    if not record.get("created_at"):
        raise InvalidArgument(f'session ancestry "{id}" missing created_at')
    for key in _TEXTS:
        if not isinstance(record.get(key, ""), str):
            kind = type(record[key]).__name__
            raise InvalidArgument(f'session ancestry "{id}": `{key}` must be text, got {kind}')
    for key in ("session_id", "parent_session_id"):
        if record.get(key):
            validate_session_id(record[key])
    try:
        load_rows(read_log((), record).rows, store, world, None)
    except SessionExists:
        return False
    return True


# All sessions of a store out to a directory, and those of a directory in. Spec: 10 §C17.
#
# A file that can't be read is named in the report and keeps none of the others out.


_SUFFIXES = (".jsonl", ".json", ".json5", ".yaml", ".yml")
#: What a store's own directory has (10 §C6.1).
_STORES = "FORMAT"


class ExportReport(NamedTuple):
    """The files that were written; ``errors`` are (session, reason)."""

    exported: list[str]
    errors: list[tuple[str, str]]
    losses: list[Loss]


class ImportReport(NamedTuple):
    """The ids of sessions that were made; the files that were ``skipped``; ``errors`` are (file, reason)."""

    imported: list[str]
    skipped: list[str]
    errors: list[tuple[str, str]]
    losses: list[Loss]


def export_dir(
    store: Store,
    directory: str,
    format: str = "jsonl",
    *,
    strict: bool = False,
    world: World | None = None,
) -> ExportReport:
    """Write all sessions of a store to a directory, a file each.

    ``strict``: raise `TransferError` when something is lost, before anything is written.
    """
    world = World() if world is None else world
    chosen = format_called(format)
    names = list(all_names(store, KIND))
    report = ExportReport([], [], [])
    if strict:
        for name in names:
            admission.refuse(chosen.lost(_loaded(store, name, world)))
    records = []
    for name in names:
        try:
            session = _loaded(store, name, world)
            path = posixpath.join(directory, _file_of(chosen, name))
            world.files.replace_text(path, chosen.dumps(session))
            records.append(ancestry_of(session))
            report.losses.extend(chosen.lost(session))
        except (StorageError, SessionError) as error:
            report.errors.append((name, str(error)))
        else:
            report.exported.append(path)
    if format == "canto":
        lines = "".join(to_json(record).decode() + "\n" for record in records)
        world.files.replace_text(posixpath.join(directory, ANCESTRY), lines)
    return report


def import_dir(
    store: Store,
    directory: str,
    format: str = AUTO,
    *,
    on_conflict: str = ERROR,
    strict: bool = False,
    world: World | None = None,
) -> ImportReport:
    """Make sessions of a directory's files, parents before those that were forked from them.

    Files of other kinds and directories below aren't looked at. A directory that is a store is copied.
    ``strict``: raise `TransferError` when something can't be read, before anything is stored.
    """
    world = World() if world is None else world
    if world.files.is_file(posixpath.join(directory, _STORES)):
        return _copied(store, directory)
    report = ImportReport([], [], [], [])
    names = [entry.name for entry in world.files.entries(directory) if entry.is_file]
    paths = [posixpath.join(directory, name) for name in sorted(names) if name.endswith(_SUFFIXES)]
    records = _records(directory, world, report)
    parents: dict[str, str | None] = {}
    for path in paths:
        if posixpath.basename(path) == ANCESTRY:
            continue
        try:
            parsed = parsed_file(path, world, format, records)
        except _BAD as error:
            report.errors.append((path, _reason(error)))
            continue
        parents[path] = parsed.parent
        report.losses.extend(parsed.losses)
    if strict:
        for path, reason in report.errors:
            raise TransferError(f"{path}: {reason}")
        admission.refuse(report.losses)
    for path in _parents_first(parents):
        try:
            session = admitted(parsed_file(path, world, format, records), store, world, None, on_conflict)
        except _BAD as error:
            report.errors.append((path, _reason(error)))
        else:
            if session is None:
                report.skipped.append(path)
            else:
                report.imported.append(session.id)
    return report


_BAD = (SessionError, StorageError, OSError, UnicodeDecodeError)


def _reason(error: Exception) -> str:
    return plain_reason(error)


def _copied(store: Store, directory: str) -> ImportReport:
    with closing(open_store(f"jsonl:{directory}")) as source:
        copied = copy_streams(source, store, KIND)
    return ImportReport(copied.copied, copied.skipped, copied.errors, [])


def _loaded(store: Store, name: str, world: World) -> StoredSession:
    session = StoredSession.load(name, store, world)
    if session is None:
        raise SessionNotFound(name)
    return session


def _file_of(format: Format, name: str) -> str:
    return f"{cognesy_id(name) if format.name == 'cognesy' else file_name(name)}{format.suffix}"


def _records(directory: str, world: World, report: ImportReport) -> dict[str, Json]:
    """Return the ancestry's records by the file that each is about. The last of a session counts."""
    path = posixpath.join(directory, ANCESTRY)
    if not world.files.is_file(path):
        return {}
    found: dict[str, Json] = {}
    for number, line in enumerate(lines_of(world.files.read_text(path, "replace")), 1):
        if not line.strip():
            continue
        try:
            record = from_json(line)
            id = record["session_id"]
            files = {id, file_name(id)}
        except (DecodeError, TypeError, KeyError, AttributeError):
            report.errors.append((path, f"line {number} is no record"))
            continue
        for file in files:
            found[posixpath.join(directory, f"{file}.jsonl")] = record
    return found


def _parents_first(parents: dict[str, str | None]) -> list[str]:
    """Return the files in an order in which no session comes before the one that it was forked from."""
    files = {posixpath.splitext(posixpath.basename(path))[0]: path for path in parents}
    ordered: dict[str, None] = {}
    for path in parents:
        line = [path]
        while (parent := parents[line[-1]]) is not None:
            above = files.get(file_name(parent)) or files.get(parent) or files.get(cognesy_id(parent))
            if above is None or above in line or above in ordered:
                break
            line.append(above)
        ordered.update(dict.fromkeys(reversed(line)))
    return list(ordered)
