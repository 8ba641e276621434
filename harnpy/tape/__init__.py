"""The time machine: runs of programs on tapes, which are replayed, branched and compared. Spec: 13."""

from __future__ import annotations

from harnpy.tape.journal import TapeDiverged
from harnpy.tape.tapes import Tape, TapeError, is_tape, read_tape
from harnpy.tape.worlds import Recording, Replaying

__all__ = ["Recording", "Replaying", "Tape", "TapeDiverged", "TapeError", "is_tape", "read_tape"]
