"""Children whose process is gone. Spec: 10 §C7.2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.children.facts import Child
from harnpy.session.events import EventDraft
from harnpy.storage.errors import LeaseHeld

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.kept.stored import StoredSession
    from harnpy.storage.contract import Store

INTERRUPTED = "interrupted"


def end_interrupted(session: StoredSession, runs: Callable[[str], bool]) -> None:
    """Have the log say that the children failed which nobody runs any more.

    ``runs(id)``: whether this process does; of another one's the lease tells.
    """
    for id, seq in session.open_children.items():
        asked = session.event(seq)
        if runs(id) or not _is_free(session.store, asked.data["lease"]):
            continue
        type, data = Child(id, asked.data.get("child_session_id")).failed(INTERRUPTED)
        turn = None if asked.turn is None else session.view.open_turns.get(asked.turn.seq)
        session.write(EventDraft(type, data, turn=turn))


def _is_free(store: Store, lease: str) -> bool:
    try:
        store.lease(lease).release()
    except LeaseHeld:
        return False
    return True
