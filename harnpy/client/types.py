"""What the HTTP API takes and returns: one type for the server, its OpenAPI document, and clients.

Requests refuse unknown keys; replies may gain keys, and clients pass over those that they don't know.
Times are RFC 3339 text in UTC, costs are in USD. Spec: 11 §1.3.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

Json = Any
Scope = Literal["read", "write", "approve", "admin", "read:all", "approve:all", "all"]
#: What a session can be shared for.
ShareScope = Literal["read", "write", "approve"]
#: What a caller may do with a session; `own`: fork, rewind, compact, close and share it.
Right = Literal["read", "write", "approve", "own", "admin"]
Mode = Literal["observer", "controller"]


class Reply(Struct, omit_defaults=False, kw_only=True):
    """What the server returns."""


class Body(Struct, forbid_unknown_fields=True, kw_only=True):
    """What a client sends."""


# Errors.


class Problem(Reply):
    code: str
    message: str


class Failure(Reply):
    error: Problem


# Callers and agents.


class Limits(Reply):
    requests_per_minute: int | None = None
    cost_per_day: float | None = None


class Me(Reply):
    principal: str
    scopes: list[Scope]
    limits: Limits = field(default_factory=Limits)


class Agent(Reply):
    name: str
    kind: Literal["definition", "program"]
    description: str = ""


class AgentList(Reply):
    agents: list[Agent]


# Sessions.


class Info(Reply):
    """What lists show of a session."""

    id: str
    status: str
    execution: str
    agent: str
    label: str
    owner: str | None
    parent: str | None
    #: The number of the parent's event behind which it goes on; None without a parent.
    fork_seq: int | None
    depth: int
    #: How many there are in the window; None in lists.
    messages: int | None
    cost: float
    created_at: str
    updated_at: str
    seq: int
    revision: int
    metadata: dict[str, Json] = field(default_factory=dict)


class Client(Reply):
    """A live client (08 §1.10). ``stale``: it wasn't heard of for longer than controllers may be silent."""

    client_id: str
    mode: Mode
    attached_at: str
    last_seen_at: str
    metadata: dict[str, Json] = field(default_factory=dict)
    stale: bool = False
    #: Whose client it is; None for one that a program has attached.
    principal: str | None = None


class Request(Reply):
    """A question or an approval that waits for a person."""

    id: str
    session: str | None
    kind: Literal["approval", "question"]
    prompt: str
    since: str
    tool: str | None = None
    #: The call's arguments, as JSON text.
    args: str | None = None
    run: str | None = None


class Session(Info):
    clients: list[Client] = field(default_factory=list)
    controller: str | None = None
    #: The key of the turn that runs.
    running: str | None = None
    requests: list[Request] = field(default_factory=list)
    #: Relatives that the caller may see.
    lineage: list[Info] = field(default_factory=list)
    children: list[Info] = field(default_factory=list)
    #: With whom it is shared, and for what.
    shares: dict[str, list[ShareScope]] = field(default_factory=dict)
    #: What the caller may do with it.
    may: list[Right] = field(default_factory=list)

    @property
    def waiting(self) -> str | None:
        """Return for whom a turn waits, in words; None where nothing is asked."""
        if not self.requests:
            return None
        return "waits for you" if "approve" in self.may else "waits for somebody else"


class SessionList(Reply):
    sessions: list[Info]
    next: str | None = None


class Window(Reply):
    messages: list[dict[str, Json]]
    tokens: int
    seq: int


class Entry(Reply):
    """A message of the history. ``content`` is a text or blocks."""

    id: str
    seq: int
    type: str
    role: str
    content: Json
    time: str
    turn: int | None = None
    cost: float | None = None
    name: str | None = None
    tool_calls: list[dict[str, Json]] | None = None
    tool_call_id: str | None = None
    reasoning: str | None = None
    metadata: dict[str, Json] | None = None


class History(Reply):
    entries: list[Entry]
    next: int | None = None


class Event(Reply):
    id: str
    seq: int
    type: str
    time: str
    turn: int | None
    cost: float | None
    data: dict[str, Json]


class EventList(Reply):
    events: list[Event]
    next: int | None = None


class Chunk(Reply):
    """A piece of the answer that is being made; ``start``: all of it so far."""

    turn: int
    text: str
    start: bool = False


class Comparison(Reply):
    """Two sessions from where they part: the last event that both have, and the entries behind it."""

    common_seq: int
    common_id: str | None
    left: list[Entry]
    right: list[Entry]
    #: Of a side that has more: the `after` of its history that comes next.
    left_next: int | None = None
    right_next: int | None = None


class ClientList(Reply):
    clients: list[Client]
    controller: str | None = None


class Attached(Reply):
    """What an attach, takeover, heartbeat or detach has come to (08 §1.10)."""

    ok: bool
    session_id: str
    client_id: str
    mode: Mode
    client: dict[str, Json]
    live_controller_id: str | None
    previous_controller_id: str | None


class ShareList(Reply):
    """With whom a session is shared, and for what."""

    shares: dict[str, list[ShareScope]]


class RequestList(Reply):
    requests: list[Request]


class Turn(Reply):
    key: str
    status: Literal["running", "completed", "failed", "stopped", "waiting"]
    text: str = ""
    usage: dict[str, Json] | None = None
    cost: float = 0.0
    steps: int = 0
    stop_reason: str | None = None
    error: str | None = None


class Hit(Reply):
    session: str
    seq: int
    type: str
    text: str


class HitList(Reply):
    hits: list[Hit]


class Run(Reply):
    id: str
    name: str
    kind: str
    status: str
    steps: int
    created_at: str
    started_at: str | None
    ended_at: str | None
    output: Json = None
    error: str | None = None
    #: Whether it hasn't ended and nobody works on it. Lists don't look.
    left: bool = False


class RunList(Reply):
    runs: list[Run]
    next: str | None = None


class RunStep(Reply):
    n: int
    key: str
    output: Json
    time: str


class Waitpoint(Reply):
    id: str
    status: str
    since: str
    value: Json = None
    by: str | None = None


class WaitpointList(Reply):
    waitpoints: list[Waitpoint]


# Bodies.


class CreateSession(Body):
    id: str | None = None
    agent: str | None = None
    system: str | None = None
    label: str | None = None
    seed: list[dict[str, Json]] = field(default_factory=list)
    metadata: dict[str, Json] = field(default_factory=dict)


class Inject(Body):
    content: Json
    role: Literal["user", "system", "assistant"] = "user"
    client: str | None = None


class Send(Body):
    """``prompt`` is a text, a message, messages, or null for what is there."""

    prompt: Json
    agent: str | None = None
    client: str | None = None
    wait: bool = False
    timeout: float | None = None
    budget: dict[str, Json] | None = None


class Fork(Body):
    at: int | str | None = None
    id: str | None = None
    label: str = ""


class Rewind(Body):
    to: int | str


class Compact(Body):
    strategy: str | None = None


class Share(Body):
    scopes: list[ShareScope]


class Attach(Body):
    client: str
    mode: Mode = "observer"
    takeover: bool = False
    metadata: dict[str, Json] = field(default_factory=dict)


class ClientName(Body):
    client: str


class Answer(Body):
    """A ``decision`` of an approval, or the ``answer`` to a question."""

    decision: Literal["allow", "deny"] | None = None
    reason: str = ""
    answer: Json | UnsetType = UNSET


class StartRun(Body):
    agent: str
    params: dict[str, Json] = field(default_factory=dict)
    id: str | None = None


class Steer(Body):
    message: str


class CompleteWaitpoint(Body):
    value: Json = None
