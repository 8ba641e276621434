"""What goes along with a program on a tape: a branch, a watch, a debugger. Spec: 13 §3."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.llm.reply import Reply
    from harnpy.tape.directory import Changed
    from harnpy.tape.rules import TapeDiverged
    from harnpy.workflow.engines.contract import Json, Step


class Follower:
    """Hears of what a program on a tape does, and has answers behind the end of its records.

    A subclass defines the methods that it needs: by itself a follower lets everything take its course.
    """

    def asked(self, key: str) -> None:
        """The program has asked for the effect with this key."""

    def printed(self, write: Callable[[str], object], text: str) -> None:
        """The program has printed a text, which ``write`` shows."""

    def changed(self, changed: Changed) -> None:
        """The program has come to a record that says what processes have changed."""

    def parted(self, difference: TapeDiverged) -> None:
        """The program has left its records here, and goes on without them."""

    def live(self) -> None:
        """The program is about to have the first effect without a record. May raise `Ending`."""

    def ended(self) -> None:
        """The program has come to its end, and to that of its records. May raise `Ending`."""

    def reply(self, asked: Callable[[], Json]) -> Reply | None:
        """Return the reply to a call of a model that has no record of its own, if it is known. ``asked``
        returns what the model is asked."""
        return None

    def pieces(self, key: str) -> Sequence[Step] | None:
        """Return what the tape has of the reply to the call with this key, behind the pieces that are among
        the records; None where those have none or all of it."""
        return None
