"""All sessions of a store out to a directory; files and folders of any tool in. Spec: 10 §A1.11, §C17."""

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
from harnpy.session.events import read_stamp
from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.session.transfer import admission, claude_code, codex, foreign, listed, messages
from harnpy.session.transfer.canto import ancestry_of, read_log
from harnpy.session.transfer.cognesy import cognesy_id
from harnpy.session.transfer.formats import (
    ANCESTRY,
    AUTO,
    ERROR,
    MANY_SUFFIXES,
    MESSAGES,
    READ,
    RENAME,
    SKIP,
    TOOLS,
    UPDATE,
    admitted,
    dumped,
    format_called,
    list_in,
    many_of,
    parsed_conversation,
    parsed_file,
    renamed,
    threads_of,
    tool_of,
    write,
)
from harnpy.session.transfer.logs import BESIDE, load_rows, read_beside
from harnpy.session.transfer.messages import FAMILIES
from harnpy.storage import StorageError, open_store
from harnpy.storage.copying import all_names, copy_streams
from harnpy.storage.jsonl.layout import file_name
from harnpy.storage.opening import shown
from harnpy.world import World
from harnpy.world.files import plain_reason
from harnpy.world.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import BinaryIO

    from harnpy.session.transfer.admission import Loss
    from harnpy.session.transfer.foreign import Branch, Conversation
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


_LINES: Final = ".jsonl"
_SEARCHED: Final = (_LINES, ".json")
_SUFFIXES = (".jsonl", ".json", ".json5", ".yaml", ".yml")
#: What a store's own directory has (10 §C6.1).
_STORES = "FORMAT"


class ExportReport(NamedTuple):
    """The files that were written; ``errors`` are (session, reason)."""

    exported: list[str]
    errors: list[tuple[str, str]]
    losses: list[Loss]


class ImportReport(NamedTuple):
    """The ids of sessions that were made or have grown; the files that were ``skipped``, as they had nothing
    new; ``errors`` are (file, reason); ``branches``: what was added here and sessions now go on without."""

    imported: list[str]
    skipped: list[str]
    errors: list[tuple[str, str]]
    losses: list[Loss]
    branches: list[Branch]


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
            report.losses.extend(write(session, chosen, path, dumped(session, chosen), world))
            records.append(ancestry_of(session))
        except (StorageError, SessionError) as error:
            report.errors.append((name, str(error)))
        else:
            report.exported.append(path)
    if format == "canto":
        lines = "".join(to_json(record).decode() + "\n" for record in records)
        world.files.replace_text(posixpath.join(directory, ANCESTRY), lines)
    return report


class _Transcript(NamedTuple):
    """A file of a tool, of ``size`` bytes; ``began`` is the time of its first line, in microseconds since
    1970."""

    path: str
    tool: str
    began: int
    size: int


def import_sessions(
    paths: Iterable[str],
    store: Store,
    format: str = AUTO,
    *,
    on_conflict: str | None = None,
    partial: bool = False,
    strict: bool = False,
    prefix: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    world: World | None = None,
) -> ImportReport:
    """Make sessions of files, and of what is in folders and below them, whichever tool wrote it.

    ``on_conflict`` says what happens when there is a session of that id: `UPDATE` adds what is new, which
    other tools' formats do by default and can alone; `ERROR`, which is the default of the others, `SKIP` or
    `RENAME`. A file is imported as a whole or not at all; with ``partial``, lines that can't be read are
    losses. ``prefix`` is what the ids of other tools' sessions begin with, in the place of the tool's name:
    with an empty one they are the tool's own. A bad file is in the report and keeps none of the others out.
    ``strict``: raise `TransferError` when something of harnpy's, Canto's, Agently's or Cognesy's files can't
    be read, before any of them is stored. Raises it for an unknown format or option, too. ``progress`` is
    told before each file of another tool how many bytes of such files are done, and of how many.
    """
    if format != AUTO and format not in (*TOOLS, *READ):
        format_called(format)
    if on_conflict not in (None, UPDATE, ERROR, SKIP, RENAME):
        raise TransferError(f"on_conflict is one of update, error, skip, rename, got {on_conflict!r}")
    world = World() if world is None else world
    report = ImportReport([], [], [], [], [])
    work = _Import(store, world, format, on_conflict, partial, strict, prefix, report)
    for path in paths:
        work.take(path)
    work.finish(progress)
    return report


