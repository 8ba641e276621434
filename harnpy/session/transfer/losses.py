"""What of a session a file can't hold. Spec: 10 §C17."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session import events as kinds
from harnpy.session.errors import TransferError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.events import Event
    from harnpy.session.log import Session

#: Kinds of losses.
ARTIFACTS, BRANCHES, CHILDREN, CUTS, LOG = "artifacts", "branches", "children", "cuts", "log"
MEMO, PINS, REGISTERS, SETTINGS, STATUSES, TOOLS = (
    "memo",
    "pins",
    "registers",
    "settings",
    "statuses",
    "tools",
)
NAME, TORN_LINE, UNREADABLE = "name", "torn line", "unreadable messages"


class Loss(NamedTuple):
    """One kind of loss of one session; ``detail`` says how much."""

    session_id: str
    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.session_id}: {self.kind}: {self.detail}"


def lost(session: Session, kept: Iterable[str]) -> list[Loss]:
    """Return what is lost by a format that keeps those kinds, and messages always."""
    kinds_kept = frozenset(kept)
    counts = Counter(kind for event in session.events() if (kind := _kind(event)) is not None)
    found = [(kind, count, "event") for kind, count in counts.items() if kind not in kinds_kept]
    # Of cuts, only what they did is a loss.
    dropped = len(session.every_message()) - len(session.history())
    if dropped and LOG not in kinds_kept:
        found.append(("messages before the history", dropped, "message"))
    gone = len(session.history()) - len(session.messages())
    if CUTS not in kinds_kept and session.messages() != session.history():
        found.append((CUTS, max(gone, 0), "message"))
    return [Loss(session.id, kind, _counted(count, noun)) for kind, count, noun in sorted(found)]


def refuse(losses: Iterable[Loss]) -> None:
    """Raise `TransferError` for the first loss, if there is one."""
    for loss in losses:
        raise TransferError(f"this format can't hold everything of it: {loss}", loss.session_id)


def _counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


def _kind(event: Event) -> str | None:
    """Return the kind of loss that an event is; None for what no format has to hold."""
    if event.type == kinds.REGISTER_SET:
        return _register(event.body)
    if event.type == kinds.SESSION_CREATED:
        return BRANCHES if event.body.parent is not None else None
    return _KINDS.get(event.type, LOG)


def _register(register: dict[str, Any]) -> str:
    key: str = register["key"]
    if key.startswith("settings."):
        return SETTINGS
    return {"memo": MEMO, "pins": PINS}.get(key, REGISTERS)


_KINDS: dict[str, str | None] = {
    kinds.MESSAGE_ADDED: None,
    kinds.PROJECTION_SNAPSHOTTED: None,
    kinds.STATUS_CHANGED: STATUSES,
    kinds.HISTORY_REPLACED: None,
    kinds.COMPACTION_STARTED: None,
    kinds.COMPACTION_TRIGGERED: None,
    kinds.LEAF_MOVED: BRANCHES,
    kinds.BRANCH_SUMMARY: BRANCHES,
    kinds.TOOL_STARTED: TOOLS,
    kinds.TOOL_OUTPUT_DELTA: TOOLS,
    kinds.TOOL_COMPLETED: TOOLS,
    kinds.ARTIFACT_RECORDED: ARTIFACTS,
    **dict.fromkeys((
        kinds.CHILD_REQUESTED, kinds.CHILD_STARTED, kinds.CHILD_PROGRESSED, kinds.CHILD_BLOCKED,
        kinds.CHILD_COMPLETED, kinds.CHILD_FAILED, kinds.CHILD_CANCELED, kinds.CHILD_MERGED,
    ), CHILDREN),
}  # fmt: skip
