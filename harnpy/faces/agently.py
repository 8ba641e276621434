"""Agently's names: `Session`, and an `Agent` that holds some. Spec: 10 §A2, §B2."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from contextvars import ContextVar
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from harnpy.session import extension, log
from harnpy.session.aio import in_thread
from harnpy.session.arguments import validate_session_id
from harnpy.session.calling import LoopCaller
from harnpy.session.extension import (
    CHAT_HISTORY,
    MEMO,
    Memory,
    RequestPrompt,
    SessionExtension,
    keyed_content,
)
from harnpy.session.resize import Resizing
from harnpy.session.resize_policy import ResizePolicy, call_alone
from harnpy.session.transfer import agently
from harnpy.session.transfer.agently import JSON, YAML, load_document
from harnpy.storage.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping

    from harnpy.llm.call import Models
    from harnpy.session.resize_policy import Analysis, Strategy
    from harnpy.session.runtime import SessionRuntime

    Message = dict[str, Any]
    Model = Callable[[dict[str, Any]], Any]

__all__ = ["Agent", "Session", "provider_model"]

# Methods for asyncio: the same, in a thread; handlers that are async run on the caller's loop.


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

_CALLER: ContextVar[LoopCaller | None] = ContextVar("harnpy.faces", default=None)


def later(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Return a method as a coroutine."""

    @wraps(method)
    async def waited(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        caller = LoopCaller.here()

        def work() -> R:
            _CALLER.set(caller)
            return method(self, *args, **kwargs)

        return await in_thread(work, caller.stop)

    return waited


def calling(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Return what calls a handler: on the loop that waits for it if one does, else as ``otherwise`` does."""

    def call(fn: Callable[..., Any], *args: Any) -> Any:
        return (_CALLER.get() or otherwise)(fn, *args)

    return call


# Agently's `Session`. Spec: 10 §A2.1 to §A2.4, §A2.7, §B2.


class Session:
    """Three states: ``full_context``, ``context_window``, ``memo``; and the strategies that change them."""

    def __init__(
        self, id: str | None = None, auto_resize: bool = True, settings: Mapping[str, Any] | None = None
    ) -> None:
        self._warned: set[str] = set()
        self._is_shared = False
        self._take(log.Session(id, auto_resize=auto_resize, settings=settings))

    @classmethod
    def of(cls, session: log.Session) -> Self:
        """Return a face of a session that others use, too: of a runtime, of an agent."""
        face = cls.__new__(cls)
        face._warned = set()
        face._is_shared = True
        face._take(session)
        return face

    def _take(self, session: log.Session) -> None:
        resizing = session.resizing or Resizing(ResizePolicy())
        policy = resizing.policy.copy()
        policy.on_unknown = "warn"
        self._resizing = resizing._replace(policy=policy, call=calling(resizing.call))
        session.resize_by(self._resizing)
        #: harnpy's.
        self.session = session

    def is_of(self, session: log.Session) -> bool:
        """Return whether that is the session, and nobody else has said meanwhile how to resize it."""
        return self.session is session and session.resizing is self._resizing

    # The states.

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def auto_resize(self) -> bool:
        return self.session.auto_resize

    @property
    def full_context(self) -> list[Message]:
        return self.session.history()

    @property
    def context_window(self) -> list[Message]:
        return self.session.messages()

    @property
    def memo(self) -> Any:
        return self.session.memo

    @property
    def session_settings(self) -> Mapping[str, Any]:
        return self.session.settings

    def set_settings(self, key: str, value: Any) -> Self:
        """Set one of its own settings; None: what it inherits holds again."""
        self.session.set(f"settings.{key.removeprefix('session.')}", value)
        return self

    # The history.

    def set_chat_history(self, messages: Any) -> Self:
        """Replace both lists by one message or several, then resize."""
        self.session.set_history(messages)
        return self

    def add_chat_history(self, messages: Any) -> Self:
        """Append to both lists, then resize."""
        self.session.add_history(messages)
        return self

    def reset_chat_history(self) -> Self:
        """Empty both lists. The memo stays."""
        self.session.reset()
        return self

    def clean_context_window(self) -> Self:
        """Empty the window. The full context stays."""
        self.session.clean_window()
        return self

    def clean_window_context(self) -> Self:
        """`clean_context_window` by its old name."""
        self._deprecated("clean_window_context", "clean_context_window")
        return self.clean_context_window()

    # Resizing.

    def register_analysis_handler(self, handler: Analysis | None) -> Self:
        """Have ``handler`` name the strategy that is due; None: the default analysis."""
        self.session.policy.on_analyze(handler)
        return self

    def register_resize_handler(self, strategy_name: str, handler: Strategy) -> Self:
        """Register a strategy; the last one of a name counts."""
        self.session.policy.strategy(strategy_name, handler)
        return self

    def register_execution_handlers(self, strategy_name: str, handler: Strategy) -> Self:
        """`register_resize_handler` by its old name."""
        self._deprecated("register_execution_handlers", "register_resize_handler")
        return self.register_resize_handler(strategy_name, handler)

    def analyze_context(self) -> str | None:
        """Return the name of the strategy that is due, None for none."""
        return self.session.analyze()

    def run_resize_strategy(self, strategy_name: str) -> Self:
        """Run a strategy; of an unknown one only warn."""
        self.session.resize(strategy_name)
        return self

    def execute_strategy(self, strategy_name: str) -> Self:
        """`run_resize_strategy` by its old name."""
        self._deprecated("execute_strategy", "run_resize_strategy")
        return self.run_resize_strategy(strategy_name)

    def resize(self) -> Self:
        """Run the strategy that is due, if one is."""
        self.session.resize()
        return self

    # Files.

    def to_serializable_session_data(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        return agently.dump_state(self.session, plain=True)

    def get_json_session(self) -> str:
        """Return all of it as a JSON text."""
        return agently.dumps(self.session, JSON, plain=True)

    def get_yaml_session(self) -> str:
        """Return all of it as a YAML text."""
        return agently.dumps(self.session, YAML, plain=True)

    def load_json_session(
        self, path_or_text: str, session_key_path: str | None = None, encoding: str = "utf-8"
    ) -> Self:
        """Take over what a JSON or JSON5 file, or a text, says; ``session_key_path`` is where in it.

        Its id, too, unless others use the session. Handlers stay; nothing is resized.
        """
        return self._load(path_or_text, JSON, session_key_path, encoding)

    def load_yaml_session(
        self, path_or_text: str, session_key_path: str | None = None, encoding: str = "utf-8"
    ) -> Self:
        """`load_json_session` for YAML."""
        return self._load(path_or_text, YAML, session_key_path, encoding)

    def _load(self, path_or_text: str, language: str, part: str | None, encoding: str) -> Self:
        world = self.session.origin.world
        state = load_document(path_or_text, language, world, part=part, encoding=encoding)
        given = state.get("id") if isinstance(state, dict) else None
        session = self.session if given is None or self._is_shared else self._called(str(given))
        agently.load_into(session, state)
        self.session = session
        return self

    def _called(self, id: str) -> log.Session:
        validate_session_id(id)
        return self.session if id == self.id else self.session.fork(id, MemoryStore())

    def _deprecated(self, old: str, new: str) -> None:
        if old not in self._warned:
            self._warned.add(old)
            warnings.warn(f"`{old}` is now called `{new}`", DeprecationWarning, stacklevel=3)

    to_json = get_json_session
    to_yaml = get_yaml_session
    load_json = load_json_session
    load_yaml = load_yaml_session

    async_set_chat_history = later(set_chat_history)
    async_add_chat_history = later(add_chat_history)
    async_reset_chat_history = later(reset_chat_history)
    async_clean_context_window = later(clean_context_window)
    async_clean_window_context = later(clean_window_context)
    async_set_settings = later(set_settings)
    async_register_analysis_handler = later(register_analysis_handler)
    async_register_resize_handler = later(register_resize_handler)
    async_register_execution_handlers = later(register_execution_handlers)
    async_to_serializable_session_data = later(to_serializable_session_data)
    async_analyze_context = later(analyze_context)
    async_run_resize_strategy = later(run_resize_strategy)
    async_execute_strategy = later(execute_strategy)
    async_resize = later(resize)
    async_get_json_session = async_to_json = later(get_json_session)
    async_get_yaml_session = async_to_yaml = later(get_yaml_session)
    async_load_json_session = async_load_json = later(load_json_session)
    async_load_yaml_session = async_load_yaml = later(load_yaml_session)


# What holds sessions as Agently's agents do: with one active, each request is shown it and recorded in it.
#
# Spec: 10 §A2.5, §B2.


def provider_model(models: Models | None = None, **options: Any) -> Model:
    """Return a model for `Agent` that asks one of harnpy's providers (07 §1): ``options`` are those of
    ``llm_call``. ``models`` are the providers to ask, by default those that the environment sets."""
    from harnpy.llm.call import Models

    known = Models() if models is None else models

    def asked(slots: dict[str, Any]) -> str:
        said = {"role": "user", "content": RequestPrompt(slots, {}).text()}
        memo = slots.get(MEMO)
        system = None if memo is None else keyed_content([MEMO], slots.get, None)
        given = known.options({**options, "messages": [*slots.get(CHAT_HISTORY, ()), said]})
        return known.answer(known.request("", system, given)).reply.text

    def ask(slots: dict[str, Any]) -> Any:
        work = partial(asked, slots)
        return in_thread(work) if asyncio._get_running_loop() else work()

    return ask


class Agent:
    """``model`` gets the slots of a request and returns the result: a text, or data; it may be async, or
    yield the pieces of a text. A dict of options is `provider_model`'s. Without a ``runtime`` the sessions
    are in memory."""

    def __init__(
        self,
        model: Model | Mapping[str, Any] | None = None,
        *,
        name: str = "",
        runtime: SessionRuntime | None = None,
        settings: Mapping[str, Any] | None = None,
        strict_roles: bool = False,
    ) -> None:
        #: harnpy's.
        self.extension = SessionExtension(runtime, name, settings=settings, strict_roles=strict_roles)
        self._model = model if model is None or callable(model) else provider_model(**model)
        self._slots: dict[str, Any] = {}
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

    def input(self, value: Any) -> Self:
        """Say what the next request asks. `start` makes it."""
        return self._with("input", value)

    def info(self, value: Any) -> Self:
        """Give the next request what it is to know."""
        return self._with("info", value)

    def instruct(self, value: Any) -> Self:
        """Give the next request what it is to heed."""
        return self._with("instruct", value)

    def output(self, value: Any) -> Self:
        """Say what the next request's result is to look like."""
        return self._with("output", value)

    def _with(self, slot: str, value: Any) -> Self:
        self._slots[slot] = value
        return self

    def _given(self) -> dict[str, Any]:
        """Return the slots of the next request, which begins the one after it."""
        given, self._slots = self._slots, {}
        return {"input": None, **given}

    def start(self) -> Any:
        """Make the request that `input` and the others have described, and return the result."""
        return self.request(**self._given())

    async def async_start(self) -> Any:
        """`start` on a loop."""
        return await self.async_request(**self._given())

    def get_generator(self) -> Iterator[str]:
        """`start`, piece by piece: `stream`."""
        return self.stream(**self._given())

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
        extension.enter(None if prompt.session is None else prompt.session.id)
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
