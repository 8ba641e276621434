"""A session of a server that a terminal is attached to: what it shows, and what is typed there. Spec: 11 §3.

It knows no terminal: `attach_screen` has one, `commands.attach` has pipes. What models and tools said is
shown harmlessly.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.cli.console import harmless, one_line, paint
from harnpy.client import ApiError
from harnpy.client.event_streams import text_of
from harnpy.client.types import Chunk, Event
from harnpy.formats.json import compact_json
from harnpy.formats.visible import cells

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harnpy.client import AsyncClient
    from harnpy.client.types import Request, Session

#: Seconds between two signs of life, and between two looks at the session while a turn runs.
_BEAT, _GLANCE = 10.0, 1.0
#: Seconds in which what comes is looked at once.
_TOGETHER = 0.05
#: Seconds that leaving may take.
_GOODBYE = 2.0
#: Messages that are shown of what was said before.
_EARLIER = 200
#: Columns of a folded line where there is no terminal.
_FOLDED = 100

_YES, _NO = ("y", "yes"), ("n", "no")
_URGENT = ("/allow", "/deny", "/answer", "/cancel")


# What is shown, line by line.


def message_text(message: dict[str, Any], width: int) -> str:
    """A message: its role and text; calls of tools and what they returned take a line of ``width`` each."""
    role, text = str(message.get("role", "")), text_of(message.get("content"))
    if role in ("tool", "tool_result"):
        return _on_a_line(f"  <- {text}", width)
    calls = [each for each in message.get("tool_calls") or () if isinstance(each, dict)]
    lines = [_said(role, text)] if text or not calls else []
    return "\n".join([*lines, *(_on_a_line(f"  -> {_call(each)}", width) for each in calls)])


def _said(role: str, text: str) -> str:
    first, *others = harmless(text).split("\n")
    said = f"{paint(one_line(role), 'bold', sys.stdout)}: {first}"
    return "\n".join([said, *(f"  {line}".rstrip() for line in others)])


def _call(call: dict[str, Any]) -> str:
    function = call.get("function", call)
    arguments = function.get("arguments", function.get("input", ""))
    return (
        f"{function.get('name', '')} {arguments if isinstance(arguments, str) else compact_json(arguments)}"
    )


def _on_a_line(text: str, width: int) -> str:
    """The beginning of a text, on a line of that width."""
    line = one_line(text)
    if cells(line) > width:
        line = line[:width]
        while cells(line) >= width:
            line = line[:-1]
        line += "…"
    return paint(line, "dim", sys.stdout)


def event_text(event: Event, width: int) -> str | None:
    """What an event adds to the transcript; None for one that people needn't see."""
    data = event.data
    match event.type:
        case "message_added":
            return message_text(data, width)
        case "context_added":
            return _said("context", str(data.get("content", "")))
        case "turn_completed" if data.get("error"):
            return _note(f"the turn failed: {data['error']}", "red")
        case "turn_completed" if data.get("turn_stop_reason") not in (None, "completed"):
            return _note(f"the turn ended: {data['turn_stop_reason']}")
        case "approval_resolved":
            decided = "allowed" if data.get("decision") == "allow" else "denied"
            if data.get("reviewers"):
                decided += f" by {', '.join(map(str, data['reviewers']))}"
            return _note(f"{decided}: {data['reason']}" if data.get("reason") else decided)
        case "approval_canceled":
            return _note("the request was withdrawn")
        case "compaction_triggered" | "history_replaced":
            return _note("the window was made smaller")
        case "leaf_moved":
            return _note(f"rewound: {data['reason']}" if data.get("reason") else "rewound")
        case "handoff":
            return _note(f"handed to {data.get('target_agent_id')}")
        case "status_changed":
            return _note(f"the session is {data.get('to')}")
        case "transcript_event":
            return _about_client(data)
    return None


