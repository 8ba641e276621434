"""The requests of the API: what each of them takes, does and returns. Spec: 11 §1.3.

One table, which the server serves and `openapi.json` describes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, NamedTuple, TypeVar

from msgspec import Meta

from harnpy.client import types as t
from harnpy.client.types import Body
from harnpy.serve import streams

if TYPE_CHECKING:
    from harnpy.serve.service import Caller, Service

Q = TypeVar("Q")
B = TypeVar("B")
Run = Callable[["Call[Any, Any]"], Awaitable[Any]]
Stream = Callable[["Call[Any, Any]"], Awaitable[AsyncIterator[bytes]]]

#: The largest number that JSON readers everywhere take.
_LARGEST: Final = 2**53 - 1
Number = Annotated[int, Meta(ge=0, le=_LARGEST)]
Limit = Annotated[int, Meta(ge=1, le=1000)]
Words = Annotated[str, Meta(max_length=1000)]


class Nothing(Body):
    """No parameters; no body."""


class Call(NamedTuple, Generic[Q, B]):
    """One request. ``ids`` are those of its path; ``key``, ``last``: `Idempotency-Key`, `Last-Event-ID`."""

    service: Service
    caller: Caller
    ids: tuple[str, ...]
    query: Q
    body: B
    key: str | None = None
    last: int | None = None

    @property
    def id(self) -> str:
        return self.ids[0]


class Operation(NamedTuple):
    """``reply`` is the type of what it returns, None for nothing. ``stream`` answers who accepts events."""

    method: str
    path: str
    scope: str
    summary: str
    run: Run
    reply: Any = None
    query: type[Body] = Nothing
    body: type[Body] | None = None
    status: int = 200
    stream: Stream | None = None


def _on(
    method: str,
    path: str,
    scope: str,
    reply: Any = None,
    *,
    query: type[Body] = Nothing,
    body: type[Body] | None = None,
    status: int = 200,
    stream: Stream | None = None,
) -> Callable[[Run], Operation]:
    def declare(run: Run) -> Operation:
        summary = (run.__doc__ or "").strip().removesuffix(".")
        return Operation(method, path, scope, summary, run, reply, query, body, status, stream)

    return declare


_SESSION: Final = "/v1/sessions/{id}"


@_on("GET", f"{_SESSION}/window", "read", t.Window)
async def window(call: Call[Nothing, None]) -> bytes:
    """What the model would see."""
    return await call.service.window_text(call.caller, call.id)


# Events.


class EventQuery(Body):
    after: Number | None = None
    limit: Limit = 200
    #: Types, with commas between them.
    types: Words | None = None


def _types(text: str | None) -> list[str] | None:
    return None if text is None else [name for name in text.split(",") if name]


async def _watched(call: Call[EventQuery, None]) -> AsyncIterator[bytes]:
    after = call.query.after if call.last is None else call.last
    head = await call.service.opened(call.caller, call.id, after)
    after = head.version if after is None else after  # from now on, not from when somebody reads
    types = _types(call.query.types)
    return streams.frames(call.service.watch(call.caller, call.id, after=after, types=types))


@_on("GET", f"{_SESSION}/events", "read", t.EventList, query=EventQuery, stream=_watched)
async def events(call: Call[EventQuery, None]) -> t.EventList:
    """Events of the log behind a number; who accepts `text/event-stream` gets them as they come."""
    query = call.query
    return await call.service.events(
        call.caller, call.id, after=query.after or 0, limit=query.limit, types=_types(query.types)
    )


class HistoryQuery(Body):
    after: Number = 0
    limit: Limit = 200


@_on("GET", f"{_SESSION}/history", "read", t.History, query=HistoryQuery)
async def history(call: Call[HistoryQuery, None]) -> t.History:
    """What was said, also what a compaction has taken out of the window."""
    return await call.service.history(call.caller, call.id, after=call.query.after, limit=call.query.limit)


@_on("POST", f"{_SESSION}/inject", "write", t.Event, body=t.Inject, status=201)
async def inject(call: Call[Nothing, t.Inject]) -> t.Event:
    """Append a message, without a turn."""
    return await call.service.inject(call.caller, call.id, call.body)


# Turns.


class TurnReply(t.Reply):
    turn: t.Turn


async def _sent(call: Call[Nothing, t.Send]) -> AsyncIterator[bytes]:
    return streams.frames(
        await call.service.send_watched(call.caller, call.id, call.body, call.key, after=call.last)
    )


@_on("POST", f"{_SESSION}/send", "write", TurnReply, body=t.Send, status=202, stream=_sent)
async def send(call: Call[Nothing, t.Send]) -> TurnReply | t.Turn:
    """Begin a turn, once for its `Idempotency-Key`; with `wait`, return the Turn once it has ended."""
    turn = await call.service.send(call.caller, call.id, call.body, call.key)
    return turn if call.body.wait else TurnReply(turn=turn)


@_on("GET", f"{_SESSION}/turns/{{key}}", "read", t.Turn)
async def turn(call: Call[Nothing, None]) -> t.Turn:
    """What became of the turn of a key."""
    return await call.service.turn(call.caller, *call.ids)


class Cancelled(t.Reply):
    cancelled: bool


@_on("POST", f"{_SESSION}/cancel", "write", Cancelled)
async def cancel(call: Call[Nothing, None]) -> Cancelled:
    """Cancel the running turn."""
    return Cancelled(cancelled=await call.service.cancel(call.caller, call.id))


# Clients.


@_on("GET", f"{_SESSION}/clients", "read", t.ClientList)
async def clients(call: Call[Nothing, None]) -> t.ClientList:
    """Who is attached, and who controls the session."""
    return await call.service.clients(call.caller, call.id)


@_on("POST", f"{_SESSION}/attach", "read", t.Attached, body=t.Attach)
async def attach(call: Call[Nothing, t.Attach]) -> Any:
    """Attach a client; to control the session takes the scope `write`."""
    return await call.service.attach(call.caller, call.id, call.body)


@_on("POST", f"{_SESSION}/takeover", "write", t.Attached, body=t.ClientName)
async def takeover(call: Call[Nothing, t.ClientName]) -> Any:
    """Make a client the controller."""
    return await call.service.takeover(call.caller, call.id, call.body.client)


@_on("POST", f"{_SESSION}/heartbeat", "read", t.Attached, body=t.ClientName)
async def heartbeat(call: Call[Nothing, t.ClientName]) -> Any:
    """Say that a client is still there."""
    return await call.service.heartbeat(call.caller, call.id, call.body.client)


@_on("POST", f"{_SESSION}/detach", "read", t.Attached, body=t.ClientName)
async def detach(call: Call[Nothing, t.ClientName]) -> Any:
    """Take a client out."""
    return await call.service.detach(call.caller, call.id, call.body.client)


# Sessions.


class SessionQuery(Body):
    status: Words | None = None
    agent: Words | None = None
    parent: Words | None = None
    order: Words = "updated"
    limit: Limit = 100
    #: The `next` of the page before.
    after: Words | None = None


@_on("GET", "/v1/sessions", "read", t.SessionList, query=SessionQuery)
async def sessions(call: Call[SessionQuery, None]) -> t.SessionList:
    """The sessions that the caller sees, a page of them."""
    query = call.query
    return await call.service.sessions(
        call.caller,
        status=query.status,
        agent=query.agent,
        parent=query.parent,
        order=query.order,
        limit=query.limit,
        after=query.after,
    )


@_on("POST", "/v1/sessions", "write", t.Session, body=t.CreateSession, status=201)
async def create(call: Call[Nothing, t.CreateSession]) -> t.Session:
    """Create a session."""
    return await call.service.create(call.caller, call.body)


@_on("GET", _SESSION, "read", t.Session)
async def session(call: Call[Nothing, None]) -> t.Session:
    """A session, with who is attached, what runs, what waits, and its relatives."""
    return await call.service.session(call.caller, call.id)


@_on("DELETE", _SESSION, "admin", status=204)
async def delete(call: Call[Nothing, None]) -> None:
    """Hide a session for good."""
    await call.service.delete(call.caller, call.id)


@_on("POST", f"{_SESSION}/fork", "write", t.Session, body=t.Fork, status=201)
async def fork(call: Call[Nothing, t.Fork]) -> t.Session:
    """Create a session with this one's past."""
    return await call.service.fork(call.caller, call.id, call.body)


