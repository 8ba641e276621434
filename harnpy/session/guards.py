"""Guards of a turn: budgets, approvals of tool calls, questions to people.

Spec: 10 §A1.17, §A1.18, §C7, §C16.1.
"""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from harnpy.faults import is_cancelled
from harnpy.session import events as kinds
from harnpy.session.errors import ApprovalDenied, ApprovalError, BudgetExceeded, InvalidArgument, SessionBusy
from harnpy.session.events import EXTERNAL_INPUT, EventDraft
from harnpy.session.turns import Fact, usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from harnpy.session.agents import Budget
    from harnpy.session.events import Event
    from harnpy.session.log import Session

    Answer = str | tuple[str, str] | None
    Policy = Callable[["ApprovalRequest"], Answer | Awaitable[Answer]]
    Audit = Callable[[str, dict[str, Any]], object]
    Ask = Callable[[str], str | Awaitable[str]]

# Whether a turn may go on, by what it has taken so far. Spec: 10 §A1.17.


def check_budget(budget: Budget, events: Sequence[Event], steps: int, seconds: float, now: float) -> None:
    """Raise `BudgetExceeded` if a turn of these events can't have another step.

    It has had ``steps``, and has taken ``seconds``; ``now`` is in seconds since 1970.
    """
    cost = float(sum(event.cost for event in events))
    tokens = _tokens(usage(Fact(event.type, event.body) for event in events) or {})
    problem = None
    if budget.max_cost is not None and cost >= budget.max_cost:
        problem = f"budget exceeded: {cost:.4f} >= {budget.max_cost:.4f}"
    elif budget.max_tokens is not None and tokens > budget.max_tokens:
        problem = f"token budget exceeded: {tokens} > {budget.max_tokens}"
    elif budget.max_steps is not None and steps >= budget.max_steps:
        problem = f"step budget exceeded: {steps} >= {budget.max_steps}"
    elif budget.max_seconds is not None and seconds >= budget.max_seconds:
        problem = f"time budget exceeded: {seconds:.1f}s >= {budget.max_seconds:g}s"
    elif budget.is_past(now):
        problem = f"time budget exceeded: the deadline was {budget.deadline}"
    if problem is not None:
        raise BudgetExceeded(problem, events[0].session_id if events else None)


def _tokens(used: dict[str, Any]) -> int:
    total = used.get("total_tokens")
    if total is None:
        total = used.get("input_tokens", 0) + used.get("output_tokens", 0)
    return int(total)


# Whether a tool may be called: a policy says it, or a person. Spec: 10 §A1.18, §C16.1.


ALLOW, DENY = "allow", "deny"


@dataclass(frozen=True)
class ApprovalRequest:
    """A request for approval. ``args`` are the call's, as JSON text."""

    id: str
    session_id: str
    tool: str
    args: str = ""
    category: str | None = None
    operation: str | None = None
    resource: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """Return it as its event has it."""
        return {key: value for key, value in asdict(self).items() if value not in (None, {})}


class Approval(NamedTuple):
    """The answer: ``allow`` or ``deny``. ``automated``: the policy's. ``reviewer``: who gave it."""

    decision: str
    reason: str = ""
    automated: bool = False
    reviewer: str | None = None


