"""The known providers: how each is reached, and which have a key. Spec: 07 §1.14.

A key is in the environment or in the providers file, goes into a `ProviderConfig`, and nowhere else: no
description, error or repr shows it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from harnpy.faults import OptionError
from harnpy.llm.configuration.model_settings import BUILT_IN, DEFAULTS
from harnpy.llm.configuration.prices import Price
from harnpy.world.files import plain_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.llm.configuration.model_settings import ProviderEntry, Read, Settings

# What calls to a cloud need besides a key: a place, whom they are from, and what signs them.
#
# A cloud's models are spoken to in the protocol of their makers: Claude in Anthropic's, others in that of
# chat completions. Pure. Spec: 07 §1.14.


#: The protocol of a cloud's models that aren't Claude.
_OF_OTHERS = {"bedrock": "bedrock_chat", "vertex": "vertex_chat"}

#: The protocols whose requests only an SDK can authorise or place.
IN_CLOUDS = ("azure_openai", *_OF_OTHERS, *_OF_OTHERS.values())

_REGIONAL = "{region}-aiplatform.googleapis.com"
#: The places of Vertex AI that are called otherwise.
_WIDE = {
    "global": "aiplatform.googleapis.com",
    "us": "aiplatform.us.rep.googleapis.com",
    "eu": "aiplatform.eu.rep.googleapis.com",
}

#: How a call is authorised when the key is a token, and when Google's credentials file makes the tokens.
BEARER, GOOGLE = "bearer", "google"
#: How Amazon's calls are signed: with a secret, and a token when that is a temporary one.
SIGNED = "aws_sigv4"
AWS_SECRET, AWS_SESSION = "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"


@dataclass(frozen=True, slots=True)
class Cloud:
    """The address and the account of a provider's calls; None for what it doesn't need.

    ``secret`` and ``session`` sign calls to Amazon; ``credentials`` is the text of a Google service account's
    key, which makes tokens.
    """

    region: str | None = None
    project: str | None = None
    api_version: str | None = None
    secret: str | None = field(default=None, repr=False)
    session: str | None = field(default=None, repr=False)
    credentials: str | None = field(default=None, repr=False)

    def secrets(self) -> list[str]:
        """Return the secrets, which nothing may show."""
        private = of_account(self.credentials, "private_key")
        return [each for each in (self.secret, self.session, private) if each]


def protocol_of(protocol: str, model: str | None) -> str:
    """The protocol in which a provider of ``protocol`` serves a model.

    The name of an Amazon resource tells nothing of its model: Claude's is assumed, unless the configuration
    names the protocol of the others itself.
    """
    claude = model is None or "claude" in model.lower() or model.startswith("arn:")
    return protocol if claude else _OF_OTHERS.get(protocol, protocol)


def placed(url: str, region: str | None) -> str:
    """An address in a region, whose name takes the place of ``{region}`` in it."""
    if region is None:
        return url
    return url.replace(_REGIONAL, _WIDE.get(region, _REGIONAL)).replace("{region}", region)


def of_account(credentials: str | None, name: str) -> str | None:
    """A text of a service account's key, if that is what ``credentials`` holds."""
    try:
        key = json.loads(credentials or "null")
    except ValueError:
        return None
    value = key.get(name) if isinstance(key, dict) else None
    return value if isinstance(value, str) else None


MOCK = "mock"
DEFAULT_MODEL = "claude-sonnet-4-20250514"

_TIMEOUT_SECONDS = 120.0
_YES = ("1", "true", "yes", "on")
_KEYLESS = "none"
_AZURE = "azure_openai"
_SECRET_HEADER = re.compile("auth|key|token|secret|cookie", re.IGNORECASE)

_SHOWN_WHEN_SET = tuple(
    "display_name icon base_url_env completion_endpoint auth_header rpm cost_per_1k_in cost_per_1k_out "
    "latency_p50_ms".split()
)