@_on("POST", f"{_SESSION}/rewind", "write", t.Session, body=t.Rewind)
async def rewind(call: Call[Nothing, t.Rewind]) -> t.Session:
    """Go on behind an earlier event."""
    return await call.service.rewind(call.caller, call.id, call.body)


class Compacted(t.Reply):
    report: dict[str, t.Json] | None


@_on("POST", f"{_SESSION}/compact", "write", Compacted, body=t.Compact)
async def compact(call: Call[Nothing, t.Compact]) -> Compacted:
    """Make the window smaller, if that is due or a strategy is named."""
    return Compacted(report=await call.service.compact(call.caller, call.id, call.body))


@_on("POST", f"{_SESSION}/close", "write", t.Session)
async def close(call: Call[Nothing, None]) -> t.Session:
    """Say that the work is done."""
    return await call.service.close_session(call.caller, call.id)


class CompareQuery(Body):
    limit: Limit = 200


@_on("GET", f"{_SESSION}/compare/{{other}}", "read", t.Comparison, query=CompareQuery)
async def compare(call: Call[CompareQuery, None]) -> t.Comparison:
    """Two sessions from where they part: the first entries of each side."""
    return await call.service.compare(call.caller, *call.ids, limit=call.query.limit)


# Shares.


@_on("GET", f"{_SESSION}/shares", "read", t.ShareList)
async def shares(call: Call[Nothing, None]) -> t.ShareList:
    """With whom a session is shared, and for what."""
    return await call.service.shares(call.caller, call.id)


@_on("PUT", f"{_SESSION}/shares/{{principal}}", "write", t.ShareList, body=t.Share)
async def share(call: Call[Nothing, t.Share]) -> t.ShareList:
    """Share a session with a principal, for these scopes; only its owner may."""
    return await call.service.share(call.caller, call.id, call.ids[1], call.body.scopes)


