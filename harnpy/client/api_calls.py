"""The requests of the HTTP API, a function each: what it takes, and the `Call` that asks for it.

The sync and the async client have each as a method with these parameters, which returns the reply.
Spec: 11 §1.3, §3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar
from urllib.parse import quote

from harnpy.client import types as t

if TYPE_CHECKING:
    from harnpy.client.types import Json

R = TypeVar("R")


class Call(NamedTuple, Generic[R]):
    """A request, and the type of its reply: of all of it, or of its ``part``.

    ``repeats``: carried out twice, it comes to the same; ``key``, the name of a turn, makes it so. ``waits``:
    the reply may take as long as it likes.
    """

    method: str
    path: str
    reply: type[R]
    query: Mapping[str, Any] = {}
    body: t.Body | None = None
    part: str | None = None
    key: str | None = None
    repeats: bool = False
    waits: bool = False


def _get(path: str, reply: type[R], **query: Any) -> Call[R]:
    given = {name: _text(value) for name, value in query.items() if value is not None}
    return Call("GET", path, reply, given, repeats=True)


def _post(path: str, reply: type[R], body: t.Body | None = None, part: str | None = None) -> Call[R]:
    return Call("POST", path, reply, body=body, part=part)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ",".join(value) if isinstance(value, Iterable) else str(value)


def path_of(*parts: str) -> str:
    """Return the path of parts that may hold anything. Raise ValueError for a part that no path can hold."""
    for part in parts:
        if part in ("", ".", ".."):
            raise ValueError(f"there is no id {part!r}: ids are what `list`, `runs` and `requests` show")
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


# The server, and who calls.


def me() -> Call[t.Me]:
    """Return who this client is to the server, and what it may do."""
    return _get("/v1/me", t.Me)


def agents() -> Call[t.AgentList]:
    """Return the agents that answer on this server."""
    return _get("/v1/agents", t.AgentList)


# Sessions.


def list_sessions(
    status: str | None = None,
    *,
    agent: str | None = None,
    parent: str | None = None,
    order: str | None = None,
    limit: int | None = None,
    after: str | None = None,
) -> Call[t.SessionList]:
    """Return a page of sessions; its ``next`` is ``after`` of the next page."""
    query = {
        "status": status,
        "agent": agent,
        "parent": parent,
        "order": order,
        "limit": limit,
        "after": after,
    }
    return _get("/v1/sessions", t.SessionList, **query)


def create(
    agent: str | None = None,
    *,
    id: str | None = None,
    system: str | None = None,
    label: str | None = None,
    seed: Iterable[dict[str, Json]] = (),
    metadata: Mapping[str, Json] | None = None,
) -> Call[t.Session]:
    """Create a session, in which ``agent`` answers (None: the server's first one), and return it.

    ``seed`` are its first messages.
    """
    body = t.CreateSession(
        id=id, agent=agent, system=system, label=label, seed=[*seed], metadata=dict(metadata or {})
    )
    return _post("/v1/sessions", t.Session, body)


def get(id: str) -> Call[t.Session]:
    """Return a session with its clients, the turn that runs, its open requests and its relatives."""
    return _get(path_of("sessions", id), t.Session)


def info(id: str) -> Call[t.Info]:
    """Return what lists show of a session."""
    return _get(path_of("sessions", id), t.Info)


def window(id: str) -> Call[t.Window]:
    """Return what the model would see of a session."""
    return _get(path_of("sessions", id, "window"), t.Window)


def history(id: str, after: int | None = None, limit: int | None = None) -> Call[t.History]:
    """Return the messages behind the number ``after``, also those that have left the window."""
    return _get(path_of("sessions", id, "history"), t.History, after=after, limit=limit)


def events(
    id: str, after: int | None = None, limit: int | None = None, types: Iterable[str] | None = None
) -> Call[t.EventList]:
    """Return events behind the number ``after``."""
    return _get(path_of("sessions", id, "events"), t.EventList, after=after, limit=limit, types=types)


def inject(
    id: str,
    content: Json,
    *,
    role: Literal["user", "system", "assistant"] = "user",
    client: str | None = None,
) -> Call[t.Event]:
    """Append a message without a turn, and return its event. ``role``: user, system or assistant."""
    body = t.Inject(content=content, role=role, client=client)
    return _post(path_of("sessions", id, "inject"), t.Event, body)


def send(
    id: str,
    prompt: Json,
    *,
    agent: str | None = None,
    client: str | None = None,
    wait: bool = True,
    timeout: float | None = None,
    budget: Mapping[str, Json] | None = None,
    key: str | None = None,
) -> Call[t.Turn]:
    """Send a prompt, and return the turn once it has ended; without ``wait`` once it has begun.

    ``prompt`` is a text, a message, messages, or None for what is there. The same ``key`` (None: a new one)
    comes to the same turn, so a connection that breaks begins no second one. ``client`` is who sends: where a
    session has a controller, only that one may. Without ``client`` it is refused while a client of another
    principal is in control. ``timeout`` (seconds) and ``budget`` are the turn's.
    """
    limits = None if budget is None else dict(budget)
    body = t.Send(prompt=prompt, agent=agent, client=client, wait=wait, timeout=timeout, budget=limits)
    path, part = path_of("sessions", id, "send"), None if wait else "turn"
    return Call("POST", path, t.Turn, body=body, part=part, key=key or new_key(), repeats=True, waits=wait)


def new_key() -> str:
    """Return the name of a turn that is yet to begin."""
    from harnpy.world.ids import RealIds

    return RealIds().new()


def turn(id: str, key: str) -> Call[t.Turn]:
    """Return the turn of that key, or how far it is."""
    return _get(path_of("sessions", id, "turns", key), t.Turn)


def cancel(id: str) -> Call[bool]:
    """Cancel the turn of a session, and return whether one was running."""
    return _post(path_of("sessions", id, "cancel"), bool, part="cancelled")


def fork(
    id: str, at: int | str | None = None, *, new_id: str | None = None, label: str = ""
) -> Call[t.Session]:
    """Return a new session with the same past, up to the event ``at`` (its id or number; None: all of it)."""
    return _post(path_of("sessions", id, "fork"), t.Session, t.Fork(at=at, id=new_id, label=label))


def rewind(id: str, to: int | str) -> Call[t.Session]:
    """Go on from the event ``to``, its id or number: what is behind it leaves the window."""
    return _post(path_of("sessions", id, "rewind"), t.Session, t.Rewind(to=to))


def compact(id: str, strategy: str | None = None) -> Call[dict[str, Json] | None]:
    """Make the window smaller, if that is due or a strategy is named, and return what was done."""
    body = t.Compact(strategy=strategy)
    reply: Any = dict[str, Any] | None
    return _post(path_of("sessions", id, "compact"), reply, body, part="report")


def close(id: str) -> Call[t.Session]:
    """Complete a session."""
    return _post(path_of("sessions", id, "close"), t.Session)


def delete(id: str) -> Call[None]:
    """Hide a session from everybody. Needs the scope `admin`."""
    return Call("DELETE", path_of("sessions", id), NoneType)


def shares(id: str) -> Call[dict[str, list[t.ShareScope]]]:
    """Return with whom a session is shared, and for what."""
    reply: Any = dict[str, list[t.ShareScope]]
    return _get(path_of("sessions", id, "shares"), reply)._replace(part="shares")


def share(id: str, principal: str, *scopes: t.ShareScope) -> Call[dict[str, list[t.ShareScope]]]:
    """Share a session with a principal, for ``read`` (when none is given), ``write`` or ``approve``.

    These scopes replace those that it had. Only the session's owner may. Returns all shares.
    """
    body = t.Share(scopes=[*scopes] or ["read"])
    return _shared("PUT", id, principal, body)


def unshare(id: str, principal: str) -> Call[dict[str, list[t.ShareScope]]]:
    """Take a share back, at once also in open streams. Returns the shares that are left."""
    return _shared("DELETE", id, principal)


def _shared(
    method: str, id: str, principal: str, body: t.Body | None = None
) -> Call[dict[str, list[t.ShareScope]]]:
    reply: Any = dict[str, list[t.ShareScope]]
    path = path_of("sessions", id, "shares", principal)
    return Call(method, path, reply, body=body, part="shares", repeats=True)


def compare(id: str, other: str, *, limit: int = 200) -> Call[t.Comparison]:
    """Return two sessions from where they part."""
    return _get(path_of("sessions", id, "compare", other), t.Comparison, limit=limit)


def search(
    query: str, *, session: str | None = None, types: Iterable[str] | None = None, limit: int | None = None
) -> Call[t.HitList]:
    """Return what was said with these words."""
    return _get("/v1/search", t.HitList, q=query, session=session, types=types, limit=limit)


# Live clients (08 §1.10).


def clients(id: str) -> Call[t.ClientList]:
    """Return who is attached to a session, and who controls it."""
    return _get(path_of("sessions", id, "clients"), t.ClientList)


def attach(
    id: str,
    client: str,
    *,
    mode: t.Mode = "observer",
    takeover: bool = False,
    metadata: Mapping[str, Json] | None = None,
) -> Call[t.Attached]:
    """Attach a client, or change an attached one. ``takeover``: also where another one is in control."""
    body = t.Attach(client=client, mode=mode, takeover=takeover, metadata=dict(metadata or {}))
    return _post(path_of("sessions", id, "attach"), t.Attached, body)._replace(repeats=True)


def _of_client(verb: str, id: str, client: str) -> Call[t.Attached]:
    return _post(path_of("sessions", id, verb), t.Attached, t.ClientName(client=client))


def takeover(id: str, client: str) -> Call[t.Attached]:
    """Make a client the controller; the one before it becomes an observer."""
    return _of_client("takeover", id, client)._replace(repeats=True)


def heartbeat(id: str, client: str) -> Call[t.Attached]:
    """Say that a client is still there: a controller that is silent for 30 s may be released."""
    return _of_client("heartbeat", id, client)._replace(repeats=True)


def detach(id: str, client: str) -> Call[t.Attached]:
    """Remove a client. A controller leaves no successor."""
    return _of_client("detach", id, client)


# Requests that wait for a person.


def requests(session: str | None = None) -> Call[t.RequestList]:
    """Return the questions and approvals that are open, of one session or of all."""
    return _get("/v1/requests", t.RequestList, session=session)


def _answered(request_id: str, body: t.Answer) -> Call[t.Request]:
    return _post(path_of("requests", request_id), t.Request, body, part="request")


def allow(request_id: str, reason: str = "") -> Call[t.Request]:
    """Approve what a request asks for."""
    return _answered(request_id, t.Answer(decision="allow", reason=reason))


def deny(request_id: str, reason: str = "") -> Call[t.Request]:
    """Deny what a request asks for; the model reads the reason."""
    return _answered(request_id, t.Answer(decision="deny", reason=reason))


def answer(request_id: str, answer: Json) -> Call[t.Request]:
    """Answer a question."""
    return _answered(request_id, t.Answer(answer=answer))


# Runs and waitpoints.


def runs(status: str | None = None, *, limit: int | None = None, after: str | None = None) -> Call[t.RunList]:
    """Return a page of the durable runs; its ``next`` is ``after`` of the next page."""
    return _get("/v1/runs", t.RunList, status=status, limit=limit, after=after)


def start(agent: str, params: Mapping[str, Json] | None = None, *, id: str | None = None) -> Call[t.Run]:
    """Start a durable run of an agent that is a program. An ``id`` of a run that is there is that run."""
    return _post("/v1/runs", t.Run, t.StartRun(agent=agent, params=dict(params or {}), id=id))


def run(id: str) -> Call[t.Run]:
    """Return a run."""
    return _get(path_of("runs", id), t.Run)


def steps(id: str, after: int | None = None) -> Call[list[t.RunStep]]:
    """Return the steps of a run behind the number ``after``."""
    return _get(path_of("runs", id, "events"), list[t.RunStep], after=after)._replace(part="steps")


def steer(id: str, message: str) -> Call[t.Run]:
    """Send a message to a run, which reads it when it looks for one."""
    return _post(path_of("runs", id, "steer"), t.Run, t.Steer(message=message))


def cancel_run(id: str) -> Call[t.Run]:
    """Cancel a run."""
    return _post(path_of("runs", id, "cancel"), t.Run)


def resume(id: str) -> Call[t.Run]:
    """Take up a run that was interrupted."""
    return _post(path_of("runs", id, "resume"), t.Run)


def waitpoints() -> Call[t.WaitpointList]:
    """Return what runs wait for."""
    return _get("/v1/waitpoints", t.WaitpointList)


def complete(id: str, value: Json = None) -> Call[t.Waitpoint]:
    """Complete a waitpoint with a value."""
    body = t.CompleteWaitpoint(value=value)
    return _post(path_of("waitpoints", id), t.Waitpoint, body, part="waitpoint")
