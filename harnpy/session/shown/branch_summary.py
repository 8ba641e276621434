"""The payload of ``branch_summary``. Spec: 10 §A1.2, §A1.9, §C4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.events import Payload

if TYPE_CHECKING:
    from harnpy.session.events import Event


class BranchSummary(Payload):
    """What became of a branch. Stored, it names the event that it begins from by its number."""

    __slots__ = ("_stored",)

    def __init__(self, stored: dict[str, Any]) -> None:
        self._stored = stored

    def data(self, event: Event) -> dict[str, Any]:
        said = {key: value for key, value in self._stored.items() if key != "from_seq"}
        return {"from_event_id": event.owner.id_of(self._stored["from_seq"]), **said}

    def stored(self, event: Event) -> dict[str, Any]:
        return self._stored
