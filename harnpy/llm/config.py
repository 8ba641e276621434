"""Which providers there are, and how each is reached. Spec: 07 §1.14."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """What a provider needs to make a call.

    ``auth_style``: ``bearer``, ``header`` (named by ``auth_header``), ``none``, or a cloud's own.
    ``api_key`` never shows: not in a repr, an error or a log. ``timeout`` is in seconds.
    """

    name: str
    base_url: str
    auth_style: str
    api_key: str | None = field(default=None, repr=False)
    chat_endpoint: str = "/chat/completions"
    extra_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth_header: str | None = None
    timeout: float = 120.0