#: Ways to authorise a call that are not a header of the configuration's.
_BY_THE_SDK = (SIGNED, GOOGLE)


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """The configuration of a provider; see `ProviderEntry`. ``timeout``: seconds of silence.

    ``auth_style`` is how this call is authorised: ``bearer`` where a token takes the place of a cloud's key,
    ``google`` where a file of credentials makes the tokens.
    """

    name: str
    base_url: str
    auth_style: str
    api_key: str | None = field(default=None, repr=False)
    chat_endpoint: str = "/chat/completions"
    extra_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    extra_body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    auth_header: str | None = None
    timeout: float = _TIMEOUT_SECONDS
    protocol: str = "openai"
    cloud: Cloud = field(default_factory=Cloud)
    features: tuple[str, ...] = ()

    def secrets(self) -> list[str]:
        """Return the secrets, which nothing may show, without those in headers."""
        return [self.api_key or "", *self.cloud.secrets()]

    def headers(self) -> dict[str, str]:
        """The headers of a request, the key among them."""
        if not self.api_key or self.auth_style == _KEYLESS or self.auth_style in _BY_THE_SDK:
            return dict(self.extra_headers)
        if self.auth_style == _AZURE:
            return {**self.extra_headers, "api-key": self.api_key}
        if self.auth_style == "header" and self.auth_header:
            return {**self.extra_headers, self.auth_header: self.api_key}
        return {**self.extra_headers, "authorization": f"Bearer {self.api_key}"}


class ProjectProviders(NamedTuple):
    """The providers that a project configures, and what the program may read for them: by its own rules.

    ``untrusted`` is why none of them may be called, if nobody trusts the project.
    """

    names: frozenset[str]
    untrusted: str | None
    env: Callable[[str], str | None]
    read: Read


