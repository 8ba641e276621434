"""The providers: which there are, how they are configured, whether they could be called. Spec: 07 §1.14."""

from __future__ import annotations

from harnpy.builtins.bridge.live_models import models_of
from harnpy.builtins.bridge.option_tables import check_options
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import RuntimeFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("llm_providers() -> list", family="llm_config")
def llm_providers(vm: Vm) -> list[str]:
    """The names of the providers that are configured or registered, sorted.

    Example:
        llm_providers().contains("anthropic")  // true
    """
    return models_of(vm).config.known_providers.names()


@builtin("llm_available_providers() -> list", family="llm_config")
def llm_available_providers(vm: Vm) -> list[str]:
    """The names of the providers whose credentials are there, or that need none.

    Example:
        llm_available_providers().contains("mock")  // true
    """
    return models_of(vm).config.known_providers.available_names()


@builtin("llm_config(provider?: string) -> any", family="llm_config")
def llm_config(vm: Vm, provider: str | None) -> Dict | None:
    """How a provider is configured, nil for an unknown one; without a name, all by their names.

    `{base_url, auth_style, auth_envs, auth_available, chat_endpoint, …}`. Keys never show.

    Example:
        llm_config("no such provider")  // nil
    """
    providers = models_of(vm).config.known_providers
    return providers.describe_all() if provider is None else providers.describe(provider)


@builtin("llm_provider_catalog() -> dict", family="llm_config")
def llm_provider_catalog(vm: Vm) -> Dict:
    """All that is configured.

    `{providers, known_model_names, available_providers, aliases, models, qc_defaults}`.

    Example:
        llm_provider_catalog().providers.count() > 0  // true
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
    """Register a provider's name; what its calls need comes from the configuration.

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
    """Whether a provider can be called: `{provider, valid, status, message, metadata}`.

    Asks a known provider that has its key for its models. `provider` may be
    `{provider, api_key, model}`; `options`: `{api_key, model, warm, timeout}`. Never shows a key.

    Example:
        llm_healthcheck("mock").valid  // true
    """
    from harnpy.builtins.bridge.live_http import http_of
    from harnpy.llm.configuration.health import healthcheck

    check_options(vm, "llm_healthcheck", provider)
    check_options(vm, "llm_healthcheck", options)
    models = models_of(vm)
    given = {"provider": provider} if type(provider) is not dict else provider
    read = models.options({**given, **(options if type(options) is dict else {})})
    name = models.router.provider(read.string("provider"), read.string("model"))
    return await healthcheck(http_of(vm), models.config.known_providers, name, read)
