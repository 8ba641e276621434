"""A session extension for asyncio. Spec: 10 §C7.2, §C9."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from harnpy.session.aio.runtime import AsyncSessionRuntime
from harnpy.session.aio.session import AsyncSession
from harnpy.session.aio.threads import in_thread
from harnpy.session.extension import current
from harnpy.session.extension.extension import SessionExtension

if TYPE_CHECKING:
    from harnpy.session.extension.request_prompt import RequestPrompt
    from harnpy.session.resize.resize_policy import Analysis, Strategy
    from harnpy.session.runtime.bus import EventBus
    from harnpy.session.runtime.runtime import SessionRuntime
    from harnpy.session.settings.levels import Level

    Message = dict[str, Any]


class AsyncSessionExtension:
    """A `SessionExtension` whose calls don't block the loop. What costs nothing to look at is an attribute
    here, too."""

    __slots__ = ("extension",)

    def __init__(
        self, runtime: AsyncSessionRuntime | SessionRuntime | None = None, agent: Any = None, **options: Any
    ) -> None:
        """``options`` are those of `SessionExtension`."""
        over = runtime.runtime if isinstance(runtime, AsyncSessionRuntime) else runtime
        self.extension = SessionExtension(over, agent, **options)

    @property
    def agent_name(self) -> str:
        return self.extension.agent_name

    @property
    def events(self) -> EventBus:
        return self.extension.events

    @property
    def prompt(self) -> dict[str, Any]:
        """The slots that each request of the agent has."""
        return self.extension.prompt

    @property
    def session(self) -> AsyncSession | None:
        """The active session."""
        active = self.extension.session
        return None if active is None else AsyncSession(active)

    @property
    def sessions(self) -> dict[str, AsyncSession]:
        """All that were ever active, by id."""
        return {id: AsyncSession(session) for id, session in self.extension.sessions.items()}

    async def activate(self, id: str | None = None) -> AsyncSession:
        """Make a session active, one that is made now if there is none of that id; None: of a new id."""
        return AsyncSession(await in_thread(partial(self.extension.activate, id)))

    async def deactivate(self) -> None:
        """Go on without a session, and without a history. The session stays in `sessions`."""
        self.extension.deactivate()

    @property
    def settings(self) -> Level:
        """The agent's settings, which its sessions inherit."""
        return self.extension.settings

    def set_settings(self, key: str, value: Any) -> None:
        """Set one of the agent's settings; None unsets it."""
        self.extension.set_settings(key, value)

    def on_analyze(self, fn: Analysis | None) -> None:
        """Have ``fn`` name the resize strategy that is due, in all sessions, those to come too."""
        self.extension.on_analyze(fn)

    def strategy(self, name: str, fn: Strategy) -> None:
        """Register a resize strategy in all sessions, those to come too."""
        self.extension.strategy(name, fn)

    async def chat_history(self) -> list[Message]:
        """Return the messages that requests show."""
        return await in_thread(lambda: self.extension.chat_history)

    async def set_history(self, messages: Any) -> None:
        """Restart the history with these messages."""
        await in_thread(partial(self.extension.set_history, messages))

    async def add_history(self, messages: Any) -> None:
        """Append one message or several."""
        await in_thread(partial(self.extension.add_history, messages))

    async def reset(self) -> None:
        """Empty the history; a session's memo stays."""
        await in_thread(self.extension.reset)

    async def clean_window(self) -> None:
        """Empty what requests show; a session's history stays."""
        await in_thread(self.extension.clean_window)

    async def prepare(self, prompt: RequestPrompt | dict[str, Any]) -> RequestPrompt:
        """Put the window and the memo into a prompt's slots, and return it, for `finish`."""
        prepared = await in_thread(partial(self.extension.prepare, prompt))
        current.enter(None if prepared.session is None else prepared.session.id)
        return prepared

    async def finish(self, prompt: RequestPrompt, result: Any) -> None:
        """Append what was asked and what was answered, once, to the session of the prompt."""
        await in_thread(partial(self.extension.finish, prompt, result))
