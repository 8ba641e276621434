"""Which providers there are, how each is reached, and which have a key. Spec: 07 §1.14.

A key is in the environment or in the providers file, goes into a `ProviderConfig`, and nowhere else: no
description, error or repr shows it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError
from harnpy.llm.configuration.config_files import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.llm.configuration.settings import ProviderEntry, Settings

MOCK = "mock"
DEFAULT_MODEL = "claude-sonnet-4-20250514"

_TIMEOUT_SECONDS = 120.0
_YES = ("1", "true", "yes", "on")
_KEYLESS = "none"
_SECRET_HEADER = re.compile("auth|key|token|secret|cookie", re.IGNORECASE)

_SHOWN_WHEN_SET = (
    "display_name",
    "icon",
    "base_url_env",
    "completion_endpoint",
    "auth_header",
    "rpm",
    "cost_per_1k_in",
    "cost_per_1k_out",
    "latency_p50_ms",
)


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """What a provider needs to make a call; see `ProviderEntry`. ``timeout``: seconds of silence."""

    name: str
    base_url: str
    auth_style: str
    api_key: str | None = field(default=None, repr=False)
    chat_endpoint: str = "/chat/completions"
    extra_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth_header: str | None = None
    timeout: float = _TIMEOUT_SECONDS
    protocol: str = "openai"

    def headers(self) -> dict[str, str]:
        """The headers of a request, the key among them."""
        if not self.api_key or self.auth_style == _KEYLESS:
            return dict(self.extra_headers)
        if self.auth_style == "header" and self.auth_header:
            return {**self.extra_headers, self.auth_header: self.api_key}
        return {**self.extra_headers, "authorization": f"Bearer {self.api_key}"}


class KnownProviders:
    """The providers of one program. ``source`` names the file that configures them."""

    def __init__(self, settings: Settings, env: Callable[[str], str | None], source: str = BUILT_IN) -> None:
        self._entries = settings.providers
        self._env = env
        self._source = source
        self._registered = {MOCK}
        self.default = env("HARN_DEFAULT_PROVIDER") or settings.default_provider

    def names(self) -> list[str]:
        """Those configured or registered, sorted."""
        return sorted(self._entries.keys() | self._registered)

    def register(self, name: str) -> None:
        self._registered.add(name)

    def find(self, name: str) -> ProviderEntry | None:
        """The configuration of a provider; a registered one may have none."""
        return self._entries.get(name)

    def rpm(self, name: str) -> int | None:
        """The calls a minute that a provider allows, if the configuration says."""
        entry = self.find(name)
        return None if entry is None else entry.rpm

    # Keys.

    def available(self, name: str) -> bool:
        """Whether a call could be authorised: the provider's key is there, or it needs none."""
        entry = self.find(name)
        if entry is None:
            return name == MOCK
        return entry.auth_style == _KEYLESS or self._key(entry) is not None

    def available_names(self) -> list[str]:
        return [name for name in self.names() if self.available(name)]

    def require(self, name: str) -> None:
        """Raise `OptionError` when no call of the provider could be made."""
        if name == MOCK:
            return
        entry = self._known(name)
        if not self.available(name):
            envs = " or ".join(entry.auth_envs) or "its api_key or auth_envs"
            raise OptionError(
                f"Missing API key: set {envs} environment variable (provider '{name}' selected via "
                f"LLM_PROVIDER / llm.toml @ {self._source}; set HARN_LLM_PROVIDER=mock or LLM_PROVIDER=mock "
                "for offline use)"
            )

    def _key(self, entry: ProviderEntry) -> str | None:
        found = (self._env(variable) for variable in entry.auth_envs)
        return next((key for key in found if key), None) or entry.api_key or None

    # How they are reached.

    def configuration(self, name: str, api_key: str | None = None) -> ProviderConfig:
        """What a call of the provider needs; ``api_key`` takes precedence over the configured one."""
        entry = self._known(name)
        return ProviderConfig(
            name=name,
            base_url=self._base_url(entry),
            auth_style=entry.auth_style,
            api_key=api_key or self._key(entry),
            chat_endpoint=entry.chat_endpoint,
            extra_headers=entry.extra_headers,
            auth_header=entry.auth_header,
            protocol=entry.protocol,
        )

    def default_model(self, name: str) -> str:
        """The model of a call that names none."""
        entry = self.find(name)
        if entry is None:
            return DEFAULT_MODEL
        named = (self._env(variable) for variable in entry.default_model_envs)
        return next((model for model in named if model), None) or entry.default_model or DEFAULT_MODEL

    def refuse_when_disabled(self, name: str) -> str | None:
        """Why no real call may be made, None when it may."""
        if (self._env("HARN_LLM_CALLS_DISABLED") or "").strip().lower() not in _YES:
            return None
        disabled = "LLM calls are disabled by HARN_LLM_CALLS_DISABLED"
        return f"{disabled}; provider `{name}` would make a real LLM request"

    def describe(self, name: str) -> dict[str, Any] | None:
        """The provider as programs see it, without anything secret."""
        entry = self.find(name)
        if entry is None:
            return None
        shown: dict[str, Any] = {
            "base_url": public_url(self._base_url(entry)),
            "auth_style": entry.auth_style,
            "auth_envs": list(entry.auth_envs),
            "auth_available": self.available(name),
            "chat_endpoint": entry.chat_endpoint,
        }
        shown |= {key: getattr(entry, key) for key in _SHOWN_WHEN_SET if getattr(entry, key) is not None}
        if entry.features:
            shown["features"] = list(entry.features)
        if entry.extra_headers:
            shown["extra_headers"] = {
                header: "[redacted]" if _SECRET_HEADER.search(header) else value
                for header, value in entry.extra_headers.items()
            }
        return shown

    def describe_all(self) -> dict[str, Any]:
        return {name: self.describe(name) for name in self.names() if self.find(name) is not None}

    def require_known(self, name: str) -> None:
        """Raise `OptionError` for a name that is neither configured nor registered."""
        if name not in self._entries and name not in self._registered:
            raise OptionError(unknown_provider(name, self.names()))

    def _known(self, name: str) -> ProviderEntry:
        self.require_known(name)
        entry = self.find(name)
        if entry is None:
            raise OptionError(f"provider '{name}' is registered, but nothing is configured for it")
        return entry

    def _base_url(self, entry: ProviderEntry) -> str:
        url = (entry.base_url_env and self._env(entry.base_url_env)) or entry.base_url
        if url and "://" not in url:
            url = f"http://{url}"  # OLLAMA_HOST is often host:port
        url = url.rstrip("/")
        return url.removesuffix("/v1") if entry.chat_endpoint.startswith("/v1/") else url


def unknown_provider(name: str, known: list[str]) -> str:
    return f"Unknown provider '{name}'; known are {', '.join(known)}"


def public_url(url: str) -> str:
    """A URL without the user and password that it may carry."""
    return re.sub(r"://[^/@]*@", "://", url)
