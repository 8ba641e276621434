"""What is known of a log's file, brought up to date by reading what has come since. Spec: 10 §C6.1.

The state ends behind the last complete append. What lies behind that is a *tail*: an append that is being
written, or one that a crash has cut off.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import msgspec

from harnpy.storage.errors import CorruptLog, SchemaTooNew
from harnpy.storage.jsonl.lines import BadLine, Facts, Origin, brief

if TYPE_CHECKING:
    from harnpy.storage.jsonl.lines import Brief

#: At least this many lines lie between two marks.
SPACING = 256
#: So many of the state's last bytes are remembered, to notice a log that isn't the one it was.
_END = 18


class Mark(NamedTuple):
    """Where an append begins: its line, counted from 1, its offset in bytes, and its first ``seq``."""

    line: int
    offset: int
    seq: int


class State(msgspec.Struct, omit_defaults=True):
    """The complete appends of a log: ``size`` bytes in ``lines`` lines, the last bytes being ``end``.

    A state that somebody holds doesn't change; newer ones are copies.
    """

    size: int = 0
    lines: int = 0
    end: bytes = b""
    version: int = 0
    dropped: int = 0
    #: Timestamps of the first and the last record.
    created: str = ""
    updated: str = ""
    name: str = ""
    uid: str = ""
    branch: Origin | None = None
    head: dict[str, Any] = {}
    #: Appends at some distance from each other, from the first one on.
    marks: list[Mark] = []
    #: The last append with records.
    last: Mark | None = None

    def fits(self, file: BinaryIO, size: int) -> bool:
        """Whether the file still begins with what this state describes."""
        if size < self.size:
            return False
        file.seek(self.size - len(self.end))
        return file.read(len(self.end)) == self.end

    def advanced(self, file: BinaryIO, path: str) -> State:
        """Return the state of the file as it is now. Raises `CorruptLog`."""
        state = copy(self)
        state._advance(file, path)
        return state

    def _advance(self, file: BinaryIO, path: str) -> None:
        """Take in the complete appends behind the state.

        Raises `CorruptLog` for a line that can't be read and isn't the last one, or doesn't fit.
        """
        file.seek(self.size)
        at = self.size
        number = self.lines
        found: list[Brief] = []
        problem: str | None = None
        for line in file:
            if not line.endswith(b"\n"):
                break
            if problem is not None:
                raise CorruptLog(path, problem, number, at)
            number += 1
            if not line.isspace():
                try:
                    found.append(brief(line[:-1]))
                except BadLine as error:
                    problem = str(error)
                    continue
                except SchemaTooNew as error:
                    raise SchemaTooNew(path, error.found, error.known) from None
                misfit = self._misfit(found)
                if misfit is not None:
                    raise CorruptLog(path, misfit, number, at)
            at += len(line)
            if not found or not found[-1].more:
                self._take(found, number, at, line)
                found = []

    def _misfit(self, found: list[Brief]) -> str | None:
        """Return what is wrong with the last line of an append, seen from those before it."""
        line = found[-1]
        due = self.version + len(found)
        if line.timestamp and not line.seq:
            line.seq = due
        if line.seq not in (due, 0):
            return f"record {line.seq} where {due} was due"
        if len(found) > 1 and line.more != found[-2].more - 1:
            return f"{found[-2].more} more records were due in this append"
        return None

    def _take(self, found: list[Brief], lines: int, size: int, end: bytes) -> None:
        """Take in one append, that ends with line number ``lines`` and at byte ``size``."""
        if found and found[0].seq:
            mark = Mark(self.lines + 1, self.size, found[0].seq)
            if not self.marks or mark.line - self.marks[-1].line >= SPACING:
                self.marks = [*self.marks, mark]
            self.last = mark
            self.version = found[-1].seq
            self.updated = found[-1].timestamp
            self.created = self.created or found[0].timestamp
        if found and found[0].log is not None:
            self.learn(found[0].log)
        self.lines = lines
        self.size = size
        self.end = end[-_END:]

    def learn(self, facts: Facts) -> None:
        """Take in what a line says of the log."""
        self.name = facts.name if facts.name is not None else self.name
        self.uid = facts.uid or self.uid
        self.branch = facts.branch or self.branch
        self.dropped = max(self.dropped, facts.dropped)
        self.created = facts.created or self.created
        self.updated = facts.updated or self.updated
        if facts.version is not None:
            self.version = facts.version
        if facts.head is not None:
            self.head = facts.head
        if facts.set is not None:
            self.head = self.head | facts.set

    def change(self, head: dict[str, Any] | None) -> Facts | None:
        """Return what a line must say so that ``head`` becomes the head's data; None if it is already."""
        if head is None:
            return None
        if not self.head or self.head.keys() - head.keys():
            return None if _same(head, self.head) else Facts(head=head)
        changed = {
            key: value
            for key, value in head.items()
            if key not in self.head or not _same(value, self.head[key])
        }
        return Facts(set=changed) if changed else None

    @property
    def points(self) -> Origin | None:
        """The origin, if records are still read from there."""
        return self.branch if self.branch is not None and self.branch.uid else None


def _same(one: object, other: object) -> bool:
    """Whether two values are the same JSON; to Python, True equals 1."""
    return msgspec.json.encode(one) == msgspec.json.encode(other)