def _about_client(data: dict[str, Any]) -> str | None:
    of = data.get("metadata") or {}
    if data.get("kind") != "live_session_client" or of.get("action") == "heartbeat":
        return None
    who, controller = of.get("client_id"), of.get("live_controller_id")
    if controller != of.get("previous_controller_id"):
        return _note(f"{controller} is in control" if controller else f"{who} gave up control")
    did = {"attach": "is here", "detach": "left"}.get(str(of.get("action")))
    return _note(f"{who} {did}") if did else None


def _note(text: str, style: str = "dim") -> str:
    return paint(f"({one_line(text)})", style, sys.stdout)


def request_text(request: Request) -> str:
    """An approval or a question that waits for a person."""
    if request.kind == "question":
        return f"? {harmless(request.prompt)}\n  /answer TEXT"
    what = f"{request.tool} {request.args or ''}" if request.tool else request.prompt
    return f"? Approve: {harmless(what).strip()}\n  /allow or /deny REASON"


# The attachment.


class _Command(NamedTuple):
    arguments: str
    help: str
    carry_out: Callable[[Attachment, str], Awaitable[None]]


class Refused(Exception):
    """What was typed can't be done; the message says why."""


class Attachment:
    """``name`` is this client's. ``show`` is called with lines that stay, ``changed`` when anything else has.

    ``width`` returns how long folded lines may be. ``answer`` is the text of the answer that is being made.
    """

    def __init__(
        self,
        client: AsyncClient,
        id: str,
        name: str,
        show: Callable[[str], object],
        changed: Callable[[], object] = lambda: None,
        width: Callable[[], int] = lambda: _FOLDED,
    ) -> None:
        self.client = client
        self.id = id
        self.name = name
        self.answer = ""
        self.session: Session | None = None
        self.seen = 0
        self.show = show
        self._changed = changed
        self._width = width
        self._news, self._came, self._left = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._asked: set[str] = set()
        self._seen: str | None = None

    # Beginning and end.

    async def begin(self, control: bool) -> None:
        """Attach, and show what was said so far. Raises `ApiError`."""
        try:
            await self.attach(control=control)
        except ApiError as error:
            if not control or error.status not in (403, 409):
                raise
            await self.attach(control=False)
            if error.status == 403:  # a token that may look, and no more
                self.show(_note(f"you observe: {error.message}"))
                control = False
        window = await self.client.window(self.id)
        self.seen = window.seq
        earlier = len(window.messages) - _EARLIER
        if earlier > 0:
            self.show(_note(f"{earlier} earlier messages"))
        for message in window.messages[-_EARLIER:]:
            self.show(message_text(message, self._width()))
        await self._look()
        if control and not self.in_control and self.session is not None:
            self.show(_note(f"{self.controller} is in control: /take takes it"))

    async def attach(self, *, control: bool) -> None:
        """Attach, or say what this client is from now on. Raises `ApiError`."""
        await self.client.attach(self.id, self.name, mode="controller" if control else "observer")

    async def run(self) -> None:
        """Follow the session, until it is deleted or the person leaves. Raises `ApiError`."""
        following = asyncio.create_task(self._follow())
        beating = asyncio.create_task(self._beat())
        leaving = asyncio.create_task(self._left.wait())
        try:
            await asyncio.wait((following, beating, leaving), return_when=asyncio.FIRST_COMPLETED)
            if beating.done() and _is_not_found(beating):
                await asyncio.wait((following,), timeout=_GOODBYE)  # it knows why
            if following.done() or beating.done():
                (following if following.done() else beating).result()
        finally:
            for task in (following, beating, leaving):
                task.cancel()
            await asyncio.gather(following, beating, leaving, return_exceptions=True)

    def quit(self) -> None:
        """Have `run` end."""
        self._left.set()

    async def leave(self) -> None:
        """Detach. A server that can't be reached any more releases this client by itself."""
        try:
            async with asyncio.timeout(_GOODBYE):
                await self.client.detach(self.id, self.name)
        except (ApiError, TimeoutError):
            return

    async def catch_up(self, seconds: float) -> None:
        """Wait until everything that the session has by now is shown, or for a while. Raises `ApiError`."""
        end = (await self.client.info(self.id)).seq
        try:
            async with asyncio.timeout(seconds):
                while self.seen < end:
                    await self._came.wait()
                    self._came.clear()
        except TimeoutError:
            return

    async def _follow(self) -> None:
        async with aclosing(self.client.watch(self.id, self.seen, chunks=True)) as items:
            async for item in items:
                if isinstance(item, Chunk):
                    self.answer = item.text if item.start else self.answer + item.text
                else:
                    self._take(item)
                self._changed()
        self.show(_note("the session was deleted"))

    def _take(self, event: Event) -> None:
        self.seen = event.seq
        if event.type == "turn_completed" or event.data.get("role") == "assistant":
            self.answer = ""
        text = event_text(event, self._width())
        if text is not None:
            self.show(text)
        self._news.set()
        self._came.set()

    async def _beat(self) -> None:
        """Look at the session when there is news, and say every now and then that this client is there."""
        clock = asyncio.get_running_loop().time
        due = clock() + _BEAT
        while True:
            left = max(due - clock(), 0.0)
            try:
                async with asyncio.timeout(min(left, _GLANCE) if self.is_running else left):
                    await self._news.wait()
                await asyncio.sleep(_TOGETHER)
            except TimeoutError:
                pass
            self._news.clear()
            if clock() >= due:
                due = clock() + _BEAT
                await self._say_hello()
            await self._look()

    async def _say_hello(self) -> None:
        try:
            await self.client.heartbeat(self.id, self.name)
        except ApiError as error:
            if error.status not in (400, 404, 409):
                raise
            await self.attach(control=False)  # somebody has removed this client

    async def _look(self) -> None:
        self.session = await self.client.get(self.id)
        for request in self.session.requests:
            if request.id not in self._asked:
                self._asked.add(request.id)
                self.show(request_text(request))
        self._changed()

    # The state, for whoever shows it.

    @property
    def in_control(self) -> bool:
        return self.session is not None and self.session.controller == self.name

    @property
    def controller(self) -> str | None:
        """Return who is in control: a principal, or the id of a client whose principal nobody knows."""
        session = self.session
        if session is None or session.controller is None:
            return None
        found = next((each for each in session.clients if each.client_id == session.controller), None)
        return session.controller if found is None or found.principal is None else found.principal

    @property
    def may_send(self) -> bool:
        return self.session is not None and "write" in self.session.may

    @property
    def is_running(self) -> bool:
        return self.session is not None and self.session.running is not None

    def open_request(self, *kinds: str) -> Request | None:
        """Return the oldest open request, of one of these kinds if there are any."""
        found = () if self.session is None else self.session.requests
        return next((each for each in found if not kinds or each.kind in kinds), None)

    def status(self, width: int) -> str:
        """Return who controls, what is going on, the cost and the connection, on a line of that width."""
        session = self.session
        if session is None:
            return ""
        if session.controller == self.name:
            control = "you control"
        else:
            control = f"{one_line(self.controller)} controls" if self.controller else "nobody controls"
        doing = session.waiting or ("answering" if session.running else session.status)
        connection = "" if self.client.reachable else "connecting again…"
        others = [control, doing, f"${session.cost:.4f}", connection]
        parts = " · ".join(part for part in others if part)
        room = width - len(parts) - 3
        id = one_line(self.id)
        if room < 4:
            return parts[:width]
        return f"{id if len(id) <= room else id[: room - 1] + '…'} · {parts}"

    # What is typed.

    async def enter(self, line: str, *, wait: bool = False, seen: str | None = None) -> None:
        """Carry out what was typed: a command, an answer to an approval, or a prompt, which is sent.

        With ``wait`` it returns when the turn has ended. ``seen`` is the id of the oldest request when the
        person began to type, empty if there was none: no other one is answered without its id, for somebody
        else may have answered that one meanwhile. Raises `Refused` and `ApiError`.
        """
        line, self._seen = line.strip(), seen
        if line.startswith("/"):
            name, _, rest = line[1:].partition(" ")
            command = COMMANDS.get(name)
            if command is None:
                raise Refused(f"there is no command /{name}: /help shows those that there are")
            await command.carry_out(self, rest.strip())
        elif self._decides(line):
            await (_allow if line.lower() in _YES else _deny)(self, "")
        elif line:
            if not self.may_send:
                raise Refused("you observe: you may read this session and not send to it")
            if not self.in_control:
                raise Refused("you observe: /take takes control")
            await self.client.send(self.id, line, client=self.name, wait=wait)
        self._news.set()

    def is_urgent(self, line: str) -> bool:
        """Return whether what was typed is for the turn that runs, and must not wait for its end."""
        word = line.strip().partition(" ")[0]
        return word in _URGENT or self._decides(line.strip())

    def _decides(self, line: str) -> bool:
        return line.lower() in (*_YES, *_NO) and self.open_request("approval") is not None

    def find(self, kind: str, rest: str) -> tuple[Request, str]:
        """Return the request that is meant, and what else was typed."""
        first, _, others = rest.partition(" ")
        found = () if self.session is None else [each for each in self.session.requests if each.kind == kind]
        for request in found:
            if request.id == first:
                return request, others.strip()
        if not found:
            raise Refused(
                "there is no approval to decide on" if kind == "approval" else "there is no question"
            )
        if self._seen not in (None, found[0].id):
            raise Refused("another request is open by now: look at it first")
        return found[0], rest