class _Import:
    """One import: the transcripts that were found, and those of whom others are parts."""

    def __init__(
        self,
        store: Store,
        world: World,
        format: str,
        on_conflict: str | None,
        partial: bool,
        strict: bool,
        prefix: str | None,
        report: ImportReport,
    ) -> None:
        self._prefix = prefix
        self._store = store
        self._world = world
        self._format = format
        self._on_conflict = on_conflict
        self._partial = partial
        self._strict = strict
        self._report = report
        self._transcripts: dict[str, _Transcript] = {}
        #: The session whose conversation first had an entry, by the entry's id.
        self._owners: dict[str, str] = {}
        #: The file of messages whose conversation each session is.
        self._files: dict[str, str] = {}

    def take(self, path: str) -> None:
        """Look at a file or a folder; what other formats have in it is imported at once."""
        files = self._world.files
        if path.endswith(BESIDE) and files.is_file(path.removesuffix(BESIDE)):
            return self._report.skipped.append(path)  # it comes in with the file that it stands beside
        if not files.is_dir(path):
            return self._take_files([path])
        if _is_store(path, self._world):
            for ours, theirs in zip(self._report, _copied(self._store, path), strict=True):
                ours.extend(theirs)  # type: ignore[attr-defined]
            return None
        lists = _files_of(path, self._world)
        for found in walk(files, path):
            if found.path.endswith(BESIDE):
                continue
            if found.is_file and found.depth > 1 and found.path.endswith(_SEARCHED):
                if not self._look(found.path) and (self._is_whole(found.path) or self._is_list(found.path)):
                    lists.append(found.path)
            elif found.is_file and found.path.endswith(MANY_SUFFIXES):
                self._look_inside(found.path)
        return self._take_files(lists)

    def _is_whole(self, path: str) -> bool:
        """Return whether the log of a file stands beside it: what is in the file says no more."""
        try:
            return read_beside(path, self._world).lines is not None
        except OSError:
            return False

    def _is_list(self, path: str) -> bool:
        """Return whether a framework wrote a list of messages to a file."""
        try:
            return path.endswith(".json") and list_in(self._world.files.read_text(path)) is not None
        except (OSError, UnicodeDecodeError):
            return False

    def finish(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Import the transcripts, in the order in which they were begun."""
        ordered = sorted(self._transcripts.values(), key=lambda each: (each.began, each.path))
        done, whole = 0, sum(found.size for found in ordered)
        for found in ordered:
            if progress is not None:
                progress(done, whole)
                done += found.size
            try:
                if (loss := read_beside(found.path, self._world).loss) is not None:
                    self._report.losses.append(loss)
                if found.tool in READ:
                    self._admit_threads(found)
                    continue
                if found.tool in (MESSAGES, *FAMILIES):
                    self._admit_all(found.path, self._of_messages(found))
                    continue
                with self._world.files.reader(found.path) as lines:
                    self._admit_all(found.path, self._conversations(found, lines))
            except _BAD as error:
                self._report.errors.append((shown(found.path), _reason(error)))

    def _take_files(self, paths: Sequence[str]) -> None:
        others = [path for path in paths if not self._look(path)]
        if others:
            _import_files(
                self._store,
                others,
                self._report,
                self._format,
                self._on_conflict,
                self._strict,
                self._prefix,
                self._world,
            )

    def _look_inside(self, path: str) -> bool:
        """Return whether a file holds many conversations, which are imported later."""
        if self._format != AUTO and self._format not in READ:
            return False
        try:
            tool = many_of(path, self._world) if self._format == AUTO else self._format
        except TransferError as error:
            self._report.errors.append((shown(path), _reason(error)))
            return True
        if tool is not None:
            self._note(path, tool, 0)
        return tool is not None

    def _admit_threads(self, found: _Transcript) -> None:
        """Import the conversations of a file, each as a whole or not at all."""
        for thread in threads_of(found.path, found.tool, self._world):
            try:
                conversation = self._renamed(listed.understood(thread.read))
                self._admit(f"{shown(found.path)}: {thread.id}", conversation)
            except _BAD as error:
                self._report.errors.append((f"{shown(found.path)}: {thread.id}", _reason(error)))

    def _look(self, path: str) -> bool:
        """Return whether a file is a transcript of a tool, which is imported later."""
        if self._is_whole(path):
            return False
        if self._look_inside(path):
            return True
        if self._format != AUTO and self._format not in TOOLS:
            return False
        if not path.endswith(_SEARCHED) and self._format == AUTO:
            return False
        try:
            tool = self._format if self._format != AUTO else self._tool_of(path)
            if tool is None:
                return False
            began = self._beginning(path) if tool in (claude_code.TOOL, codex.TOOL) else 0
        except (OSError, UnicodeDecodeError):
            return False
        self._note(path, tool, began)
        return True

    def _note(self, path: str, tool: str, began: int) -> None:
        size = self._world.files.status(path).st_size if self._world.files.is_file(path) else 0
        self._transcripts[path] = _Transcript(path, tool, began, size)

    def _tool_of(self, path: str) -> str | None:
        """Return which tool wrote a file; None for none whose conversations can be imported again."""
        if path.endswith(_LINES):
            with self._world.files.reader(path) as lines:
                tool = tool_of(lines)
            if tool != MESSAGES:
                return tool
        text = self._world.files.read_text(path)
        return MESSAGES if messages.is_file(text) and list_in(text) is None else None

    def _beginning(self, path: str) -> int:
        with self._world.files.reader(path) as lines:
            return next(filter(None, map(_began, lines)), 0)

    def _renamed(self, conversation: Conversation) -> Conversation:
        """Return a conversation under the id that was asked for."""
        if self._prefix is None:
            return conversation
        id, parent = renamed(conversation.id, self._prefix), conversation.parent
        losses = [
            loss._replace(session_id=id) if loss.session_id == conversation.id else loss
            for loss in conversation.losses
        ]
        return conversation._replace(
            id=id, parent=None if parent is None else renamed(parent, self._prefix), losses=losses
        )

    def _admit_all(self, path: str, found: Sequence[Conversation]) -> None:
        conversations = [*map(self._renamed, found)]
        if len(conversations) > 1:
            # All of them or none: each is tried before the first is stored.
            may_grow = self._on_conflict != ERROR
            for each in conversations:
                foreign.check(each, self._store, self._world, may_grow)
        for each in conversations:
            self._admit(path, each)

    def _conversations(self, found: _Transcript, lines: BinaryIO) -> list[Conversation]:
        rows = foreign.Rows(lines, self._partial)
        if found.tool == codex.TOOL:
            return [codex.conversation(rows, lambda id: self._rollout(found.path, id))]
        return [self._descended(each) for each in claude_code.conversations(rows)]

    def _of_messages(self, found: _Transcript) -> list[Conversation]:
        text = self._world.files.read_text(found.path)
        made = messages.conversations(text, found.path, found.tool, self._partial)
        for each in made:
            other = self._files.setdefault(each.id, found.path)
            if other != found.path:
                raise TransferError(
                    f"{each.id} is the session of {other}: give this file's another id (--id)"
                )
        return made

    def _rollout(self, path: str, id: str) -> foreign.Rows | None:
        """Return the lines of another rollout: of those that are imported, else of the folder beside."""
        near = [entry.name for entry in self._world.files.entries(posixpath.dirname(path) or ".")]
        beside = [posixpath.join(posixpath.dirname(path), name) for name in near]
        for other in (*self._transcripts, *beside):
            if other.endswith(f"{id}{_LINES}"):
                return foreign.Rows(self._world.files.read_text(other), self._partial)
        return None

    def _descended(self, conversation: Conversation) -> Conversation:
        """Return a conversation with the one that it was forked from: whose entries it has, too."""
        shared = (self._owners.get(entry.id) for entry in conversation.entries)
        owner = next((id for id in shared if id not in (None, conversation.id)), None)
        for entry in conversation.entries:
            self._owners.setdefault(entry.id, conversation.id)
        return conversation if owner is None else conversation._replace(parent=owner)

    def _admit(self, path: str, conversation: Conversation) -> None:
        if not conversation.entries:
            self._report.skipped.append(path)
            return
        parsed = parsed_conversation(conversation)
        id = admitted(parsed, self._store, self._world, None, self._on_conflict)
        if id is None:
            self._report.skipped.append(path)
        else:
            self._report.imported.append(id)
        self._report.losses.extend(conversation.losses)
        self._report.branches.extend(parsed.branches)


def _began(line: bytes) -> int | None:
    """Return the time of a line, None if it has none."""
    try:
        return read_stamp(foreign.read_line(line)["timestamp"])
    except (KeyError, ValueError, TypeError):
        return None


def import_dir(
    store: Store,
    directory: str,
    format: str = AUTO,
    *,
    on_conflict: str | None = None,
    strict: bool = False,
    world: World | None = None,
) -> ImportReport:
    """Make sessions of what is in a directory, as `import_sessions` does."""
    return import_sessions([directory], store, format, on_conflict=on_conflict, strict=strict, world=world)


def _is_store(directory: str, world: World) -> bool:
    """Return whether a directory is a store of harnpy's."""
    return world.files.is_file(posixpath.join(directory, _STORES))


def _files_of(directory: str, world: World) -> list[str]:
    """Return the files of a directory that may be sessions."""
    names = [entry.name for entry in world.files.entries(directory) if entry.is_file]
    return [
        posixpath.join(directory, name)
        for name in sorted(names)
        if name.endswith(_SUFFIXES) and not name.endswith(BESIDE)
    ]


def _import_files(
    store: Store,
    paths: Sequence[str],
    report: ImportReport,
    format: str,
    on_conflict: str | None,
    strict: bool,
    prefix: str | None,
    world: World,
) -> None:
    """Make sessions of files, parents before those that were forked from them, and tell the report."""
    records: dict[str, Json] = {}
    for directory in dict.fromkeys(map(posixpath.dirname, paths)):
        records |= _records(directory, world, report)
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
            parsed = parsed_file(path, world, format, records)
            named = None if parsed.id is None else renamed(parsed.id, prefix)
            id = admitted(parsed, store, world, named, on_conflict)
            report.branches.extend(parsed.branches)
        except _BAD as error:
            report.errors.append((path, _reason(error)))
        else:
            if id is None:
                report.skipped.append(path)
            else:
                report.imported.append(id)


#: What is wrong with a file.
_BAD = (SessionError, StorageError, OSError, UnicodeDecodeError)


def _reason(error: Exception) -> str:
    return plain_reason(error).replace("\n", " ")


def _copied(store: Store, directory: str) -> ImportReport:
    """Copy the sessions of a directory that is a store."""
    with closing(open_store(f"jsonl:{directory}")) as source:
        copied = copy_streams(source, store, KIND)
    return ImportReport(copied.copied, copied.skipped, copied.errors, [], [])


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
