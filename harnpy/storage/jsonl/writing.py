"""Appending to a log: under its lock, right behind what the caller saw last. Spec: 10 §C6.1."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from harnpy.storage.contract import Row
from harnpy.storage.errors import CorruptLog, StorageError, StoreBusy, VersionConflict
from harnpy.storage.jsonl.folders import disk_errors, write_all
from harnpy.storage.jsonl.lines import Facts, written
from harnpy.storage.jsonl.locks import locked
from harnpy.storage.jsonl.log import SUFFIX
from harnpy.storage.repairs import report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.storage.jsonl.folders import Folder
    from harnpy.storage.jsonl.log import Log
    from harnpy.storage.jsonl.state import State

_FLAGS = os.O_RDWR | os.O_APPEND


class Writer:
    """What writes the logs of a store. ``torn`` keeps what repairs cut off; ``lasting``: every append
    outlives a power cut."""

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
            check(name, rows, expected)
            facts = state.change(head)
            if not state.uid:
                facts = facts or Facts()
                facts.name, facts.uid = name, new_uid()
            lines = written(rows, facts)
            if rows:
                lines += self._report(log, rows[-1])
            return self._write(log, file, state, lines).version if lines else state.version

    def begin(self, log: Log, row: Row, facts: Facts) -> State:
        """Write the first record of a branch to a log whose lock is held."""
        with self._opened(log) as file:
            return self._write(log, file, self._repaired(log, file), written([row], facts))

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
        kept = keep(self.torn, log, torn)
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
        repairs = self._repairs.get(log.path, [])
        rows = [report(last.seq + number, last.time, 0, repair) for number, repair in enumerate(repairs, 1)]
        return b"".join(written([row]) for row in rows)

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


def check(name: str, rows: Sequence[Row], expected: int) -> None:
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


def keep(torn: Folder, log: Log, content: bytes) -> str:
    """Put bytes of a log aside, for good. Return the path within the store."""
    moment = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    file = f"{log.file}.{moment}.bin"
    torn.replace(file, content)
    return f"torn/{file}"


def new_uid() -> str:
    """What distinguishes a log from every other one."""
    return os.urandom(8).hex()
