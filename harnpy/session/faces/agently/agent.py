"""What holds sessions as Agently's agents do: with one active, each request is shown it and recorded in it.

Spec: 10 §A2.5, §B2.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self

from harnpy.session.extension import current
from harnpy.session.extension.extension import SessionExtension
from harnpy.session.faces.agently.session import Session
from harnpy.session.faces.asynchronous import later
from harnpy.session.resize.calling import call_alone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from harnpy.session import log
    from harnpy.session.extension.memory import Memory
    from harnpy.session.extension.request_prompt import RequestPrompt
    from harnpy.session.resize.resize_policy import Analysis, Strategy
    from harnpy.session.runtime.runtime import SessionRuntime

    Message = dict[str, Any]
    Model = Callable[[dict[str, Any]], Any]


class Agent:
    """``model`` gets the slots of a request and returns the result: a text, or data; it may be async, or
    yield the pieces of a text. Without a ``runtime`` the sessions are in memory."""

    def __init__(
        self,
        model: Model | None = None,
        *,
        name: str = "",
        runtime: SessionRuntime | None = None,
        settings: Mapping[str, Any] | None = None,
        strict_roles: bool = False,
    ) -> None:
        #: harnpy's.
        self.extension = SessionExtension(runtime, name, settings=settings, strict_roles=strict_roles)
        self._model = model
        self._faces: dict[str, Session] = {}

    # Which session.

    def activate_session(self, session_id: str | None = None) -> Self:
        """Make a session active, a new one if there is none of that id."""
        self._face(self.extension.activate(session_id))
        return self

    def deactivate_session(self) -> Self:
        """Go on without a session, and without a history."""
        self.extension.deactivate()
        return self

    @property
    def activated_session(self) -> Session | None:
        active = self.extension.session
        return None if active is None else self._face(active)

    @property
    def sessions(self) -> dict[str, Session]:
        """All that were ever active, by id."""
        return {id: self._face(session) for id, session in self.extension.sessions.items()}

    def _face(self, session: log.Session) -> Session:
        face = self._faces.get(session.id)
        if face is None or not face.is_of(session):
            face = self._faces[session.id] = Session.of(session)
        return face

    # What holds for all its sessions.

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.extension.settings

    def set_settings(self, key: str, value: Any) -> Self:
        """Set what its sessions inherit; None unsets it."""
        self.extension.set_settings(key, value)
        return self

    def register_session_analysis_handler(self, handler: Analysis | None) -> Self:
        """Have ``handler`` name the strategy that is due, in each session, those to come too."""
        self.extension.on_analyze(handler)
        return self

    def register_session_resize_handler(self, strategy_name: str, handler: Strategy) -> Self:
        """Register a strategy in each session, those to come too."""
        self.extension.strategy(strategy_name, handler)
        return self

    def use_memory(self, mode: str = "AgentlyMemory", memory_store: Memory | None = None) -> Self:
        """Recall from ``memory_store`` before each request, and tell it afterwards what was said."""
        if mode != "AgentlyMemory":
            raise ValueError(f"SessionMemory mode '{mode}' is not registered.")
        return self if memory_store is None else self.bind_memory_store(memory_store)

    def bind_memory_store(self, memory_store: Memory | None) -> Self:
        """Recall from another memory; None: from none."""
        self.extension.memory = memory_store
        return self

    # The history that requests show.

    @property
    def chat_history(self) -> list[Message]:
        return self.extension.chat_history

    def set_chat_history(self, messages: Any) -> Self:
        """Replace it by one message or several."""
        self.extension.set_history(messages)
        return self

    def add_chat_history(self, messages: Any) -> Self:
        """Append one message or several."""
        self.extension.add_history(messages)
        return self

    def reset_chat_history(self) -> Self:
        """Empty it; a session's memo stays."""
        self.extension.reset()
        return self

    def clean_context_window(self) -> Self:
        """Empty what requests show; a session's full context stays."""
        self.extension.clean_window()
        return self

    # Requests.

    def request(self, input: Any, **slots: Any) -> Any:
        """Ask the model, and return the result."""
        prompt = self.extension.prepare({"input": input, **slots})
        result = call_alone(self._answered, prompt)
        self.extension.finish(prompt, result)
        return result

    def stream(self, input: Any, **slots: Any) -> Iterator[str]:
        """Ask the model, and give its answer piece by piece. It is recorded once all pieces are there."""
        prompt = self.extension.prepare({"input": input, **slots})
        pieces = []
        for piece in self._ask(prompt):
            pieces.append(piece)
            yield piece
        self.extension.finish(prompt, "".join(pieces))

    async def async_request(self, input: Any, **slots: Any) -> Any:
        """`request` on a loop."""
        prompt = await self._async_prepare({"input": input, **slots})
        current.enter(None if prompt.session is None else prompt.session.id)
        result = self._answered(prompt)
        if inspect.isawaitable(result):
            result = await result
        await self._async_finish(prompt, result)
        return result

    def _ask(self, prompt: RequestPrompt) -> Any:
        if self._model is None:
            raise TypeError("this agent has no model: Agent(model)")
        return self._model(prompt.slots())

    def _answered(self, prompt: RequestPrompt) -> Any:
        """Return the result, or what gives it when it is awaited."""
        result = self._ask(prompt)
        if inspect.isgenerator(result):
            return "".join(map(str, result))
        return _joined(result) if inspect.isasyncgen(result) else result

    def _prepare(self, slots: dict[str, Any]) -> RequestPrompt:
        return self.extension.prepare(slots)

    def _finish(self, prompt: RequestPrompt, result: Any) -> None:
        self.extension.finish(prompt, result)

    _async_prepare = later(_prepare)
    _async_finish = later(_finish)
    async_activate_session = later(activate_session)
    async_deactivate_session = later(deactivate_session)
    async_set_settings = later(set_settings)
    async_register_session_analysis_handler = later(register_session_analysis_handler)
    async_register_session_resize_handler = later(register_session_resize_handler)
    async_use_memory = later(use_memory)
    async_bind_memory_store = later(bind_memory_store)
    async_set_chat_history = later(set_chat_history)
    async_add_chat_history = later(add_chat_history)
    async_reset_chat_history = later(reset_chat_history)
    async_clean_context_window = later(clean_context_window)


async def _joined(pieces: AsyncIterator[Any]) -> str:
    return "".join([str(piece) async for piece in pieces])
