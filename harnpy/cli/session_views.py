"""Sessions and threads on a terminal: tables, one in full, trees of forks, messages and events.

Spec: 10 §C21.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from harnpy.adapters.conversations import SESSION, kind_of
from harnpy.cli import tables
from harnpy.cli.console import counted, harmless, one_line, paint
from harnpy.cli.tables import cell
from harnpy.formats.dicts import Dict
from harnpy.formats.json import compact_json
from harnpy.session import SessionRegistry
from harnpy.session.events import Event
from harnpy.session.info import info_of
from harnpy.session.transcript import MESSAGE_KINDS, message_event
from harnpy.storage import Head

# A kept session on a terminal, line by line: its messages, its events. Spec: 10 §C21.


_EXCERPT = 160


def message_lines(message: dict[str, Any]) -> str:
    """A message: its role, then its text and its calls, later lines indented."""
    content, calls = message.get("content"), message.get("tool_calls")
    made = [*calls] if isinstance(calls, list) else []
    if isinstance(content, list):
        blocks = [block for block in content if _is_call(block)]
        made += [] if made else blocks  # some messages have their calls in both forms
        message = {**message, "content": [block for block in content if block not in blocks]}
    text = message_event(message, "")["text"]
    if made:
        text = "\n".join(filter(None, [text, *map(_call, made)]))
    elif not text and message.get("role") == "item":  # of the Agents SDK: reasoning, a call of its own tools
        text = short(compact_json({name: value for name, value in message.items() if name != "role"}))
    role = one_line(str(message.get("role", "")))
    lines = harmless(text).split("\n")
    return "\n".join([f"{paint(role, 'bold', sys.stdout)}: {lines[0]}", *(f"  {line}" for line in lines[1:])])


def request_lines(request: dict[str, Any]) -> str:
    """The request of a step: whom it went to, and what it said."""
    named = [name for name in (request["provider"], request["model"]) if name is not None]
    asked = f"step {request['step']} (event {request['seq']}): {', '.join(named) or 'a function'}"
    lines = [one_line(asked)]
    if request["tools"]:
        lines.append(f"tools: {', '.join(one_line(_tool_name(tool)) for tool in request['tools'])}")
    if request["system"]:
        lines.append(message_lines({"role": "system", "content": request["system"]}))
    lines += map(message_lines, [*request["messages"], *request["tail"]])
    if "prefill" in request:
        lines.append(message_lines({"role": "assistant", "content": request["prefill"]}))
    return "\n".join(lines)


def _tool_name(tool: Any) -> str:
    function = tool.get("function", tool) if isinstance(tool, dict) else {}
    return str(function.get("name") or tool.get("type") or "") if isinstance(function, dict) else ""


def event_line(event: Event) -> str:
    """An event: number, time, type, and the beginning of its data."""
    return f"{event.seq:6}  {event.timestamp}  {event.type:20}  {short(compact_json(event.data))}"


def short(text: str) -> str:
    """The beginning of a text, on one line."""
    text = one_line(text)
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"


def excerpt(text: str, query: str) -> str:
    """The part of a text around what was searched for, on one line; all of a short one."""
    line = one_line(text)
    if len(line) <= _EXCERPT:
        return line
    word = query.split()[0].strip('"').casefold() if query.split() else ""
    at = max(0, line.casefold().find(word) - _EXCERPT // 4)
    part = line[at : at + _EXCERPT]
    return ("…" if at else "") + part + ("…" if at + _EXCERPT < len(line) else "")


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use"


def _call(call: Any) -> str:
    function = call.get("function", call) if isinstance(call, dict) else {}
    arguments = function.get("arguments", function.get("input", ""))
    shown = arguments if isinstance(arguments, str) else compact_json(arguments)
    return f"-> {function.get('name', '')}({shown})"


# Sessions of a store on a terminal: lists and trees. Spec: 10 §C21.


_WIDTHS = {"id": 48, "agent": 24}


def heads(found: Iterable[Head]) -> Table:
    """A line for each session and thread."""
    rows = [
        (
            tables.cell(head.name, _WIDTHS["id"]),
            tables.cell(kind_of(head)),
            tables.cell(_status(head)),
            tables.cell(str(head.data.get("agent", "")), _WIDTHS["agent"]),
            tables.cell(str(head.version)),
            tables.cell(_moment(head.updated)),
            tables.cell(_parent(head) or "", _WIDTHS["id"]),
        )
        for head in found
    ]
    columns = ("id", "kind", "status", "agent", "events", "updated", "forked from")
    return tables.table(columns, rows, ("events",))


def stored_tree(found: Iterable[Head], root: str | None) -> list[Tree]:
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
        trunk = Tree(_head_label(head))
        waiting = [(head, trunk)]
        while waiting:  # not recursive: forks of forks may go thousands deep
            above, branch = waiting.pop()
            for child in children.get(above.name, []):
                waiting.append((child, branch.add(_head_label(child))))
        made.append(trunk)
    return made


def head_as_dict(head: Head) -> dict[str, Any]:
    """A head as JSON shows it."""
    return {
        "id": head.name,
        "kind": kind_of(head),
        "seq": head.version,
        "status": _status(head),
        "agent": head.data.get("agent", ""),
        "parent_id": _parent(head),
        "fork_seq": info_of(head).fork_seq if kind_of(head) == SESSION else head.fork_seq,
        "created_at": stamp(head.created),
        "updated_at": stamp(head.updated),
    }


def _head_label(head: Head) -> Any:
    label = tables.cell(head.name)
    shared = info_of(head).fork_seq
    at = f" at {shared}" if shared else ""
    label.append(f"  {_status(head)}, {head.version} events{at}", "dim")
    return label


def _parent(head: Head) -> str | None:
    """Return its origin: a session, there or not; a thread, as long as it is there."""
    return info_of(head).parent_id if kind_of(head) == SESSION else head.parent


def _status(head: Head) -> str:
    status: str = head.data.get("status", "active" if kind_of(head) == SESSION else "")
    return status


def stamp(micros: int) -> str:
    """A time of a record, as JSON has it."""
    seconds, fraction = divmod(micros, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:06}Z"


def _moment(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")


# Sessions for people at a terminal: a table of them, one in full, the tree of forks. For the REPL.


_LAST_EVENT_WIDTH = 48
_ROLE_STYLES = {"user": "bold cyan", "assistant": "bold green", "system": "bold yellow"}


def live_table(sessions: SessionRegistry) -> RenderableType:
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


def live_transcript(snapshot: Dict) -> RenderableType:
    """One session: its properties and all its events."""
    lines = [Text(f"{one_line(snapshot['id'])}  {counted(snapshot['length'], 'message')}", "bold")]
    facts = {
        "parent": snapshot["parent_id"],
        "children": ", ".join(snapshot["child_ids"]),
        "clients": _clients(snapshot),
        "state": snapshot.get("state"),
        "scratchpad": f"version {snapshot['scratchpad_version']}" if snapshot["scratchpad"] else None,
    }
    lines += [Text(f"{name + ':':12}{one_line(value)}", "dim") for name, value in facts.items() if value]
    return Group(*lines, *map(_live_event, snapshot["events"]))


def live_tree(sessions: SessionRegistry) -> RenderableType:
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
    root = Tree(_live_label(sessions, top))
    waiting = [(top, root)]
    seen.add(top)
    while waiting:
        id, node = waiting.pop()
        for child in _children(sessions, id):
            if child not in seen:
                seen.add(child)
                waiting.append((child, node.add(_live_label(sessions, child))))
    return root


def _children(sessions: SessionRegistry, id: str) -> list[str]:
    ancestry = sessions.ancestry(id)
    if ancestry is not None:
        return list(ancestry["child_ids"])
    return [snapshot["id"] for snapshot in _snapshots(sessions) if snapshot["parent_id"] == id]


def _live_label(sessions: SessionRegistry, id: str) -> Text:
    snapshot = sessions.snapshot_value(id)
    if snapshot is None:
        return Text(f"{one_line(id)}  closed", "dim")
    at = snapshot["branched_at_event_index"]
    branched = "" if at is None else f", branched at event {at}"
    return Text(f"{one_line(id)}  {counted(snapshot['length'], 'message')}{branched}")


def _made(sessions: SessionRegistry, id: str) -> tuple[bool, float]:
    """Sort key: by age, closed sessions last, because an older session may have them in its branch."""
    session = sessions.session(id)
    return (True, 0.0) if session is None else (False, session.view.created)


def _snapshots(sessions: SessionRegistry) -> Iterator[Dict]:
    for id in sessions.ids():
        snapshot = sessions.snapshot_value(id)
        if snapshot is not None:
            yield snapshot


def _live_event(event: Dict) -> Text:
    """A message as ``role: text``, anything else dimmed."""
    role, text = harmless(str(event.get("role"))), harmless(str(event.get("text") or ""))
    if event.get("kind") in MESSAGE_KINDS:
        return Text.assemble((f"{role}: ", _ROLE_STYLES.get(role, "bold")), text)
    return Text(f"· {event.get('kind')}{': ' if text else ''}{text}", "dim")


def _last_event(snapshot: Dict) -> str:
    return "-" if not snapshot["events"] else _live_event(snapshot["events"][-1]).plain.removeprefix("· ")


def _clients(snapshot: Dict) -> str:
    controller = snapshot["live_controller_id"]
    ids = [client["client_id"] for client in snapshot["live_clients"]]
    return ", ".join(one_line(id) + ("*" if id == controller else "") for id in ids)
