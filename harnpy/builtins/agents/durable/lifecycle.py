"""Which sessions there are, and what is known of them. Spec: 10 §C9."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.durable.errors import invalid
from harnpy.builtins.bridge.durable.verbs import builtin
from harnpy.session.agents.definition import AgentDef
from harnpy.session.errors import SessionNotFound
from harnpy.session.runtime.queries import SessionQuery
from harnpy.storage.opening import shown

if TYPE_CHECKING:
    from harnpy.builtins.bridge.durable.verbs import Call

    Dict = dict[str, Any]

_ORDERS = ("updated", "created", "id")


@builtin("__session_store(url?: string) -> string")
def store(call: Call, url: str | None) -> str:
    """Set the store of this program's sessions, if a URL is given. Return its URL."""
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
    """Make a session, and return its info."""
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
    """What lists show of a session, and who of this program listens to it; nil when there is none."""
    try:
        return call.shown(call.info(id))
    except SessionNotFound:
        return None


@builtin("__session_exists(id: string, opts?: dict) -> bool")
def exists(call: Call, id: str, opts: Dict) -> bool:
    """Whether the store has a session of that id."""
    return call.runtime.exists(id)


@builtin("__session_seq(id: string, opts?: dict) -> int")
def seq(call: Call, id: str, opts: Dict) -> int:
    """The number of a session's last event."""
    return call.session(id).seq


@builtin("__session_revision(id: string, opts?: dict) -> int")
def revision(call: Call, id: str, opts: Dict) -> int:
    """How many times a session was saved."""
    return call.info(id).revision


@builtin("__session_cost(id: string, opts?: dict) -> float")
def cost(call: Call, id: str, opts: Dict) -> float:
    """What a session has cost, in USD."""
    return call.session(id).total_cost


@builtin(
    "__session_list(filter?: dict) -> dict",
    "status?: string, agent?: string, parent?: string, deleted?: bool, limit?: int, after?: string, "
    "order?: string",
)
def list_(call: Call, filter: Dict) -> Dict:
    """The sessions of a store, a page of them."""
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
    """Hide a session from lists, or drop its log; false when there is none."""
    runtime, hard = call.runtime, bool(opts.get("hard"))
    try:
        call.alone(id, partial(runtime.delete, id, hard=hard))
    except SessionNotFound:
        return False
    if hard:
        call.durable.listening.over(id)
    return True
