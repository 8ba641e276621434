"""Durable sessions: creating, listing, deleting, forking, activating; their registers.

Spec: 10 §A2.5, §C3.1, §C7-C9.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from harnpy.agent.context import ActiveSession
from harnpy.builtins.bridge.contexts import context_of
from harnpy.builtins.sessions.session_values import invalid
from harnpy.builtins.sessions.verbs import builtin
from harnpy.session import hooks
from harnpy.session.agents import AgentDef
from harnpy.session.errors import SessionNotFound
from harnpy.session.registers import REGISTERS
from harnpy.session.runtime import SessionQuery
from harnpy.storage.opening import shown

if TYPE_CHECKING:
    from harnpy.builtins.sessions.verbs import Call
    from harnpy.vm.values import Value

    Dict = dict[str, Any]

_ORDERS = ("updated", "created", "id")


@builtin("__session_store(url?: string) -> string")
def store(call: Call, url: str | None) -> str:
    """Set the store of this program's sessions if a URL is given; return the store's URL.

    The URL is `memory:`, `jsonl:<dir>`, `sqlite:<file>` or `postgresql://…`. By default it is the
    environment's or the project's.
    """
    if url is not None:
        call.durable.runtime(url)
        call.durable.url = url
    return shown(call.durable.default_url())


@builtin(
    "__session_create(opts?: dict) -> dict",
    "id?: string, agent?: string | dict, label?: string, system_prompt?: string, metadata?: dict, "
    "seed?: list | dict, auto_resize?: bool, parent_id?: string",
)
def create(call: Call, opts: Dict) -> Dict:
    """Create a session, and return its info.

    Options: `id`, `agent` (a name or a definition), `label`, `system_prompt`, `metadata`, `seed` (messages),
    `auto_resize`, `parent_id`.
    """
    given = {key: value for key, value in opts.items() if value is not None}
    runtime, durable = call.runtime, call.durable
    id = given.pop("id", None) or durable.new_id()
    named, parent = given.pop("agent", ""), given.pop("parent_id", None)
    agent = AgentDef.of(named) if isinstance(named, dict) else named
    session = call.alone(
        id, partial(runtime.create, agent, id=id, parent=parent, caller=durable.caller(), **given)
    )
    return call.shown(runtime.info(session.id))


@builtin("__session_info(id: string, opts?: dict) -> dict | nil")
def info(call: Call, id: str, opts: Dict) -> Dict | None:
    """Return a session as in lists, with `watchers` and `watch_dropped`; nil if it doesn't exist."""
    try:
        return call.shown(call.info(id))
    except SessionNotFound:
        return None


@builtin("__session_exists(id: string, opts?: dict) -> bool")
def exists(call: Call, id: str, opts: Dict) -> bool:
    """Return true if there is a session of that id."""
    return call.runtime.exists(id)


@builtin("__session_seq(id: string, opts?: dict) -> int")
def seq(call: Call, id: str, opts: Dict) -> int:
    """Return the number of a session's last event."""
    return call.session(id).seq


@builtin("__session_revision(id: string, opts?: dict) -> int")
def revision(call: Call, id: str, opts: Dict) -> int:
    """Return how many times a session was saved, starting with 1 at its creation."""
    return call.info(id).revision


@builtin("__session_cost(id: string, opts?: dict) -> float | nil")
def cost(call: Call, id: str, opts: Dict) -> float | None:
    """Return what a session has cost in USD, or nil if the price of a call is unknown."""
    session = call.session(id)
    return None if session.unpriced_calls else session.total_cost


@builtin(
    "__session_list(filter?: dict) -> dict",
    "status?: string, agent?: string, parent?: string, deleted?: bool, limit?: int, after?: string, "
    "order?: string",
)
def list_(call: Call, filter: Dict) -> Dict:
    """Return a page of sessions: `{items, next, errors}`.

    Filter: `status`, `agent`, `parent`, `deleted`, `limit` (100), `after` (the `next` of the page before),
    `order` (`updated`, `created`, `id`).
    """
    given = {key: value for key, value in filter.items() if value is not None}
    if given.get("order", "id") not in _ORDERS:
        raise invalid(f"{call.name}: option `order` must be one of {', '.join(_ORDERS)}")
    if given.get("limit", 1) < 1:
        raise invalid(f"{call.name}: option `limit` must be at least 1")
    page = call.runtime.list(SessionQuery(**given))
    return {
        "items": [call.shown(info) for info in page.items],
        "next": page.next,
        "errors": [{"id": id, "reason": reason} for id, reason in page.errors],
    }


@builtin("__session_delete(id: string, opts?: dict) -> bool", "hard?: bool")
def delete(call: Call, id: str, opts: Dict) -> bool:
    """Hide a session from lists, or with `hard` delete its log; false if it doesn't exist."""
    runtime, hard = call.runtime, bool(opts.get("hard"))
    try:
        call.alone(id, partial(runtime.delete, id, hard=hard))
    except SessionNotFound:
        return False
    if hard:
        call.durable.listening.over(id)
    return True


