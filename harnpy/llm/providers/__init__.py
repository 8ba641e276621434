"""The providers of replies, one a module, behind one method. `mock` is the simplest.

`openai_compatible` and `anthropic` speak to real services through their official SDKs, which are extras of
the package and imported on the first call. Spec: 07 §1.2, §1.7, §1.14.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from harnpy.faults import OptionError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from harnpy.llm.configuration.known_providers import ProviderConfig
    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request
    from harnpy.llm.transport import Caps
    from harnpy.world.http import Http


class Provider(Protocol):
    def complete(self, request: Request) -> Reply | Awaitable[Reply]:
        """Return the reply to a request. Raises `CallError`, at once or when awaited."""


class StreamingProvider(Protocol):
    def stream(self, request: Request) -> AsyncIterator[str]:
        """The answer's text, piece by piece as it comes. Raises `CallError`."""


class RemoteProvider(Provider, StreamingProvider, Protocol):
    """One that holds connections."""

    config: ProviderConfig

    async def aclose(self) -> None:
        """End the connections; the next call opens new ones."""


def make_provider(config: ProviderConfig, http: Http, caps: Caps | None = None) -> RemoteProvider:
    """The provider that a configuration describes. Raises `OptionError` when its SDK isn't there."""
    extra = config.protocol
    try:
        if extra == "openai":
            from harnpy.llm.providers.openai_compatible import OpenAIProvider

            return OpenAIProvider(config, http, caps)
        if extra == "anthropic":
            from harnpy.llm.providers.anthropic import AnthropicProvider

            return AnthropicProvider(config, http, caps)
    except ModuleNotFoundError as error:
        if error.name != extra:
            raise
        refusal = f"needs the '{extra}' package: pip install 'harnpy[{extra}]'"
    else:
        refusal = f"can't be called yet: its protocol ({extra}) will come with a later release"
    raise OptionError(f"provider '{config.name}' {refusal}")
