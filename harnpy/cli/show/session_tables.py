"""Sessions of a store on a terminal: lists and trees. Spec: 10 §C21."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from harnpy.cli.show import tables
from harnpy.session.kept.info import FORK_SEQ, PARENT
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table
    from rich.tree import Tree

    from harnpy.storage import Head

_WIDTHS = {"id": 48, "agent": 24}


def heads(found: Iterable[Head]) -> Table:
    """A line for each session."""
    rows = [
        (
            tables.cell(head.name, _WIDTHS["id"]),
            tables.cell(_status(head)),
            tables.cell(str(head.data.get("agent", "")), _WIDTHS["agent"]),
            tables.cell(str(head.version)),
            tables.cell(_moment(head.updated)),
            tables.cell(_parent(head) or "", _WIDTHS["id"]),
        )
        for head in found
    ]
    return tables.table(("session", "status", "agent", "events", "updated", "forked from"), rows, ("events",))


def tree(found: Iterable[Head], root: str | None) -> list[Tree]:
    """The sessions below those that they were forked from, from ``root`` (None: each that has no parent)."""
    from rich.tree import Tree

    by_name = {head.name: head for head in found}
    children: dict[str | None, list[Head]] = {}
    for head in by_name.values():
        parent = _parent(head) if _parent(head) in by_name else None
        children.setdefault(parent, []).append(head)
    roots = children.get(None, []) if root is None else [by_name[root]]
    made = []
    for head in roots:
        trunk = Tree(_label(head))
        waiting = [(head, trunk)]
        while waiting:  # not recursive: forks of forks may go thousands deep
            above, branch = waiting.pop()
            for child in children.get(above.name, []):
                waiting.append((child, branch.add(_label(child))))
        made.append(trunk)
    return made


def as_dict(head: Head) -> dict[str, Any]:
    """A head as JSON shows it."""
    return {
        "id": head.name,
        "seq": head.version,
        "status": _status(head),
        "agent": head.data.get("agent", ""),
        "parent_id": _parent(head),
        "fork_seq": head.data.get(FORK_SEQ, 0),
        "created_at": rfc3339(head.created / 1e6, 6),
        "updated_at": rfc3339(head.updated / 1e6, 6),
    }


def _label(head: Head) -> Any:
    label = tables.cell(head.name)
    at = f" at {head.data[FORK_SEQ]}" if _parent(head) else ""
    label.append(f"  {_status(head)}, {head.version} events{at}", "dim")
    return label


def _parent(head: Head) -> str | None:
    """The session that it was forked from, there or not."""
    parent: str | None = head.data.get(PARENT)
    return parent


def _status(head: Head) -> str:
    status: str = head.data.get("status", "active")
    return status


def _moment(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
