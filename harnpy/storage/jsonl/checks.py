"""Checking a store, and repairing what can be repaired without losing anything. Spec: 10 §C6.1, §C12."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.storage.contract import Finding, FsckReport
from harnpy.storage.errors import CorruptLog
from harnpy.storage.jsonl.log import scanned
from harnpy.storage.jsonl.mending import mend
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
            try:
                state = scanned(log)
            except CorruptLog as error:
                findings.append(_damaged(directory, kind, name, log, str(error), repair))
                if not repair:
                    continue
                state = scanned(log)
            if state.version:
                streams += 1
                records += state.version
            findings += _checked(directory, kind, state.name or name, log, state, repair)
    return FsckReport(streams, records, findings)


def _damaged(directory: Directory, kind: str, name: str, log: Log, problem: str, repair: bool) -> Finding:
    """What is wrong with a log of which lines can't be read."""
    if not repair:
        return Finding(kind, name, problem)
    with directory.writer.locked(log):
        kept = mend(log, directory.torn)
    return Finding(kind, name, f"{problem}; what can be read of it was kept, the whole is {kept}", True)


def _checked(
    directory: Directory, kind: str, name: str, log: Log, state: State, repair: bool
) -> Iterator[Finding]:
    """What is wrong with a log that can be read."""
    if log.size() > state.size:
        with directory.writer.locked(log):  # somebody may have been writing
            surplus = log.size() - scanned(log).size
            if repair:
                directory.writer.repair(log)
        if surplus:
            yield Finding(kind, name, f"{surplus} bytes of an append that was never finished", repair)
    if state.points is not None:
        try:
            directory.logs.origin(kind, state.points)
        except CorruptLog as error:
            yield Finding(kind, name, str(error))
