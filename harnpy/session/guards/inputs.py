"""Asking a person in the middle of a turn. Spec: 10 §A1.17."""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, ClassVar

from harnpy.session.errors import InvalidArgument, SessionBusy
from harnpy.session.events import EXTERNAL_INPUT, EventDraft

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from harnpy.session.log import Session

    Ask = Callable[[str], str | Awaitable[str]]


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
        if self._waiting is not None:
            raise SessionBusy(f"an input is asked for already: {self._waiting[0]}", session.id)
        future: Future[str] = Future()
        self._waiting = prompt, future
        try:
            self._log(session, {"prompt": prompt, "status": "pending"}, turn)
            known = None if turn is None else turn.session.recall(EXTERNAL_INPUT, prompt=prompt)
            if known is not None and known.end is not None:
                answer: str = known.end.data["input"]  # in an earlier run of the turn (10 §C16.5)
            else:
                answer = await self._answer(prompt, future)
        finally:
            if self._waiting is not None and self._waiting[1] is future:
                self._waiting = None
        self._log(session, {"prompt": prompt, "status": "received", "input": answer}, turn)
        return answer

    async def _answer(self, prompt: str, future: Future[str]) -> str:
        if self._ask is None:
            return await asyncio.wrap_future(future)
        answer = self._ask(prompt)
        return await answer if inspect.isawaitable(answer) else answer

    def _log(self, session: Session, data: dict[str, Any], turn: Any) -> None:
        write = session.write if turn is None else turn.write
        write(EventDraft(EXTERNAL_INPUT, data))
