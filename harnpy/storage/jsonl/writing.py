"""Writing a log: appending to it, writing it anew, and making a damaged one readable again.

Spec: 10 §C6.1, §C12.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, BinaryIO, NamedTuple

import msgspec

from harnpy.storage.contract import Row, repair_report
from harnpy.storage.errors import CorruptLog, StorageError, StoreBusy, VersionConflict
from harnpy.storage.jsonl import layout
from harnpy.storage.jsonl.layout import (
    BadLine,
    Facts,
    Folder,
    Origin,
    disk_errors,
    locked,
    name_of,
    write_all,
    written_lines,
)
from harnpy.storage.jsonl.log import SUFFIX, Log, Logs, State, appends

Appends = Iterable[list[Row]]

# Appending to a log: under its lock, right behind what the caller saw last. Spec: 10 §C6.1.


_FLAGS = os.O_RDWR | os.O_APPEND


class Writer:
    """Writes the logs of a store. ``torn`` keeps what repairs cut; ``lasting`` appends survive power cuts."""

    def __init__(self, torn: Folder, timeout: float, *, lasting: bool) -> None:
        self.torn = torn
        self.timeout = timeout
        self.lasting = lasting
        self._medium = torn.medium
        #: The repairs that the next append reports, by the path of the log.
        self._repairs: dict[str, list[dict[str, Any]]] = {}

    @contextmanager
    def locked(self, log: Log) -> Iterator[None]:
        """Keep every other thread and process from writing to ``log``."""
        if not log.writing.acquire(timeout=self.timeout):
            raise StoreBusy(log.path, self.timeout)
        try:
            with disk_errors(log.path), locked(log.folder, log.file, self.timeout):
                yield
        finally:
            log.writing.release()

    def append(
        self, log: Log, name: str, rows: Sequence[Row], expected: int, head: dict[str, Any] | None
    ) -> int:
        """Add rows to a log whose lock is held, and return its version. Raises `VersionConflict`."""
        with self._opened(log) as file:
            state = self._repaired(log, file)
            if state.version != expected:
                raise VersionConflict(name, expected, state.version)
            check_version(name, rows, expected)
            facts = state.change(head)
            if not state.uid:
                facts = facts or Facts()
                facts.name, facts.uid = name, new_uid()
            lines = written_lines(rows, facts)
            if rows and log.path in self._repairs:
                lines += self._report(log, rows[-1])
            return self._write(log, file, state, lines).version if lines else state.version

    def begin(self, log: Log, row: Row, facts: Facts) -> State:
        """Write the first record of a branch to a log whose lock is held."""
        with self._opened(log) as file:
            return self._write(log, file, self._repaired(log, file), written_lines([row], facts))

    def repair(self, log: Log) -> int:
        """Cut off what a crash has left behind the last complete append. Return how many bytes."""
        with self._opened(log) as file:
            return self._cut(log, file, log.load(file))

    @contextmanager
    def _opened(self, log: Log) -> Iterator[BinaryIO]:
        file = os.fdopen(log.folder.open(log.file + SUFFIX, _FLAGS | os.O_CREAT), "rb")
        with file:
            yield file

    def _repaired(self, log: Log, file: BinaryIO) -> State:
        state = log.load(file)
        self._cut(log, file, state)
        return state

    def _cut(self, log: Log, file: BinaryIO, state: State) -> int:
        surplus = os.fstat(file.fileno()).st_size - state.size
        if surplus <= 0:
            return 0
        file.seek(state.size)
        torn = file.read(surplus)
        kept = put_aside(self.torn, log, torn)
        self._medium.truncate(file.fileno(), state.size)
        self._medium.sync(file.fileno())
        log.load(file)
        events = torn.count(b"\n") + (not torn.endswith(b"\n"))
        detail = f"an append that was never finished was cut off; its bytes are in {kept}"
        report = {"dropped_bytes": surplus, "dropped_events": events, "detail": detail}
        self._repairs.setdefault(log.path, []).append(report)
        return surplus

    def _report(self, log: Log, last: Row) -> bytes:
        """Return the records, as lines, of the repairs that no append has reported yet."""
        rows = [
            repair_report(last.seq + number, last.time, 0, repair)
            for number, repair in enumerate(self._repairs[log.path], 1)
        ]
        return b"".join(written_lines([row]) for row in rows)

    def _write(self, log: Log, file: BinaryIO, state: State, lines: bytes) -> State:
        medium, descriptor = self._medium, file.fileno()
        try:
            write_all(medium, descriptor, lines)
            if self.lasting:
                medium.sync_data(descriptor)
                if not state.size:
                    log.folder.sync()
        except BaseException:
            # What can't be cut off now, the next append cuts off.
            with suppress(OSError):
                medium.truncate(descriptor, state.size)
                medium.sync(descriptor)
            raise
        self._repairs.pop(log.path, None)
        after = log.load(file)
        if after.size != state.size + len(lines):
            raise CorruptLog(log.path, "an append can't be read back", after.lines + 1, after.size)
        return after


def check_version(name: str, rows: Sequence[Row], expected: int) -> None:
    """Raise `StorageError` for rows that could not be read back: their codec has a fault."""
    more = 0
    for number, row in enumerate(rows, expected + 1):
        if row.seq != number:
            raise StorageError(f"record {row.seq} can't be number {number} of '{name}'")
        if number > expected + 1 and more not in (0, row.more + 1):
            raise StorageError(f"record {number} of '{name}' breaks an append apart")
        more = row.more
    if more:
        raise StorageError(f"the last record of an append to '{name}' says that {more} more follow")


def put_aside(torn: Folder, log: Log, content: bytes) -> str:
    """Put bytes of a log aside, for good. Return the path within the store."""
    moment = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    file = f"{log.file}.{moment}.bin"
    torn.replace(file, content)
    return f"torn/{file}"


def new_uid() -> str:
    """Return what distinguishes a log from every other one."""
    return os.urandom(8).hex()


# Writing a log anew: without records that are dropped, with those that a branch shared, or as a stem.
#
# The new file replaces the old one in one step; readers that have the old one open read on in it. An append
# stays in the file as long as any record of it does, as its records may refer to each other.


def drop_log(logs: Logs, kind: str, log: Log, until: int) -> int:
    """Forget the records up to ``until`` of a log whose lock is held; return how many went."""
    opened = log.open()
    if opened is None:
        return 0
    file, state = opened
    with file:
        until = min(until, state.version)
        gone = until - state.dropped
        if gone <= 0:
            return 0
        facts = _facts(state)
        if _keep_shared(logs, kind, log, file, state):
            facts.uid = new_uid()  # what the branches point to is the stem from now on
        facts.dropped = until
        own = 0 if state.points is None else state.points.at
        if until >= own:
            facts.branch = _copied(state)
        kept = list(appends(log, file, state, max(until, own), state.version))
        facts.version = state.version
        _replace_file(log, facts, kept)
    return gone


def delete_log(logs: Logs, kind: str, log: Log) -> bool:
    """Remove a log whose lock is held; what its branches read stays as a stem."""
    opened = log.open()
    if opened is None:
        return False
    file, state = opened
    with file:
        _keep_shared(logs, kind, log, file, state)
    log.remove()
    return state.version > 0


def settle_log(log: Log, state: State, kept: Appends) -> None:
    """Give a branch, whose lock is held, all of its records as its own."""
    facts = _facts(state)
    facts.branch = _copied(state)
    _replace_file(log, facts, [rows for rows in kept if rows])


def _keep_shared(logs: Logs, kind: str, log: Log, file: BinaryIO, state: State) -> bool:
    """Write what the branches of a log read into a stem. Return False when there are no branches."""
    until = min(logs.shared(kind, state.uid), state.version)
    if not until:
        return False
    before = max(state.dropped, 1 if state.points is None else state.points.at)
    kept = list(appends(log, file, state, before, until))
    facts = Facts(uid=state.uid, branch=state.branch, dropped=max(1, state.dropped))
    facts.version = before
    _write(logs.stems, state.uid, facts, kept)
    return True


def _copied(state: State) -> Origin | None:
    """The origin of a branch that reads nothing from there any more."""
    return None if state.branch is None else msgspec.structs.replace(state.branch, uid="")


def _facts(state: State) -> Facts:
    """Return what a new first line says of a log."""
    return Facts(
        name=state.name,
        uid=state.uid,
        branch=state.branch,
        dropped=state.dropped,
        created=state.created,
        updated=state.updated,
        head=state.head,
    )


def replace_log(log: Log, state: State, rows: list[Row]) -> None:
    """Give a log, whose lock is held, other lines: ``state`` says what it is."""
    facts = _facts(state)
    appended: list[list[Row]] = []
    for row in rows:
        if not appended or not appended[-1][-1].more:
            appended.append([])
        appended[-1].append(row)
    _replace_file(log, facts, appended)


def _replace_file(log: Log, facts: Facts, kept: Appends) -> None:
    _write(log.folder, log.file, facts, kept)


def _write(folder: Folder, file: str, facts: Facts, kept: Appends) -> None:
    """Write a log whose first line has the facts: that of a branch's own first record, or one without."""
    content: list[bytes] = []
    for rows in kept:
        if not content:
            if facts.branch is not None and facts.branch.uid and rows[0].seq == 1:
                facts.version = facts.branch.at
                content.append(written_lines(rows, facts))
                continue
            facts.version = rows[0].seq - 1
            content.append(written_lines([], facts))
        content.append(written_lines(rows))
    folder.replace(file + SUFFIX, b"".join(content) or written_lines([], facts))


