"""The providers of replies, one a module, behind one method, and their open connections.

`mock` is the simplest. The others speak to real services through the official SDKs, which are extras of the
package and imported on the first call. Spec: 07 §1.2, §1.7, §1.14.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, Protocol

from harnpy.faults import MisuseError, OptionError
from harnpy.llm.call_options import Caps
from harnpy.llm.reply import Reply
from harnpy.version import install_command

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from harnpy.llm.configuration.known_providers import ProviderConfig
    from harnpy.llm.providers.remote import Remote
    from harnpy.llm.request import Request, Shown
    from harnpy.llm.waiting import Waiting
    from harnpy.world.http import Http


class Provider(Protocol):
    def complete(self, request: Request) -> Reply | Awaitable[Reply]:
        """Return the reply to a request. Raises `CallError`, at once or when awaited."""


class StreamingProvider(Protocol):
    def stream(self, request: Request) -> AsyncIterator[str]:
        """The answer's text, piece by piece as it comes. Raises `CallError`.

        What it returns may have `so_far`, as `ReplyStream` has: usage is then what the service tells.
        """


class ReplyStream(Protocol):
    """The pieces of a reply that comes, of which more is known than its text."""

    def __aiter__(self) -> AsyncIterator[str]: ...

    async def __anext__(self) -> str: ...

    async def aclose(self) -> None:
        """End the call."""

    def so_far(self) -> Reply:
        """The reply up to the last piece; its counts of tokens are 0 until they are known."""


class _Dialect(NamedTuple):
    """The implementation of one protocol: the module and the class, the packages that they need, and the
    extra of this one that installs them."""

    module: str
    provider: str
    packages: tuple[str, ...]
    extra: str


_DIALECTS = {
    "openai": _Dialect("openai_compatible", "OpenAIProvider", ("openai",), "openai"),
    "deepseek": _Dialect("openai_compatible", "DeepSeekProvider", ("openai",), "openai"),
    "mistral": _Dialect("openai_compatible", "MistralProvider", ("openai",), "openai"),
    "ollama": _Dialect("ollama", "OllamaProvider", ("openai",), "openai"),
    "gemini": _Dialect("gemini", "GeminiProvider", ("openai",), "openai"),
    "responses": _Dialect("responses", "ResponsesProvider", ("openai",), "openai"),
    "anthropic": _Dialect("anthropic", "AnthropicProvider", ("anthropic",), "anthropic"),
    "azure_openai": _Dialect("openai_compatible", "AzureProvider", ("openai",), "azure"),
    "bedrock": _Dialect("anthropic", "BedrockProvider", ("anthropic", "boto3"), "bedrock"),
    "bedrock_chat": _Dialect("openai_compatible", "BedrockChatProvider", ("openai", "botocore"), "bedrock"),
    "vertex": _Dialect("anthropic", "VertexProvider", ("anthropic", "google"), "vertex"),
    "vertex_chat": _Dialect("openai_compatible", "VertexChatProvider", ("openai", "google"), "vertex"),
}


def sdk_command(config: ProviderConfig) -> str | None:
    """Return the command that installs what calls of a provider need; None when it is there."""
    dialect = _DIALECTS.get(config.protocol)
    if dialect is None or all(find_spec(package) for package in dialect.packages):
        return None
    return install_command(dialect.extra)


def make_provider(
    config: ProviderConfig,
    http: Http,
    caps: Caps | None = None,
    now: Callable[[], float] | None = None,
) -> Remote:
    """The provider that a configuration describes. Raises `OptionError` when its SDK isn't there."""
    dialect = _DIALECTS.get(config.protocol)
    if dialect is None:
        known = ", ".join(_DIALECTS)
        raise OptionError(
            f"provider '{config.name}': unknown protocol '{config.protocol}'; known are {known}"
        )
    try:
        module = import_module(f"{__name__}.{dialect.module}")
        made: Remote = getattr(module, dialect.provider)(config, http, caps, now)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in dialect.packages:
            raise
        command = install_command(dialect.extra)
        raise OptionError(f"provider '{config.name}' needs the '{package}' package: {command}") from None
    return made


# The open connections of one program, and how it waits for its calls.


class Connections:
    """One provider for each name and protocol, made anew when its configuration has changed.

    `aclose` closes all.
    """

    def __init__(
        self,
        http: Http,
        waiting: Waiting,
        caps: Caps | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        self.http = http
        self._caps = Caps() if caps is None else caps
        self.now = now
        self._waiting = waiting
        self._open: dict[tuple[str, str], Remote] = {}
        self._left: list[Remote] = []

    def provider(self, config: ProviderConfig) -> Remote:
        """The provider of that configuration. Raises `OptionError` when its protocol is not supported."""
        place = config.name, config.protocol
        found = self._open.get(place)
        if found is None or found.config != config:
            if found is not None:
                self._left.append(found)
            found = self._open[place] = make_provider(config, self.http, self._caps, self.now)
        return found

    def reply(self, answer: Reply | Awaitable[Reply], shown: Shown | None = None) -> Reply:
        """A provider's reply, awaited if need be, while ``shown`` is told of it. Raises `CallError`, and
        `MisuseError` for what is none."""
        given: object = answer
        if not isinstance(given, Reply) and hasattr(given, "__await__"):
            wait = self._waiting.wait
            if shown is None or not shown.reports:
                given = wait(answer)  # type: ignore[arg-type]
            else:
                from harnpy.llm.waiting import Watched  # asyncio comes with it

                given = Watched(answer, shown.tell).result(wait)  # type: ignore[arg-type]
        if not isinstance(given, Reply):
            raise MisuseError(f"a provider returned {type(given).__name__}: expected harnpy.llm.reply.Reply")
        return given

    async def aclose(self) -> None:
        """End the connections; the next call opens new ones."""
        for provider in (*self._open.values(), *self._left):
            await provider.aclose()
        self._left.clear()
