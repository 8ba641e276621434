"""The open connections of one program, and how it waits for its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.llm.providers import make_provider
from harnpy.llm.reply import Reply

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from harnpy.llm.configuration.known_providers import ProviderConfig
    from harnpy.llm.providers import RemoteProvider


class Connections:
    """One provider for each name, made anew when its configuration has changed.

    A caller that gives ``wait(awaitable)`` must await `aclose` in the end. Without ``wait``, calls are
    awaited in a loop of our own, which `close` ends.
    """

    def __init__(self, wait: Callable[[Awaitable[Any]], Any] | None = None) -> None:
        self.wait = wait or self._run
        self._open: dict[str, RemoteProvider] = {}
        self._left: list[RemoteProvider] = []
        self._runner: asyncio.Runner | None = None

    def provider(self, config: ProviderConfig) -> RemoteProvider:
        """The provider of that configuration. Raises `OptionError` when its protocol is not supported."""
        found = self._open.get(config.name)
        if found is None or found.config != config:
            if found is not None:
                self._left.append(found)
            found = self._open[config.name] = make_provider(config)
        return found

    def reply(self, answer: Reply | Awaitable[Reply]) -> Reply:
        """A provider's reply, awaited if need be. Raises `CallError`."""
        if isinstance(answer, Reply):
            return answer
        reply: Reply = self.wait(answer)
        return reply

    async def aclose(self) -> None:
        """End the connections; the next call opens new ones."""
        for provider in (*self._open.values(), *self._left):
            await provider.aclose()
        self._left.clear()

    def close(self) -> None:
        """Close everything, where no ``wait`` was given."""
        if self._runner is not None:
            self._runner.run(self.aclose())
            self._runner.close()
            self._runner = None

    def _run(self, awaitable: Awaitable[Any]) -> Any:
        if self._runner is None:
            from asyncio import Runner

            self._runner = Runner()

        async def waiting() -> Any:
            return await awaitable

        return self._runner.run(waiting())
