"""Sessions for people at a terminal: a table of them, one in full, the tree of forks. For the REPL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from harnpy.cli.console import harmless, one_line
from harnpy.cli.show import tables
from harnpy.cli.show.tables import cell
from harnpy.session.transcript import MESSAGE_KINDS

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.session import SessionRegistry


_LAST_EVENT_WIDTH = 48
_ROLE_STYLES = {"user": "bold cyan", "assistant": "bold green", "system": "bold yellow"}


def table(sessions: SessionRegistry) -> RenderableType:
    """All sessions, the least recently used first; ``*`` marks the client that controls one."""
    if not sessions.ids():
        return Text("no sessions yet: agent_session_open() makes one")
    rows = [
        (
            cell(snapshot["id"]),
            cell(str(snapshot["length"])),
            cell(snapshot["parent_id"] or "-"),
            cell(_clients(snapshot) or "-"),
            cell(_last_event(snapshot), _LAST_EVENT_WIDTH),
        )
        for snapshot in _snapshots(sessions)
    ]
    return tables.table(("id", "messages", "parent", "clients", "last event"), rows, ("messages",))


def transcript(snapshot: Dict) -> RenderableType:
    """One session: its properties and all its events."""
    lines = [Text(f"{one_line(snapshot['id'])}  {_count(snapshot)}", "bold")]
    facts = {
        "parent": snapshot["parent_id"],
        "children": ", ".join(snapshot["child_ids"]),
        "clients": _clients(snapshot),
        "state": snapshot.get("state"),
        "scratchpad": f"version {snapshot['scratchpad_version']}" if snapshot["scratchpad"] else None,
    }
    lines += [Text(f"{name + ':':12}{one_line(value)}", "dim") for name, value in facts.items() if value]
    return Group(*lines, *map(_event, snapshot["events"]))


def tree(sessions: SessionRegistry) -> RenderableType:
    """The tree of forks, the oldest first; a closed session still connects its branch."""
    ids = sessions.ids()
    if not ids:
        return Text("no sessions yet: agent_session_open() makes one")
    parents = {snapshot["id"]: snapshot["parent_id"] for snapshot in _snapshots(sessions)}
    tops = sorted(dict.fromkeys(_top(id, parents) for id in ids), key=lambda top: _made(sessions, top))
    seen: set[str] = set()
    return Group(*(_branch(sessions, top, seen) for top in tops if top not in seen))


def _top(id: str, parents: dict[str, str | None]) -> str:
    """The highest known ancestor, if only by name."""
    seen = {id}
    while (parent := parents.get(id)) is not None and parent not in seen:
        id = parent
        seen.add(id)
    return id


def _branch(sessions: SessionRegistry, top: str, seen: set[str]) -> Tree:
    """The tree under ``top``, without what was ``seen``. Not recursive: forks of forks may go deep."""
    root = Tree(_label(sessions, top))
    waiting = [(top, root)]
    seen.add(top)
    while waiting:
        id, node = waiting.pop()
        for child in _children(sessions, id):
            if child not in seen:
                seen.add(child)
                waiting.append((child, node.add(_label(sessions, child))))
    return root


def _children(sessions: SessionRegistry, id: str) -> list[str]:
    ancestry = sessions.ancestry(id)
    if ancestry is not None:
        return list(ancestry["child_ids"])
    return [snapshot["id"] for snapshot in _snapshots(sessions) if snapshot["parent_id"] == id]


def _label(sessions: SessionRegistry, id: str) -> Text:
    snapshot = sessions.snapshot_value(id)
    if snapshot is None:
        return Text(f"{one_line(id)}  closed", "dim")
    at = snapshot["branched_at_event_index"]
    branched = "" if at is None else f", branched at event {at}"
    return Text(f"{one_line(id)}  {_count(snapshot)}{branched}")


def _made(sessions: SessionRegistry, id: str) -> tuple[bool, float]:
    """Sort key: by age, closed sessions last, because an older session may have them in its branch."""
    session = sessions.session(id)
    return (True, 0.0) if session is None else (False, session.view.created)


def _snapshots(sessions: SessionRegistry) -> Iterator[Dict]:
    for id in sessions.ids():
        snapshot = sessions.snapshot_value(id)
        if snapshot is not None:
            yield snapshot


def _event(event: Dict) -> Text:
    """A message as ``role: text``, anything else dimmed."""
    role, text = harmless(str(event.get("role"))), harmless(str(event.get("text") or ""))
    if event.get("kind") in MESSAGE_KINDS:
        return Text.assemble((f"{role}: ", _ROLE_STYLES.get(role, "bold")), text)
    return Text(f"· {event.get('kind')}{': ' if text else ''}{text}", "dim")


def _last_event(snapshot: Dict) -> str:
    return "-" if not snapshot["events"] else _event(snapshot["events"][-1]).plain.removeprefix("· ")


def _clients(snapshot: Dict) -> str:
    controller = snapshot["live_controller_id"]
    ids = [client["client_id"] for client in snapshot["live_clients"]]
    return ", ".join(one_line(id) + ("*" if id == controller else "") for id in ids)


def _count(snapshot: Dict) -> str:
    count = snapshot["length"]
    return f"{count} message{'' if count == 1 else 's'}"
