"""Providers and models: which there are, what their names mean, what they can do. Spec: 07 §1.14, §1.15."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.live_models import models_of
from harnpy.builtins.options import check_options
from harnpy.vm.declare import builtin
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# The providers: which there are, how they are configured, whether they could be called. Spec: 07 §1.14.


@builtin("llm_providers() -> list", family="llm_config")
def llm_providers(vm: Vm) -> list[str]:
    """Return the names of the providers that are configured or registered, sorted.

    Example: llm_providers().contains("anthropic")  // true
    """
    return models_of(vm).config.known_providers.names()


@builtin("llm_available_providers() -> list", family="llm_config")
def llm_available_providers(vm: Vm) -> list[str]:
    """Return the names of the providers that have credentials or need none.

    Example: llm_available_providers().contains("mock")  // true
    """
    return models_of(vm).config.known_providers.available_names()


@builtin("llm_config(provider?: string) -> any", family="llm_config")
def llm_config(vm: Vm, provider: str | None) -> Dict | None:
    """Return a provider's configuration, nil if unknown; without a name, all of them by name.

    `{base_url, auth_style, auth_envs, auth_available, chat_endpoint, …}`. Keys never show.

    Example: llm_config("no such provider")  // nil
    """
    providers = models_of(vm).config.known_providers
    return providers.describe_all() if provider is None else providers.describe(provider)


@builtin("llm_provider_catalog() -> dict", family="llm_config")
def llm_provider_catalog(vm: Vm) -> Dict:
    """Return the whole configuration of providers and models.

    `{providers, known_model_names, available_providers, aliases, models, qc_defaults}`.

    Example: llm_provider_catalog().providers.count() > 0  // true
    """
    config = models_of(vm).config
    return {
        "providers": config.known_providers.describe_all(),
        "known_model_names": config.known_models.alias_names(),
        "available_providers": config.known_providers.available_names(),
        "aliases": config.known_models.aliases(),
        "models": config.known_models.entries(),
        "qc_defaults": config.known_models.qc_defaults(),
    }


@builtin("provider_register(name: string) -> bool", family="llm_config")
def provider_register(vm: Vm, name: str) -> bool:
    """Register a provider's name; its calls use the configuration.

    Example:
        provider_register("in_house")
        llm_providers().contains("in_house")  // true
    """
    if not name.strip():
        raise RuntimeFault("provider_register: provider name is required")
    models_of(vm).config.known_providers.register(name)
    return True


@builtin("llm_healthcheck(provider?: any, options?: dict) -> dict", family="llm_config", guarded=True)
async def llm_healthcheck(vm: Vm, provider: Value, options: Value) -> Dict:
    """Check whether a provider can be called: `{provider, valid, status, message, metadata}`.

    Asks a known provider that has its key for its models. `provider` may be
    `{provider, api_key, model}`; `options`: `{api_key, model, warm, timeout}`. Never shows a key.

    Example: llm_healthcheck("mock").valid  // true
    """
    from harnpy.builtins.bridge.live_http import http_of
    from harnpy.llm.providers.health import healthcheck

    check_options(vm, "llm_healthcheck", provider)
    check_options(vm, "llm_healthcheck", options)
    models = models_of(vm)
    given = {"provider": provider} if type(provider) is not dict else provider
    read = models.options({**given, **(options if type(options) is dict else {})})
    name = models.router.provider(read.string("provider"), read.string("model"))
    return await healthcheck(http_of(vm), models.config.known_providers, name, read)


# What the names of models mean: aliases, providers, tiers. Spec: 07 §1.14.


model_builtin = partial(declare, family="llm_config")


@model_builtin("llm_infer_provider(model: string) -> string")
def llm_infer_provider(vm: Vm, model: str) -> str:
    """Return the provider of a model, by the model's id alone: `"llama3.2:latest"` is ollama's.

    Example: llm_infer_provider("llama3.2:latest")  // "ollama"
    """
    return models_of(vm).config.known_models.infer_provider(model)


@model_builtin("llm_model_tier(model: string) -> string")
def llm_model_tier(vm: Vm, model: str) -> str:
    """Return how strong a model is, by its id: `"small"`, `"mid"` or `"frontier"`.

    Example: llm_model_tier("claude-opus-4-1")  // "frontier"
    """
    return models_of(vm).config.known_models.tier(model)


@model_builtin("llm_resolve_model(alias: string) -> dict")
def llm_resolve_model(vm: Vm, alias: str) -> Dict:
    """Return the model that an alias or id means: `{id, provider, alias, tool_format, tier}`.

    Example: llm_resolve_model("llama3.2:latest").id  // "llama3.2:latest"
    """
    known_models = models_of(vm).config.known_models
    return known_models.describe(known_models.resolve(alias))


@model_builtin("llm_model_info(selector: string) -> dict")
def llm_model_info(vm: Vm, selector: str) -> Dict:
    """Return all that is known about a model: `llm_resolve_model`, its capabilities and its configuration.

    Example: llm_model_info("llama3.2:latest").provider  // "ollama"
    """
    config = models_of(vm).config
    target = config.known_models.resolve(selector)
    can = config.capabilities.of(target.provider, target.id)
    return {
        **config.known_models.describe(target),
        "capabilities": can.as_dict(target.provider, target.id),
        "catalog": config.known_models.entry(target.id),
        "qc_default_model": config.known_models.qc_default(target.provider),
        "auth_available": config.known_providers.available(target.provider),
    }


@model_builtin("llm_pick_model(target: string, options?: dict) -> dict")
def llm_pick_model(vm: Vm, target: str, options: Value) -> Dict:
    """Return the model that a tier, an alias or an id means, as `{id, provider, tier}`.

    `options.provider` is where it should run: aliases of that provider's own are tried as well.

    Example: llm_pick_model("llama3.2:latest").provider  // "ollama"
    """
    check_options(vm, "llm_pick_model", options)
    models = models_of(vm)
    known_models = models.config.known_models
    found = known_models.pick(target, models.options(options).string("provider"))
    return {"id": found.id, "provider": found.provider, "tier": known_models.tier(found.id)}


@model_builtin("llm_known_models() -> list")
def llm_known_models(vm: Vm) -> list[str]:
    """Return the aliases of models, sorted.

    Example: llm_known_models().contains("frontier")  // true
    """
    return models_of(vm).config.known_models.alias_names()


@model_builtin("llm_qc_default_model(provider: string) -> string | nil")
def llm_qc_default_model(vm: Vm, provider: str) -> str | None:
    """Return a provider's cheap model for checking other models' work, or nil if none is configured.

    Example: llm_qc_default_model("anthropic")  // "claude-3-5-haiku-20241022"
    """
    return models_of(vm).config.known_models.qc_default(provider)


# What models can do: the matrix, and a program's overrides of it. Spec: 07 §1.15.


@builtin("provider_capabilities(provider?: string, model: string) -> dict", family="llm_config")
def provider_capabilities(vm: Vm, provider: str | None, model: str) -> dict[str, Any]:
    """Return the known capabilities of a model at a provider: `{native_tools, thinking_modes, …}`.

    For an unknown pair everything is false, empty or nil.

    Example: provider_capabilities("anthropic", "claude-sonnet-4-5").native_tools  // true
    """
    if provider is None or not provider.strip():
        raise RuntimeFault("provider_capabilities: provider name is required")
    return models_of(vm).config.capabilities.of(provider, model).as_dict(provider, model)


@builtin("provider_capabilities_install(toml: any) -> bool", family="llm_config")
def provider_capabilities_install(vm: Vm, toml: Value) -> bool:
    r"""Install overrides of the built-in capabilities from a TOML text, replacing earlier overrides.

    `[[provider.<name>]]` tables have a `model_match` and what the model can do; what one leaves out, it
    denies. `[provider_family]` says whose rows apply after a provider's own.

    Example:
        provider_capabilities_install("[[provider.local]]\nmodel_match = \"tiny*\"\nnative_tools = false\n")
        provider_capabilities("local", "tiny-1").native_tools  // false
    """
    if type(toml) is not str or not toml.strip():
        raise RuntimeFault("provider_capabilities_install: TOML source string required")
    models_of(vm).config.capabilities.install(toml)
    return True


@builtin("provider_capabilities_clear() -> bool", family="llm_config")
def provider_capabilities_clear(vm: Vm) -> bool:
    r"""Forget what `provider_capabilities_install` installed.

    Example:
        provider_capabilities_install("[[provider.local]]\nmodel_match = \"tiny*\"\nnative_tools = false\n")
        provider_capabilities_clear()
        provider_capabilities("local", "tiny-1").native_tools  // true
    """
    models_of(vm).config.capabilities.clear()
    return True
