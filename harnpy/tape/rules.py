"""The rules by which a program keeps to its tape, and the error of one that doesn't. Spec: 13 §3."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.tape.description import described, difference
from harnpy.tape.tapes import TapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.workflow.engines.contract import Json


class Rules(NamedTuple):
    """How a journal treats its records.

    ``is_closed``: nothing happens that isn't recorded. ``may_part``: at the first effect that differs the
    rest of the records is given up, and the program goes on live. ``compares``: whether what a model is asked
    counts as a difference. ``compares_output``: whether what is printed does. ``rewrites``: files are written
    again that the records say were written, and sessions whose records say something else by now.
    ``remakes``: nothing that is asked for counts as a difference.
    """

    is_closed: bool = False
    may_part: bool = False
    compares: bool = True
    compares_output: bool = True
    rewrites: bool = False
    remakes: bool = False


RECORDING = Rules()
REPLAYING = Rules(is_closed=True)
#: Behind a part of the records, which are those of the same program or of an edited one; files are in an
#: overlay.
BRANCHING = Rules(compares=False, compares_output=False, rewrites=True)
#: On the results of the same program, whatever it asks for; what it asks for and prints is recorded anew.
REMAKING = Rules(is_closed=True, compares=False, compares_output=False, remakes=True)
#: As far as an edited program asks models for the same; files are left as a run leaves them.
WATCHING = Rules(may_part=True, compares_output=False, rewrites=True)


class TapeDiverged(TapeError):
    """The program asks for something else than its tape has.

    ``step`` is the effect's number, from 1; ``place`` is where the program is, " at file:line:column" or
    empty; ``asked`` and ``recorded`` are the key and what was asked for, None where there is none. ``edited``
    are the files that differ from the tape's, each as ``file:line``.
    """

    def __init__(
        self,
        tape: str,
        step: int,
        place: str,
        asked: tuple[str, Json] | None,
        recorded: tuple[str, Json] | None,
        edited: Sequence[str] = (),
        failure: str = "",
    ) -> None:
        where = f"the program differs from {tape}{place}, at effect {step}"
        edits = f"; edited: {', '.join(edited)}" if edited else ""
        super().__init__(f"{where}: {difference(asked, recorded, failure)}{edits}")
        self.tape = tape
        self.step = step
        self.place = place
        self.asked = asked
        self.recorded = recorded
        self.edited = list(edited)
        self.expected = described(recorded)
        self.found = described(asked)
