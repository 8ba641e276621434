"""Checking a store, and repairing what can be repaired without losing anything. Spec: 10 §C6.1, §C12."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.storage.contract import Finding, FsckReport
from harnpy.storage.errors import CorruptLog, StorageError
from harnpy.storage.jsonl.log import scanned
from harnpy.storage.jsonl.names import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.storage.jsonl.directory import Directory
    from harnpy.storage.jsonl.log import Log
    from harnpy.storage.jsonl.state import State


def fsck(directory: Directory, *, repair: bool) -> FsckReport:
    """Read every log from its first to its last byte."""
    streams = records = 0
    findings: list[Finding] = []
    for kind in directory.logs.kinds():
        for log in directory.logs.all(kind):
            name = name_of(log.file) or log.file
            problem, state = _read(log)
            if state is not None and state.version:
                streams += 1
                records += state.version
                name = state.name or name
            if problem is not None:
                findings.append(Finding(kind, name, problem))
            if state is not None:
                findings += _checked(directory, kind, name, log, state, repair)
    return FsckReport(streams, records, findings)


def _read(log: Log) -> tuple[str | None, State | None]:
    """Return what is wrong with a log, and its state if it can be read."""
    try:
        return None, scanned(log)
    except StorageError as error:
        return str(error), None


def _checked(
    directory: Directory, kind: str, name: str, log: Log, state: State, repair: bool
) -> Iterator[Finding]:
    """What is wrong with a log that can be read."""
    surplus = log.size() - state.size
    if surplus > 0:
        if repair:
            with directory.writer.locked(log):
                directory.writer.repair(log)
        yield Finding(kind, name, f"{surplus} bytes of an append that was never finished", repair)
    if state.points is not None:
        try:
            directory.logs.origin(kind, state.points)
        except CorruptLog as error:
            yield Finding(kind, name, str(error))
