"""Checks whether a provider could be called: its configuration, then a probe. Spec: 07 §1.14."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError
from harnpy.llm.configuration.known_providers import IN_CLOUDS, MOCK, public_url, unknown_provider
from harnpy.llm.errors import BLOCKED, CallError
from harnpy.llm.providers import make_provider
from harnpy.world.egress import EgressBlocked
from harnpy.world.http import Unreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from harnpy.formats.dicts import Options
    from harnpy.llm.configuration.known_providers import KnownProviders, ProviderConfig
    from harnpy.world.http import Http

    Report = dict[str, Any]

_OLLAMA = "ollama"
_PROBE_SECONDS = 10.0


async def healthcheck(http: Http, providers: KnownProviders, provider: str, options: Options) -> Report:
    """A report on the provider; ``options``: api_key, model, warm, timeout (in seconds)."""
    wrong = _wrong(providers, provider, options)
    if wrong is not None:
        return wrong
    if provider == MOCK:
        return _report(provider, True, "ok", "Mock provider answers without a network")
    config = providers.configuration(provider, options.string("api_key"))
    timeout = options.number("timeout") or min(config.timeout, _PROBE_SECONDS)
    if provider == _OLLAMA and options.flag("warm"):
        body = {"model": options.string("model"), "stream": False, "keep_alive": "10m"}
        return await _probe(http, config, "POST", "/api/generate", timeout, body)
    entry = providers.find(provider)
    path = "/models" if entry is None else entry.health_endpoint
    if config.protocol in IN_CLOUDS:
        return await _probe_cloud(http, config, path, timeout)
    return await _probe(http, config, "GET", path, timeout)


def _wrong(providers: KnownProviders, provider: str, options: Options) -> Report | None:
    """The report on what is wrong with the configuration; None when nothing is."""
    if provider not in providers.names():
        message = unknown_provider(provider, providers.names())
        return _report(provider, False, "unknown_provider", message)
    reason = "not_configured" if providers.find(provider) is None else "missing_api_key"
    try:
        if not options.string("api_key"):
            providers.require(provider)
        if provider != MOCK:
            reason = "not_configured"
            providers.configuration(provider, options.string("api_key"))
    except OptionError as error:
        return _report(provider, False, reason, error.message)
    if provider == _OLLAMA and options.flag("warm") and not options.string("model"):
        return _report(provider, False, "invalid_request", "Ollama warmup requires options.model")
    refusal = None if provider == MOCK else providers.refuse_when_disabled(provider)
    return None if refusal is None else _report(provider, False, "calls_disabled", refusal)


async def _probe(
    http: Http, config: ProviderConfig, method: str, path: str, timeout: float, body: Any = None
) -> Report:
    """Report on the provider's response to a small request. The key is sent, and never shown."""
    url = config.base_url + path
    return await _judge(config, url, http.status(method, url, config.headers(), timeout, body), timeout)


async def _probe_cloud(http: Http, config: ProviderConfig, path: str, timeout: float) -> Report:
    """Likewise for a cloud, by whose SDK the request is authorised."""
    try:
        provider = make_provider(config, http)
    except (OptionError, CallError) as error:
        return _report(config.name, False, "not_configured", error.message)
    url = provider.health_url(path)
    return await _judge(config, url, provider.status(url, timeout), timeout)


async def _judge(config: ProviderConfig, url: str, response: Awaitable[int], timeout: float) -> Report:
    """Report on the status of a response."""
    place: Report = {"url": public_url(url)}
    try:
        status = await response
    except TimeoutError:
        message = f"{config.name} did not answer within {timeout:g}s"
        return _report(config.name, False, "timeout", message, **place)
    except EgressBlocked as error:
        return _report(config.name, False, BLOCKED, str(error), **place)
    except Unreachable as error:
        message = f"{config.name} can't be reached: {error.kind}"
        return _report(config.name, False, "unreachable", message, **place)
    place["http_status"] = status
    if 200 <= status < 300:
        return _report(config.name, True, "ok", f"{config.name} is reachable", **place)
    if status in (401, 403):
        message = f"{config.name} rejected the API key (HTTP {status})"
        return _report(config.name, False, "auth_failed", message, **place)
    return _report(config.name, False, "http_error", f"{config.name} answered HTTP {status}", **place)


def _report(provider: str, valid: bool, status: str, message: str, **metadata: Any) -> Report:
    """``metadata.reason`` is one word for why the provider isn't valid."""
    return {
        "provider": provider,
        "valid": valid,
        "status": status,
        "message": message,
        "metadata": metadata if valid else {"reason": status, **metadata},
    }