# Making a log readable again, of which lines are damaged. Spec: 10 §C6.1, §C12.
#
# The log as it was is put aside. In the new one a record that can't be read any more is replaced by one of
# type ``store_repaired`` with its number, so every other record stays where it was.


class Damage(NamedTuple):
    """A line that can't be read."""

    line: int
    bytes: int
    reason: str


def mend(log: Log, torn: Folder) -> str:
    """Replace a damaged log, whose lock is held, by what can be read of it. Return where the old one is."""
    content = log.content()
    kept = put_aside(torn, log, content)
    salvage = Salvage(log, kept)
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        if line and not line.isspace():
            salvage.take(number, line)
    if salvage.rows:
        replace_log(log, salvage.state, chained(salvage.rows))
    else:
        log.remove()
    return kept


class Salvage:
    """The readable parts of a log, line by line."""

    def __init__(self, log: Log, kept: str) -> None:
        self.rows: list[Row] = []
        self.state = State(name=name_of(log.file) or log.file, uid=new_uid())
        self._kept = kept
        self._damaged: list[Damage] = []
        #: What is known of the log besides: its first line may be the damaged one.
        self._known = log.known()

    def take(self, number: int, line: bytes) -> None:
        """Take in one more line."""
        try:
            found = layout.brief_of(line)
            row = layout.row_of(line, self.state.version + 1)
            if row is not None and self.rows and row.seq <= self.state.version:
                raise BadLine(f"record {row.seq} for the second time")
        except BadLine as error:
            self._damaged.append(Damage(number, len(line) + 1, str(error)))
            return
        if row is not None:
            if number > 1 and not self.rows and not self.state.lines:
                self._begin(row)
            self._replace_missing(row)
            self.rows.append(row)
            self.state.version = row.seq
        self.state.lines = number
        if found.log is not None:
            self.state.learn(found.log)

    def _begin(self, row: Row) -> None:
        """Make up for the first line, which said what the log is and held its first record, or none."""
        known = self._known
        if known is not None:
            self.state.name, self.state.uid, self.state.branch = known.name, known.uid, known.branch
            self.state.dropped, self.state.created = known.dropped, known.created
        first = 1 if self.state.points is None else self.state.points.at
        if not self.state.dropped and row.seq > first:
            self._replace_missing(row._replace(seq=2))
            self.state.version = first
        elif row.seq > 1:
            self.state.version = row.seq - 1

    def _replace_missing(self, row: Row) -> None:
        """Put a record in the place of each that is missing before ``row``."""
        missing = range(self.state.version + 1, row.seq)
        reasons = "; ".join(f"line {each.line}: {each.reason}" for each in self._damaged)
        for seq in missing:
            details = {
                "dropped_bytes": sum(each.bytes for each in self._damaged) // len(missing),
                "dropped_events": 1,
                "detail": f"the record could not be read ({reasons}); the log as it was is {self._kept}",
            }
            more = max(0, self.rows[-1].more - 1) if self.rows else 0
            self.rows.append(repair_report(seq, row.time, more, details))
        if missing:
            self._damaged = []


def chained(rows: list[Row]) -> list[Row]:
    """Return the rows with no append that goes on behind what follows it."""
    found: list[Row] = []
    for row in reversed(rows):
        if row.more and (not found or found[-1].more != row.more - 1):
            row = row._replace(more=0)
        found.append(row)
    return found[::-1]
