"""The open connections of one program, and how its calls are waited for."""

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
    """One provider a name, made anew when its configuration has changed.

    Whoever hands in ``wait(awaitable)`` sees to it that `aclose` is awaited in the end. Without, the calls
    are waited for in a loop of our own, which `close` ends.
    """

    def __init__(self, wait: Callable[[Awaitable[Any]], Any] | None = None) -> None:
        self.wait = wait or self._run
        self._open: dict[str, RemoteProvider] = {}
        self._left: list[RemoteProvider] = []
        self._runner: asyncio.Runner | None = None

    def provider(self, config: ProviderConfig) -> RemoteProvider:
        """Raises `OptionError` when nothing here speaks its protocol."""
        found = self._open.get(config.name)
        if found is None or found.config != config:
            if found is not None:
                self._left.append(found)
            found = self._open[config.name] = make_provider(config)
        return found

    def reply(self, answer: Reply | Awaitable[Reply]) -> Reply:
        """What a provider answered, waited for where need be. Raises `CallError`."""
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
        """The same from outside, where no ``wait`` was handed in."""
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