@_on("DELETE", f"{_SESSION}/shares/{{principal}}", "write", t.ShareList)
async def unshare(call: Call[Nothing, None]) -> t.ShareList:
    """Take a share back."""
    return await call.service.unshare(call.caller, *call.ids)


# Callers, agents, people.


@_on("GET", "/v1/me", "read", t.Me)
async def me(call: Call[Nothing, None]) -> t.Me:
    """Who calls, and what that one may do."""
    return await call.service.me(call.caller)


@_on("GET", "/v1/agents", "read", t.AgentList)
async def agents(call: Call[Nothing, None]) -> t.AgentList:
    """The agents of the server."""
    return await call.service.agents(call.caller)


class RequestReply(t.Reply):
    request: t.Request


class RequestQuery(Body):
    session: Words | None = None


@_on("GET", "/v1/requests", "read", t.RequestList, query=RequestQuery)
async def requests(call: Call[RequestQuery, None]) -> t.RequestList:
    """What waits for a person."""
    return await call.service.requests(call.caller, call.query.session)


@_on("POST", "/v1/requests/{id}", "approve", RequestReply, body=t.Answer)
async def answer(call: Call[Nothing, t.Answer]) -> RequestReply:
    """Answer what waits for a person."""
    return RequestReply(request=await call.service.answer(call.caller, call.id, call.body))


class SearchQuery(Body):
    q: Words
    session: Words | None = None
    types: Words | None = None
    limit: Limit = 50


@_on("GET", "/v1/search", "read", t.HitList, query=SearchQuery)
async def search(call: Call[SearchQuery, None]) -> t.HitList:
    """Events whose text holds every word of `q`."""
    query = call.query
    return await call.service.search(
        call.caller, query.q, session=query.session, types=_types(query.types), limit=query.limit
    )


# Runs and waitpoints.


class RunQuery(Body):
    status: Words | None = None
    limit: Limit = 100
    after: Words | None = None


@_on("GET", "/v1/runs", "read", t.RunList, query=RunQuery)
async def runs(call: Call[RunQuery, None]) -> t.RunList:
    """The runs that the caller sees, the newest first."""
    query = call.query
    return await call.service.runs(call.caller, status=query.status, limit=query.limit, after=query.after)


@_on("POST", "/v1/runs", "write", t.Run, body=t.StartRun, status=201)
async def start(call: Call[Nothing, t.StartRun]) -> t.Run:
    """Start a run of an agent that is a program."""
    return await call.service.start(call.caller, call.body)


@_on("GET", "/v1/runs/{id}", "read", t.Run)
async def run(call: Call[Nothing, None]) -> t.Run:
    """A run, with what it came to."""
    return await call.service.run(call.caller, call.id)


class StepList(t.Reply):
    steps: list[t.RunStep]


class StepQuery(Body):
    after: Number = 0


async def _stepped(call: Call[StepQuery, None]) -> AsyncIterator[bytes]:
    after = call.query.after if call.last is None else call.last
    await call.service.run(call.caller, call.id)
    return streams.step_frames(call.service.run_events(call.caller, call.id, after=after))


@_on("GET", "/v1/runs/{id}/events", "read", StepList, query=StepQuery, stream=_stepped)
async def steps(call: Call[StepQuery, None]) -> StepList:
    """The steps of a run; who accepts `text/event-stream` gets them as they come, until it ends."""
    return StepList(steps=await call.service.run_steps(call.caller, call.id, after=call.query.after))


@_on("POST", "/v1/runs/{id}/steer", "write", t.Run, body=t.Steer)
async def steer(call: Call[Nothing, t.Steer]) -> t.Run:
    """Tell the agents of a run something."""
    return await call.service.steer(call.caller, call.id, call.body)


@_on("POST", "/v1/runs/{id}/cancel", "write", t.Run)
async def cancel_run(call: Call[Nothing, None]) -> t.Run:
    """Cancel a run."""
    return await call.service.cancel_run(call.caller, call.id)


@_on("POST", "/v1/runs/{id}/resume", "write", t.Run)
async def resume(call: Call[Nothing, None]) -> t.Run:
    """Have a run go on that failed, was cancelled, or lost its worker."""
    return await call.service.resume(call.caller, call.id)


@_on("GET", "/v1/waitpoints", "read", t.WaitpointList)
async def waitpoints(call: Call[Nothing, None]) -> t.WaitpointList:
    """What runs wait for."""
    return await call.service.waitpoints(call.caller)


class WaitpointReply(t.Reply):
    waitpoint: t.Waitpoint


@_on("POST", "/v1/waitpoints/{id}", "approve", WaitpointReply, body=t.CompleteWaitpoint)
async def complete(call: Call[Nothing, t.CompleteWaitpoint]) -> WaitpointReply:
    """Complete a waitpoint."""
    return WaitpointReply(waitpoint=await call.service.complete_waitpoint(call.caller, call.id, call.body))


def table() -> list[Operation]:
    """Return all of them, in their order here."""
    return [each for each in globals().values() if isinstance(each, Operation)]