class KnownProviders:
    """The providers of one program. ``source`` names the file that configures them; ``read`` returns the text
    of a file of credentials."""

    def __init__(
        self,
        settings: Settings,
        env: Callable[[str], str | None],
        read: Read,
        project: ProjectProviders,
        source: str = BUILT_IN,
    ) -> None:
        self._entries = settings.providers
        self._env = env
        self._read = read
        self._project = project
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

    def price(self, name: str) -> Price | None:
        """Return the provider's price for every model, if the configuration says."""
        entry = self.find(name)
        if entry is None or entry.cost_per_1k_in is None or entry.cost_per_1k_out is None:
            return None
        return Price(entry.cost_per_1k_in * 1000, entry.cost_per_1k_out * 1000)

    def style(self, name: str) -> str:
        """Return whose format the provider's tools, calls and results are recorded in: "anthropic", "ollama"
        or "openai"."""
        entry = self.find(name)
        if entry is not None and entry.protocol == "anthropic":
            return "anthropic"
        return "ollama" if entry is not None and "ollama_messages" in entry.features else "openai"

    def url(self, name: str) -> str:
        """Return a provider's address, "" when it has none."""
        entry = self.find(name)
        return "" if entry is None else self._base_url(name, entry)

    def is_local(self, name: str) -> bool:
        """Return True for a server of one's own: keyless, and known as such or on this machine."""
        entry = self.find(name)
        if entry is None or _auth_style(entry, self.url(name)) != _KEYLESS:
            return False
        known = DEFAULTS.providers.get(name)
        return (known is not None and known.auth_style == _KEYLESS) or on_this_machine(self.url(name))

    # Keys.

    def available(self, name: str) -> bool:
        """Return True if a call could be authorised: the provider's key is there, or it needs none."""
        entry = self.find(name)
        if entry is None or self._is_untrusted(name):
            return name == MOCK
        style, key = self._authorisation(name, entry)
        if style == SIGNED:
            return bool(key and self._variables(name)(AWS_SECRET))
        return style in (_KEYLESS, GOOGLE) or key is not None

    def available_names(self) -> list[str]:
        return [name for name in self.names() if self.available(name)]

    def keys_found(self, name: str) -> list[str]:
        """Return where the provider's keys are: the variables that are set, and its `api_key`, by name."""
        entry = self.find(name)
        if entry is None or self._is_untrusted(name):
            return []
        of_keys = (*entry.token_envs, *entry.auth_envs, *filter(None, [entry.credentials_env]))
        found = list(filter(self._variables(name), of_keys))
        return [*found, f"api_key in {self._source}"] if entry.api_key else found

    def require(self, name: str) -> None:
        """Raise `OptionError` when no call of the provider could be made."""
        if name == MOCK:
            return
        entry = self._known(name)
        if not self.available(name):
            disabled = self.refuse_when_disabled(name)
            if disabled is not None:  # a key wouldn't help
                raise OptionError(disabled)
            envs = " or ".join(_variables_of(entry))
            wanted = f"{envs} environment variable" if envs else f"api_key or auth_envs of [providers.{name}]"
            if not (entry.auth_style or envs):
                wanted += f', or auth_style = "{_KEYLESS}" there if the server needs no key'
            raise OptionError(
                f"Missing API key: set {wanted} (provider '{name}', configured by {self._source}; for "
                'offline use set HARN_LLM_PROVIDER=mock, or provider: "mock" where a call names its provider)'
            )

    def _is_untrusted(self, name: str) -> bool:
        return self._project.untrusted is not None and name in self._project.names

    def _variables(self, name: str) -> Callable[[str], str | None]:
        """Return the variables that may be read for a provider."""
        return self._project.env if name in self._project.names else self._env

    def _authorisation(
        self, name: str, entry: ProviderEntry, api_key: str | None = None
    ) -> tuple[str, str | None]:
        """Return how a call is authorised, and the key or token for it, None where there is none."""
        token = None if api_key else self._first(name, entry.token_envs)
        if token:
            return BEARER, token
        style = _auth_style(entry, self._base_url(name, entry))
        key = None if api_key else self._first(name, entry.auth_envs)
        if key is None:
            key = api_key or entry.api_key or None
            if key is not None and style == SIGNED:
                style = BEARER  # it takes two keys to sign, and one that stands alone is a token
            elif key is None and entry.credentials_env and self._variables(name)(entry.credentials_env):
                style = GOOGLE
        return style, key

    def _first(self, name: str, variables: tuple[str, ...]) -> str | None:
        """The value of the first variable that is set, of those of a provider."""
        return next(filter(None, map(self._variables(name), variables)), None) if variables else None

    # How they are reached.

    def configuration(
        self, name: str, api_key: str | None = None, model: str | None = None
    ) -> ProviderConfig:
        """Return the configuration for a call of the provider; ``api_key`` replaces the configured one.

        A cloud speaks of each ``model`` in its own protocol. Raises `OptionError` when something is missing.
        """
        entry = self._known(name)
        style, key = self._authorisation(name, entry, api_key)
        base_url = self._base_url(name, entry)
        if not base_url:
            raise OptionError(_needs(name, "an address", (entry.base_url_env,), "base_url"))
        return ProviderConfig(
            name=name,
            base_url=base_url,
            auth_style=style,
            api_key=key,
            chat_endpoint=entry.chat_endpoint,
            extra_headers=entry.extra_headers,
            extra_body=entry.extra_body,
            auth_header=entry.auth_header,
            protocol=protocol_of(entry.protocol, model),
            cloud=self._cloud(name, entry, style),
            features=entry.features,
        )

    def _cloud(self, name: str, entry: ProviderEntry, style: str) -> Cloud:
        """Return what a cloud's call needs besides a key. Raises `OptionError` for what is not known."""
        signed = style == SIGNED
        credentials = self._credentials(name, entry) if style == GOOGLE else None
        project = self._first(name, entry.project_envs) or entry.project
        variables = self._variables(name)
        cloud = Cloud(
            region=self._region(name, entry),
            project=project or of_account(credentials, "project_id"),
            api_version=self._first(name, entry.api_version_envs) or entry.api_version,
            secret=variables(AWS_SECRET) if signed else None,
            session=variables(AWS_SESSION) if signed else None,
            credentials=credentials,
        )
        if entry.region_envs and not cloud.region:
            raise OptionError(_needs(name, "a region", entry.region_envs, "region"))
        if entry.project_envs and not cloud.project:
            raise OptionError(_needs(name, "a project", entry.project_envs, "project"))
        return cloud

    def _credentials(self, name: str, entry: ProviderEntry) -> str:
        """The text of the file of credentials. Raises `OptionError` when it can't be read."""
        variable = entry.credentials_env or ""
        path = self._variables(name)(variable) or ""
        try:
            return (self._project.read if name in self._project.names else self._read)(path)
        except (OSError, UnicodeDecodeError) as error:
            reason = plain_reason(error)
            raise OptionError(f"{variable}: {path}: {reason}") from None

    def default_model(self, name: str) -> str:
        """The model of a call that names none."""
        entry = self.find(name)
        if entry is None:
            return DEFAULT_MODEL
        return self._first(name, entry.default_model_envs) or entry.default_model or DEFAULT_MODEL

    def refuse_when_disabled(self, name: str) -> str | None:
        """Return why no real call may be made, None when it may."""
        if (self._env("HARN_LLM_CALLS_DISABLED") or "").strip().lower() not in _YES:
            return None
        disabled = "LLM calls are disabled by HARN_LLM_CALLS_DISABLED"
        instead = "tests call no real model, use llm_mock (docs/testing.md)"
        return f"{disabled}; provider `{name}` would make a real LLM request: {instead}"

    def describe(self, name: str) -> dict[str, Any] | None:
        """The provider as programs see it, without anything secret."""
        entry = self.find(name)
        if entry is None:
            return None
        shown: dict[str, Any] = {
            "base_url": public_url(self._base_url(name, entry)),
            "auth_style": _auth_style(entry, self._base_url(name, entry)),
            "auth_envs": list(entry.auth_envs),
            "auth_available": self.available(name),
            "chat_endpoint": entry.chat_endpoint,
        }
        placed_at = {
            "region": self._region(name, entry),
            "project": self._first(name, entry.project_envs) or entry.project,
            "api_version": self._first(name, entry.api_version_envs) or entry.api_version,
        }
        shown |= {key: value for key, value in placed_at.items() if value}
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
        """Raise `OptionError` for an unknown name, and for one that an untrusted project configures."""
        if self._is_untrusted(name):
            raise OptionError(str(self._project.untrusted))
        if name not in self._entries and name not in self._registered:
            raise OptionError(unknown_provider(name, self.names()))

    def _known(self, name: str) -> ProviderEntry:
        self.require_known(name)
        entry = self.find(name)
        if entry is None:
            raise OptionError(f"provider '{name}' is registered, but nothing is configured for it")
        return entry

    def _region(self, name: str, entry: ProviderEntry) -> str | None:
        return self._first(name, entry.region_envs) or entry.region

    def _base_url(self, name: str, entry: ProviderEntry) -> str:
        url = (entry.base_url_env and self._variables(name)(entry.base_url_env)) or entry.base_url
        if url and "://" not in url:
            # OLLAMA_HOST is often host:port; no key goes anywhere in the clear unless the scheme says so.
            url = f"{'http' if _auth_style(entry, f'//{url}') == _KEYLESS else 'https'}://{url}"
        url = placed(url.rstrip("/"), self._region(name, entry))
        return url.removesuffix("/v1") if entry.chat_endpoint.startswith("/v1/") else url


