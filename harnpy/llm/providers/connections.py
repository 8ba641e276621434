"""The open connections of one program, and how it waits for its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.faults import MisuseError
from harnpy.llm.providers import make_provider
from harnpy.llm.reply import Reply
from harnpy.llm.transport import Caps

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from harnpy.llm.configuration.known_providers import ProviderConfig
    from harnpy.llm.providers import RemoteProvider
    from harnpy.llm.waiting import Waiting
    from harnpy.world.http import Http


class Connections:
    """One provider for each name and protocol, made anew when its configuration has changed.

    `aclose` closes all.
    """

    def __init__(self, http: Http, waiting: Waiting, caps: Caps | None = None) -> None:
        self.http = http
        self._caps = caps or Caps()
        self._waiting = waiting
        self._open: dict[tuple[str, str], RemoteProvider] = {}
        self._left: list[RemoteProvider] = []

    def provider(self, config: ProviderConfig) -> RemoteProvider:
        """The provider of that configuration. Raises `OptionError` when its protocol is not supported."""
        place = config.name, config.protocol
        found = self._open.get(place)
        if found is None or found.config != config:
            if found is not None:
                self._left.append(found)
            found = self._open[place] = make_provider(config, self.http, self._caps)
        return found

    def reply(self, answer: Reply | Awaitable[Reply]) -> Reply:
        """A provider's reply, awaited if need be. Raises `CallError`, and `MisuseError` for what is none."""
        given: object = answer
        if not isinstance(given, Reply) and hasattr(given, "__await__"):
            given = self._waiting.wait(answer)  # type: ignore[arg-type]
        if not isinstance(given, Reply):
            raise MisuseError(f"a provider returned {type(given).__name__}: expected harnpy.llm.reply.Reply")
        return given

    async def aclose(self) -> None:
        """End the connections; the next call opens new ones."""
        for provider in (*self._open.values(), *self._left):
            await provider.aclose()
        self._left.clear()
