"""What waits for a person, and the answers: approvals of tool calls, and questions. Spec: 11 §1.3.

A request is in the log of its session; what a program asks, which no log has, is in one topic of the event
log. Any server on the store lists it and takes its answer, which is put into that topic: of two answers one
is the first. The server whose turn waits follows the topic, which also tells it which of its turns to cancel.

    asked {id, session, kind, prompt, since, tool?, args?, by}     withdrawn {id}
    answered {id, by, at, decision?, reason?, answer?}
    cancelled {session, key, by, at}
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from functools import partial
from threading import Event as Signal
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from msgspec import UNSET, to_builtins

from harnpy.client import types as t
from harnpy.eventlog.contract import LogEvent
from harnpy.eventlog.errors import LogError
from harnpy.eventlog.waitpoints import TopicFold, moment_text
from harnpy.serve import shown
from harnpy.session import events as kinds
from harnpy.session.guards import Approval, ApprovalGate, InputGate
from harnpy.storage.leases import Machine
from harnpy.world.clock import RealClock, milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.eventlog.contract import EventLog
    from harnpy.session.guards import ApprovalRequest
    from harnpy.session.log import Session
    from harnpy.session.runtime import SessionRuntime

TOPIC: Final = "serve.people"
ASKED: Final = "asked"
WITHDRAWN: Final = "withdrawn"
ANSWERED: Final = "answered"
CANCELLED: Final = "cancelled"
APPROVAL: Final = "approval"
QUESTION: Final = "question"
_TYPES: Final = frozenset(
    {
        kinds.APPROVAL_REQUESTED,
        kinds.APPROVAL_RESOLVED,
        kinds.APPROVAL_CANCELED,
        kinds.EXTERNAL_INPUT,
        kinds.WAIT_RESOLVED,
    }
)
#: Seconds between two looks at the topic where nobody announces changes.
_LOOK: Final = 0.25


class Cancel(NamedTuple):
    """Somebody asks for the turn of that key to end."""

    session: str
    key: str


class Answers(TopicFold):
    """The topic of answers, as far as it was read. ``on_cancel`` is called for each wish to end a turn."""

    about: ClassVar[str] = "answer"

    def __init__(self, log: EventLog) -> None:
        super().__init__(log, TOPIC)
        self.known: dict[str, dict[str, Any]] = {}
        #: What is asked here and nobody has answered yet, and by whose process, by the ids.
        self.asked: dict[str, tuple[t.Request, str]] = {}
        self.waiting: dict[str, Future[dict[str, Any]]] = {}
        self.on_cancel: Callable[[Cancel], object] = lambda cancel: None

    def _fold(self, number: int, kind: str, payload: Any) -> None:
        if kind == ASKED:
            if payload["id"] not in self.known:
                fields = {name: value for name, value in payload.items() if name != "by"}
                self.asked[payload["id"]] = t.Request(**fields), payload["by"]
        elif kind == WITHDRAWN:
            self.asked.pop(payload["id"], None)
        elif kind == ANSWERED:
            self.asked.pop(payload["id"], None)
            self.known.setdefault(payload["id"], payload)
            waiting = self.waiting.pop(payload["id"], None)
            if waiting is not None and waiting.set_running_or_notify_cancel():
                waiting.set_result(payload)
        elif kind == CANCELLED:
            self.on_cancel(Cancel(payload["session"], payload["key"]))

    def wait(self, id: str) -> Future[dict[str, Any]]:
        """Return what becomes of a request, from now on or already."""
        with self._lock:
            self.read()
            future: Future[dict[str, Any]] = Future()
            if id in self.known:
                future.set_result(self.known[id])
            else:
                self.waiting[id] = future
            return future


class People:
    """The requests of the sessions of a runtime. ``log`` is the event log that the servers share."""

    def __init__(self, runtime: SessionRuntime, log: EventLog) -> None:
        self._runtime = runtime
        self._answers = Answers(log)
        self._now = RealClock().now
        self._lock = Lock()
        self._machine = Machine()
        self._followers = 0
        self._thread: Thread | None = None
        self._closed = Signal()

    # The side of turns, in whatever thread or loop.

    @property
    def approvals(self) -> ApprovalGate:
        """Return a gate that leaves to people what no policy decides."""
        return _Gate(self)

    def inputs(self, id: str) -> InputGate:
        """Return a gate for the questions of one turn of a session."""
        return InputGate(partial(self._question, id))

    async def decided(self, asked: ApprovalRequest) -> Approval:
        """Return what somebody has answered."""
        found, is_logged = await asyncio.to_thread(self._logged_approval, asked)
        answer = await self._answered(found, is_logged)
        return Approval(answer["decision"], answer.get("reason") or "", reviewer=answer["by"])

    async def _question(self, id: str, prompt: str) -> str:
        found, is_logged = await asyncio.to_thread(self._logged_question, id, prompt)
        answer = (await self._answered(found, is_logged))["answer"]
        return answer if isinstance(answer, str) else shown.text_of(answer)

    async def _answered(self, request: t.Request, is_logged: bool) -> dict[str, Any]:
        answers = self._answers
        payload = {**to_builtins(request), "by": self._machine.owner()}
        asking = None
        self.follow()
        try:
            future = await asyncio.to_thread(answers.wait, request.id)
            if not is_logged:
                ask = partial(answers.change, lambda: LogEvent(ASKED, payload))
                asking = asyncio.ensure_future(asyncio.to_thread(ask))
                await asyncio.shield(asking)
            return await asyncio.wrap_future(future)
        finally:
            answers.waiting.pop(request.id, None)
            self.leave()
            if asking is not None:
                await asyncio.wait([asking])
                await asyncio.to_thread(self._withdraw, request.id)

    def _withdraw(self, id: str) -> None:
        answers = self._answers
        answers.change(lambda: LogEvent(WITHDRAWN, {"id": id}) if id in answers.asked else None)

    def _logged_approval(self, asked: ApprovalRequest) -> tuple[t.Request, bool]:
        """Return a request under its id in the log, and whether that has it: a turn that is entered again
        mints another one."""
        minted = t.Request(
            id=asked.id,
            session=asked.session_id,
            kind="approval",
            prompt=asked.metadata.get("reason") or f"May `{asked.tool}` be called?",
            since=self._at(),
            tool=asked.tool,
            args=asked.args,
        )
        known = [each for each in self._of(asked.session_id) if each.kind == APPROVAL]
        by_id = (each for each in known if each.id == asked.id)
        alike = (each for each in known if (each.tool, each.args) == (asked.tool, asked.args))
        found = next(by_id, None) or next(alike, None)
        return found or minted, found is not None

    def _logged_question(self, id: str, prompt: str) -> tuple[t.Request, bool]:
        known = [each for each in self._of(id) if each.kind == QUESTION and each.prompt == prompt]
        minted = f"question_{self._runtime.get(id).origin.world.ids.new()}"
        if known:
            return known[-1], True
        return t.Request(id=minted, session=id, kind="question", prompt=prompt, since=self._at()), False

    def _of(self, id: str) -> list[t.Request]:
        return open_requests(self._runtime.get(id)) if self._runtime.exists(id) else []

    # The side of people. May wait for the store.

    def asked(self) -> list[t.Request]:
        """Return what turns wait for that no session's log has, but for those whose process is known to be
        gone."""
        self._answers.read()
        asked = list(self._answers.asked.values())
        return [request for request, by in asked if not self._machine.is_gone(by)]

    def listed(self, sessions: list[str], is_at_work: Callable[[str], bool]) -> list[t.Request]:
        """Return the requests of these sessions that are open, and what no session's log has: of sessions
        where a turn ``is_at_work``."""
        found = {request.id: request for id in sessions for request in self._of(id)}
        for request in self.asked():
            id = request.session
            if request.id not in found and id is not None and self._runtime.exists(id) and is_at_work(id):
                found[request.id] = request
        return sorted(
            (each for each in found.values() if each.id not in self._answers.known),
            key=lambda each: each.since,
        )

    def is_answered(self, id: str) -> bool:
        self._answers.read()
        return id in self._answers.known

    def answer(self, request: t.Request, body: t.Answer, by: str) -> bool:
        """Note an answer. Return False if there is one already."""
        payload: dict[str, Any] = {"id": request.id, "by": by, "at": self._at()}
        if request.kind == APPROVAL:
            payload |= {"decision": body.decision, "reason": body.reason}
        elif body.answer is not UNSET:
            payload["answer"] = body.answer
        answers = self._answers
        answers.read()
        return answers.change(lambda: None if request.id in answers.known else LogEvent(ANSWERED, payload))

    def cancel(self, cancel: Cancel, by: str) -> None:
        """Have whatever server runs a turn cancel it."""
        payload = {**cancel._asdict(), "by": by, "at": self._at()}
        self._answers.read()
        self._answers.change(lambda: LogEvent(CANCELLED, payload))

    def _at(self) -> str:
        return moment_text(milliseconds(self._now()))

    # Following the topic, in a thread, while somebody waits for it.

    def follow(self, on_cancel: Callable[[Cancel], object] | None = None) -> None:
        """Take notice of what other servers write, until `leave` was called as often; ``on_cancel`` is called
        when one wants a turn to end."""
        with self._lock:
            if on_cancel is not None:
                self._answers.on_cancel = on_cancel
            self._followers += 1
            if self._thread is None:
                self._thread = Thread(target=self._follow, name="serve people", daemon=True)
                self._thread.start()

    def leave(self) -> None:
        with self._lock:
            self._followers -= 1

    def close(self) -> None:
        self._closed.set()

    def _follow(self) -> None:
        answers = self._answers
        while not self._closed.is_set():
            try:
                answers.read()
                answers.log.wait(TOPIC, answers.version, _LOOK)
            except LogError:
                self._closed.wait(_LOOK)  # the store is away, or closed for good
            with self._lock:
                if not self._followers:
                    self._thread = None
                    return


class _Gate(ApprovalGate):
    def __init__(self, people: People) -> None:
        super().__init__()
        self._people = people

    async def decide(self, request: ApprovalRequest) -> Approval:
        return await self._people.decided(request)


def open_requests(log: Session) -> list[t.Request]:
    """Return what the open turns of a session wait for, by its log."""
    found: dict[str, t.Request] = {}
    turns = [turn.seq for turn in shown.open_turns(log)]
    if turns:
        for event in log.read(after=min(turns), types=_TYPES):
            _take(found, log, event)
    return list(found.values())


def _take(found: dict[str, t.Request], log: Session, event: Any) -> None:
    data = event.body
    if event.type == kinds.APPROVAL_REQUESTED:
        tool = data.get("tool") or ""
        reason = (data.get("metadata") or {}).get("reason")
        args = data.get("args")
        found[data["id"]] = t.Request(
            id=data["id"],
            session=log.id,
            kind="approval",
            prompt=reason if isinstance(reason, str) else f"May `{tool}` be called?",
            since=event.timestamp,
            tool=tool,
            args=args if args is None or isinstance(args, str) else shown.text_of(args),
        )
    elif event.type in (kinds.APPROVAL_RESOLVED, kinds.APPROVAL_CANCELED):
        found.pop(data.get("id"), None)
    elif event.type == kinds.WAIT_RESOLVED:
        found.pop(data.get("request_id") or data.get("external_id"), None)
    elif event.type == kinds.EXTERNAL_INPUT:
        prompt, id = data.get("prompt", ""), data.get("request_id")
        if data.get("status") == "pending":
            id = id or log.origin.own(event).id
            found[id] = t.Request(
                id=id, session=log.id, kind="question", prompt=prompt, since=event.timestamp
            )
        else:
            for known in [each for each in found.values() if each.kind == QUESTION]:
                if known.id == id or (id is None and known.prompt == prompt):
                    del found[known.id]