class ApprovalGate:
    """Asks a policy, then a person, and logs what is asked and answered.

    ``policy(request)`` returns ``allow``, ``deny``, either with a reason as a pair, or None for what a person
    must decide; it may be async. After ``threshold`` denials of the policy in a row (0: never) everything
    goes to a person, until one allows something or `reset`. ``audit(kind, data)`` is told of it all.
    """

    def __init__(
        self, policy: Policy | None = None, *, threshold: int = 3, audit: Audit | None = None
    ) -> None:
        self._policy = policy
        self._threshold = threshold
        self._audit = audit
        self._denials = 0
        self._waiting: dict[str, tuple[ApprovalRequest, Future[Approval]]] = {}

    @property
    def pending(self) -> list[ApprovalRequest]:
        """Return the requests that wait for a person."""
        return [request for request, _ in list(self._waiting.values())]

    def resolve(self, id: str, decision: str, reason: str = "", reviewer: str | None = None) -> None:
        """Answer a request as a person, who is the ``reviewer``. From any thread.

        Raises `ApprovalError` for one that doesn't wait, `InvalidArgument` for another answer than ``allow``
        or ``deny``.
        """
        if decision not in (ALLOW, DENY):
            raise InvalidArgument(_undecided(decision))
        known = self._waiting.pop(id, None)
        if known is None:
            raise ApprovalError("approval request not found")
        known[1].set_result(Approval(decision, reason, reviewer=reviewer))

    def reset(self) -> None:
        """Let the policy decide again."""
        self._denials = 0

    async def request(
        self,
        session: Session,
        tool: str,
        args: str = "",
        *,
        category: str | None = None,
        operation: str | None = None,
        resource: str | None = None,
        metadata: dict[str, Any] | None = None,
        turn: Any = None,
    ) -> Approval:
        """Return what became of a request. Raises what the policy raises, `InvalidArgument` for an answer of
        it that is none."""
        id = session.origin.world.ids.new()
        request = ApprovalRequest(id, session.id, tool, args, category, operation, resource, metadata or {})
        self._log(session, kinds.APPROVAL_REQUESTED, request.data(), "security.approval.requested", turn)
        try:
            approval = _replayed(request, turn) or await self.decide(request)
        except BaseException as error:
            reason = "cancelled" if is_cancelled(error) else str(error)
            told = {"id": id, "tool": tool, "reason": reason or type(error).__name__}
            self._log(session, kinds.APPROVAL_CANCELED, told, "security.approval.canceled", turn)
            raise
        data: dict[str, Any] = {"id": id, "decision": approval.decision, "reason": approval.reason}
        data |= {"automated": True} if approval.automated else {}
        data |= {"reviewers": [approval.reviewer]} if approval.reviewer else {}
        self._log(session, kinds.APPROVAL_RESOLVED, data, "security.approval.resolved", turn)
        is_allowed = approval.decision == ALLOW
        kind = "security.tool.allowed" if is_allowed else "security.tool.denied"
        self._tell(kind, {**request.data(), "reason": approval.reason})
        return approval

    async def admit(self, session: Session, tool: str, args: str, turn: Any = None) -> None:
        """Raise `ApprovalDenied` unless the call is allowed."""
        approval = await self.request(session, tool, args, turn=turn)
        if approval.decision != ALLOW:
            raise ApprovalDenied(approval.reason, session.id)

    async def decide(self, request: ApprovalRequest) -> Approval:
        """Return the answer to a request that somebody else logs. Raises what `request` does."""
        approval = await self._automatic(request)
        if approval is None:
            import asyncio
            from concurrent.futures import Future

            future: Future[Approval] = Future()
            self._waiting[request.id] = request, future
            try:
                approval = await asyncio.wrap_future(future)
            finally:
                self._waiting.pop(request.id, None)
            if approval.decision == ALLOW:
                self._denials = 0
        else:
            self._denials = 0 if approval.decision == ALLOW else self._denials + 1
        return approval

    async def _automatic(self, request: ApprovalRequest) -> Approval | None:
        if self._policy is None or (self._threshold and self._denials >= self._threshold):
            return None
        answer = self._policy(request)
        if inspect.isawaitable(answer):
            answer = await answer
        decision, reason = answer if isinstance(answer, tuple) else (answer, "")
        if decision is None:
            return None
        if decision not in (ALLOW, DENY):
            raise InvalidArgument(_undecided(decision))
        return Approval(decision, reason, automated=True)

    def _log(self, session: Session, type: str, data: dict[str, Any], told: str, turn: Any) -> None:
        write = session.write if turn is None else turn.write
        write(EventDraft(type, data))
        self._tell(told, data)

    def _tell(self, kind: str, data: dict[str, Any]) -> None:
        if self._audit is not None:
            self._audit(kind, data)


