"""Who answers calls: one provider a module, behind one method. `mock` is the model citizen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from harnpy.llm.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from harnpy.llm.config import ProviderConfig
    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request


class Provider(Protocol):
    def complete(self, request: Request) -> Reply | Awaitable[Reply]:
        """Answer a request. Raises `CallError`."""


def make_provider(config: ProviderConfig) -> Provider:
    """The provider that the configuration describes. Raises `OptionError` when its protocol isn't spoken."""
    raise OptionError(f"provider '{config.name}' is not available: nothing here speaks its protocol")
