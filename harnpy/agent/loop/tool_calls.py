"""The shapes that a tool call takes on its way: checked, refused or run, and what the model reads of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.text.json.writer import pretty_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.agent.rules.leads import Lead
    from harnpy.reading.dicts import Dict

Call = dict[str, Any]

OK, ERROR, REJECTED = "ok", "error", "rejected"
PERMISSION_DENIED = "permission_denied"
REJECTED_LOOP = "rejected_loop"


class Rejection(NamedTuple):
    """Why a call isn't made. ``reason`` is that of a denial; ``metadata`` adds to its transcript event."""

    text: str
    category: str
    reason: str | None = None
    metadata: Dict = {}  # noqa: RUF012


class Outcome(NamedTuple):
    """What a call that was made came to; a tool that can't be called at all has a ``denial``.

    ``status``: it is known how the call ended, and ``text`` is what the model reads.
    """

    text: str
    ms: int = 0
    category: str | None = None
    denial: str | None = None
    plan: Dict | None = None
    status: str | None = None


class Result(NamedTuple):
    """What the model reads of a call. ``status`` is None when the call wasn't made."""

    call: Call
    text: str
    status: str | None


@dataclass(slots=True)
class CheckedCall:
    """A call with the arguments that it is made with, or why it isn't made."""

    call: Call
    arguments: Dict
    rejection: Rejection | None = None
    notes: Sequence[Dict] = ()
    outcome: Outcome | None = None
    leads: Sequence[Lead] = ()

    @property
    def name(self) -> str:
        name: str = self.call["name"]
        return name


def denied_text(name: str, reason: str) -> str:
    """Return what the model reads of a denied call."""
    return pretty_json({"error": PERMISSION_DENIED, "reason": reason, "tool": name})