# Who descends from whom. Spec: 10 §C7, §C9.


@builtin(
    "__session_fork(id: string, opts?: dict) -> string",
    "id?: string, at?: int | string, label?: string, reason?: string",
)
def fork(call: Call, id: str, opts: Dict) -> str:
    """Create a session with the past of another one; return its id.

    Options: `id`, `at` (an event's number or id), `label`, `reason`. Spec: 10 §A1.11, §C9.
    """
    label, reason = opts.get("label") or "", opts.get("reason") or ""
    return call.session(id).fork(opts.get("id"), at=opts.get("at"), label=label, reason=reason).id


@builtin("__session_parent(id: string, opts?: dict) -> dict | nil")
def parent(call: Call, id: str, opts: Dict) -> Dict | None:
    """Return the session that another one was forked from; nil when it no longer exists.

    Spec: 10 §A1.11, §C9.
    """
    found = call.runtime.parent(id)
    return None if found is None else call.shown(found)


@builtin("__session_children(id: string, opts?: dict) -> list")
def children(call: Call, id: str, opts: Dict) -> list[Dict]:
    """Return the forks of a session, oldest first. Spec: 10 §A1.11, §C9."""
    return [call.shown(info) for info in call.runtime.children(id)]


@builtin("__session_lineage(id: string, opts?: dict) -> list")
def lineage(call: Call, id: str, opts: Dict) -> list[Dict]:
    """Return the sessions that a session descends from, oldest first, and itself. Spec: 10 §A1.11, §C9."""
    return [call.shown(info) for info in call.runtime.lineage(id)]


@builtin("__session_save_ancestry(record: dict, opts?: dict) -> bool")
def save_ancestry(call: Call, record: Dict, opts: Dict) -> bool:
    """Store another system's record of a session's ancestry; false if one is already stored.

    The record is `{session_id, parent_session_id?, created_at, …}`. Spec: 10 §A1.11, §C9.
    """
    return call.runtime.save_ancestry(record)


# The active session of a task: the default one of `agent_loop` and `llm_call`. Spec: 10 §A2.5, §C9.


@builtin("__session_activate(id?: string, opts?: dict) -> string")
def activate(call: Call, id: str | None, opts: Dict) -> str:
    """Make a session the default of this task and the tasks it starts; return its id.

    `agent_loop` without `session_id` runs on it; `llm_call` shows its window and records in it. It is created
    unless there is a session of that id. Spec: 10 §A2.5, §C9.
    """
    runtime = call.runtime
    known = runtime.open(id, create=True) if id is not None else runtime.create(id=call.durable.new_id())
    context_of(call.vm).active = ActiveSession(known.id, runtime)
    call.durable.events.emit(hooks.ACTIVATED, {"session_id": known.id, "agent_name": known.info.agent_name})
    return known.id


@builtin("__session_deactivate() -> nil")
def deactivate(call: Call) -> None:
    """Leave this task without a default session. Spec: 10 §A2.5, §C9."""
    context = context_of(call.vm)
    active, context.active = context.active, None
    if active is not None:
        call.durable.events.emit(hooks.DEACTIVATED, {"session_id": active.id})


@builtin("__session_active() -> string | nil")
def active(call: Call) -> str | None:
    """Return the id of this task's default session, or nil. Spec: 10 §A2.5, §C9."""
    found = context_of(call.vm).active
    return None if found is None else found.id


# What a session keeps beside its messages. Spec: 10 §C3.1, §C8.1, §C9.


@builtin("__session_memo(id: string, opts?: dict) -> any")
def memo(call: Call, id: str, opts: Dict) -> Value:
    """Return what is remembered beside the messages; nil if nothing is. Spec: 10 §C3.1, §C9."""
    return call.session(id).memo


@builtin("__session_set_memo(id: string, value: any, opts?: dict) -> int")
def set_memo(call: Call, id: str, value: Value, opts: Dict) -> int:
    """Set the memo, and return its version. Spec: 10 §C3.1, §C9."""
    return call.session(id).set("memo", value)


@builtin("__session_get(id: string, key: string, default?: any, opts?: dict) -> any")
def get(call: Call, id: str, key: str, default: Value, opts: Dict) -> Value:
    """Return the value of a register, or `default` if it isn't set. Spec: 10 §C8.1, §C9."""
    return call.session(id).get(key, default)


@builtin(
    "__session_set(id: string | nil, key: string, value: any, opts?: dict) -> int",
    "source?: string, reason?: string, metadata?: dict",
)
def set_(call: Call, id: str | None, key: str, value: Value, opts: Dict) -> int:
    """Set a register, and return its version.

    Without an id: a setting of all sessions of this program that have no value of their own. Options:
    `source`, `reason`, `metadata`. Spec: 10 §C8.1, §C9.
    """
    if id is not None:
        return call.session(id).set(key, value, **opts)
    if not key.startswith(REGISTERS):
        raise invalid(f'{call.name}: without a session only settings can be set, and "{key}" is none')
    return call.durable.set_setting(key, value)
