"""Making a log readable again, of which lines are damaged. Spec: 10 §C6.1, §C12.

The log as it was is put aside. In the new one a record that can't be read any more is replaced by one of
type ``store_repaired`` with its number, so every other record stays where it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.storage.contract import Row
from harnpy.storage.jsonl import lines
from harnpy.storage.jsonl.lines import BadLine
from harnpy.storage.jsonl.names import name_of
from harnpy.storage.jsonl.rewriting import replace
from harnpy.storage.jsonl.state import State
from harnpy.storage.jsonl.writing import keep, new_uid
from harnpy.storage.repairs import report

if TYPE_CHECKING:
    from harnpy.storage.jsonl.folders import Folder
    from harnpy.storage.jsonl.log import Log


class Damage(NamedTuple):
    """A line that can't be read."""

    line: int
    bytes: int
    reason: str


def mend(log: Log, torn: Folder) -> str:
    """Replace a damaged log, whose lock is held, by what can be read of it. Return where the old one is."""
    content = log.content()
    kept = keep(torn, log, content)
    salvage = Salvage(log, kept)
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        if line and not line.isspace():
            salvage.take(number, line)
    if salvage.rows:
        replace(log, salvage.state, chained(salvage.rows))
    else:
        log.remove()
    return kept


class Salvage:
    """What can be read of a log, line by line."""

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
            found = lines.brief(line)
            row = lines.row(line, self.state.version + 1)
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
            self.rows.append(report(seq, row.time, more, details))
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