def _is_not_found(task: asyncio.Task[None]) -> bool:
    error = task.exception()
    return isinstance(error, ApiError) and error.status == 404


async def _take(attachment: Attachment, rest: str) -> None:
    await attachment.client.takeover(attachment.id, attachment.name)


async def _release(attachment: Attachment, rest: str) -> None:
    await attachment.attach(control=False)


async def _allow(attachment: Attachment, rest: str) -> None:
    request, reason = attachment.find("approval", rest)
    await attachment.client.allow(request.id, reason)


async def _deny(attachment: Attachment, rest: str) -> None:
    request, reason = attachment.find("approval", rest)
    await attachment.client.deny(request.id, reason)


async def _answer(attachment: Attachment, rest: str) -> None:
    request, text = attachment.find("question", rest)
    await attachment.client.answer(request.id, text)


async def _cancel(attachment: Attachment, rest: str) -> None:
    if not await attachment.client.cancel(attachment.id):
        raise Refused("no turn is running")


async def _fork(attachment: Attachment, rest: str) -> None:
    if rest and not rest.isdecimal():
        raise Refused("/fork takes the number of an event, or nothing")
    forked = await attachment.client.fork(attachment.id, int(rest) if rest else None)
    attachment.show(_note(f"forked: {forked.id}"))


async def _quit(attachment: Attachment, rest: str) -> None:
    attachment.quit()


async def _help(attachment: Attachment, rest: str) -> None:
    for name, command in COMMANDS.items():
        attachment.show(f"  /{name} {command.arguments}".ljust(22) + command.help)


COMMANDS = {
    "take": _Command("", "have what you type sent", _take),
    "release": _Command("", "give control up", _release),
    "allow": _Command("[ID]", "approve a call (or: y)", _allow),
    "deny": _Command("[ID] REASON", "deny it (or: n)", _deny),
    "answer": _Command("[ID] TEXT", "answer a question", _answer),
    "cancel": _Command("", "end the running turn", _cancel),
    "fork": _Command("[SEQ]", "fork here, or at an event", _fork),
    "quit": _Command("", "leave (or: Ctrl+C)", _quit),
    "help": _Command("", "show this", _help),
}