def _variables_of(entry: ProviderEntry) -> list[str]:
    """The variables that may authorise calls, each with what it needs besides."""
    keys = [f"{key} and {AWS_SECRET}" if entry.auth_style == SIGNED else key for key in entry.auth_envs]
    return [*entry.token_envs, *keys, *filter(None, [entry.credentials_env])]


def _needs(name: str, what: str, variables: tuple[str | None, ...], key: str) -> str:
    ways = [f"set {' or '.join(filter(None, variables))}"] if any(variables) else []
    return f"provider '{name}' needs {what}: {', or '.join([*ways, f'`{key}` in the providers file'])}"


def _auth_style(entry: ProviderEntry, url: str) -> str:
    """Return how calls are authorised; a server on this machine needs no key unless its entry names one."""
    names_key = entry.api_key or _variables_of(entry)
    return entry.auth_style or (BEARER if names_key or not on_this_machine(url) else _KEYLESS)


def on_this_machine(url: str) -> bool:
    """Return True for an address of the loopback interface."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def unknown_provider(name: str, known: list[str]) -> str:
    return f"Unknown provider '{name}'; known are {', '.join(known)}"


def public_url(url: str) -> str:
    """A URL without the user and password that it may carry."""
    return re.sub(r"://[^/@]*@", "://", url)
