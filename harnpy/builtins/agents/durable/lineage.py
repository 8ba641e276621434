"""Who descends from whom. Spec: 10 §C7, §C9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.durable.verbs import builtin

if TYPE_CHECKING:
    from harnpy.builtins.bridge.durable.verbs import Call

    Dict = dict[str, Any]


@builtin(
    "__session_fork(id: string, opts?: dict) -> string",
    "id?: string, at?: int | string, label?: string, reason?: string",
)
def fork(call: Call, id: str, opts: Dict) -> str:
    """Make a session with the past of another one, and return its id."""
    label, reason = opts.get("label") or "", opts.get("reason") or ""
    return call.session(id).fork(opts.get("id"), at=opts.get("at"), label=label, reason=reason).id


@builtin("__session_parent(id: string, opts?: dict) -> dict | nil")
def parent(call: Call, id: str, opts: Dict) -> Dict | None:
    """The session that another one was forked from; nil when there is none any more."""
    found = call.runtime.parent(id)
    return None if found is None else call.shown(found)


@builtin("__session_children(id: string, opts?: dict) -> list")
def children(call: Call, id: str, opts: Dict) -> list[Dict]:
    """The forks of a session, oldest first."""
    return [call.shown(info) for info in call.runtime.children(id)]


@builtin("__session_lineage(id: string, opts?: dict) -> list")
def lineage(call: Call, id: str, opts: Dict) -> list[Dict]:
    """The sessions that one descends from, the first one first, and itself."""
    return [call.shown(info) for info in call.runtime.lineage(id)]


@builtin("__session_save_ancestry(record: dict, opts?: dict) -> bool")
def save_ancestry(call: Call, record: Dict, opts: Dict) -> bool:
    """Keep what another system knows of a session's descent; false when there is a record of it."""
    return call.runtime.save_ancestry(record)