def _undecided(decision: object) -> str:
    return f"invalid approval decision {decision!r} (expected one of: {ALLOW}, {DENY})"


def _replayed(request: ApprovalRequest, turn: Any) -> Approval | None:
    """Return what was answered in an earlier run of the turn. Spec: 10 §C16.5."""
    asked = {"tool": request.tool, "args": request.args}
    known = None if turn is None else turn.session.recorded_call(kinds.APPROVAL_REQUESTED, **asked)
    if known is None or known.end is None or known.end.type != kinds.APPROVAL_RESOLVED:
        return None
    answer = known.end.data
    reviewer = next(iter(answer.get("reviewers") or ()), None)
    return Approval(answer["decision"], answer.get("reason", ""), answer.get("automated", False), reviewer)


# Asking a person in the middle of a turn. Spec: 10 §A1.17.


class InputGate:
    """One question at a time, logged with its answer.

    ``ask(prompt)`` returns the answer, or an awaitable; without it `provide` gives it, from any thread.
    """

    #: The tool by which a model asks, as providers are told of it.
    tool: ClassVar[Mapping[str, Any]] = {
        "name": "request_human_input",
        "description": "Ask a person a question, and wait for the answer.",
        "parameters": {
            "type": "object",
            "properties": {"prompt": {"type": "string", "description": "The question."}},
            "required": ["prompt"],
        },
    }

    def __init__(self, ask: Ask | None = None) -> None:
        self._ask = ask
        self._waiting: tuple[str, Future[str]] | None = None

    @property
    def pending(self) -> str | None:
        """The question that waits for `provide`."""
        return None if self._waiting is None else self._waiting[0]

    def provide(self, text: str) -> None:
        """Answer the question that waits. Raises `InvalidArgument` when none does."""
        if self._waiting is None:
            raise InvalidArgument("no input is asked for")
        (_, future), self._waiting = self._waiting, None
        future.set_result(text)

    async def request(self, session: Session, prompt: str, turn: Any = None) -> str:
        """Return the answer to a question. Raises `SessionBusy` while another one waits."""
        with self._asking(prompt, session.id) as future:
            self._log(session, {"prompt": prompt, "status": "pending"}, turn)
            known = None if turn is None else turn.session.recorded_call(EXTERNAL_INPUT, prompt=prompt)
            if known is not None and known.end is not None:
                answer: str = known.end.data["input"]  # in an earlier run of the turn (10 §C16.5)
            else:
                answer = await self._answer(prompt, future)
        self._log(session, {"prompt": prompt, "status": "received", "input": answer}, turn)
        return answer

    async def put(self, prompt: str) -> str:
        """Return the answer to a question that somebody else logs. Raises `SessionBusy` while another one
        waits."""
        with self._asking(prompt) as future:
            return await self._answer(prompt, future)

    @contextmanager
    def _asking(self, prompt: str, session_id: str | None = None) -> Iterator[Future[str]]:
        if self._waiting is not None:
            raise SessionBusy(f"an input is asked for already: {self._waiting[0]}", session_id)
        from concurrent.futures import Future

        future: Future[str] = Future()
        self._waiting = prompt, future
        try:
            yield future
        finally:
            if self._waiting is not None and self._waiting[1] is future:
                self._waiting = None

    async def _answer(self, prompt: str, future: Future[str]) -> str:
        if self._ask is None:
            import asyncio

            return await asyncio.wrap_future(future)
        answer = self._ask(prompt)
        return await answer if inspect.isawaitable(answer) else answer

    def _log(self, session: Session, data: dict[str, Any], turn: Any) -> None:
        write = session.write if turn is None else turn.write
        write(EventDraft(EXTERNAL_INPUT, data))


# What was plugged into one turn. Spec: 10 §C7.


class Guards(NamedTuple):
    """None stands for none."""

    budget: Budget | None = None
    approvals: ApprovalGate | None = None
    inputs: InputGate | None = None
