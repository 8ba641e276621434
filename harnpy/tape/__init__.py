"""The time machine: runs of programs on tapes, which are replayed, branched and compared. Spec: 13."""

from __future__ import annotations

from harnpy.tape.branch import Branched, Branching, branch
from harnpy.tape.changes import Changes
from harnpy.tape.rules import TapeDiverged
from harnpy.tape.tapes import Tape, TapeError, is_tape, names_tape, read_tape
from harnpy.tape.worlds import Recording, Replaying

__all__ = [
    "Branched",
    "Branching",
    "Changes",
    "Recording",
    "Replaying",
    "Tape",
    "TapeDiverged",
    "TapeError",
    "branch",
    "is_tape",
    "names_tape",
    "read_tape",
]
