"""What models can do: the matrix, and a program's overrides of it. Spec: 07 §1.15."""

from __future__ import annotations

from harnpy.builtins.bridge.live_models import models_of
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import RuntimeFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("provider_capabilities(provider?: string, model: string) -> dict", family="llm_config")
def provider_capabilities(vm: Vm, provider: str | None, model: str) -> dict[str, Any]:
    """What a model can do at a provider, as far as is known: `{native_tools, thinking_modes, …}`.

    For an unknown pair everything is false, empty or nil.

    Example:
        provider_capabilities("anthropic", "claude-sonnet-4-5").native_tools  // true
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
        provider_capabilities_install("[[provider.local]]\nmodel_match = \"tiny*\"\nnative_tools = true\n")
        provider_capabilities("local", "tiny-1").native_tools  // true
    """
    if type(toml) is not str or not toml.strip():
        raise RuntimeFault("provider_capabilities_install: TOML source string required")
    models_of(vm).config.capabilities.install(toml)
    return True


@builtin("provider_capabilities_clear() -> bool", family="llm_config")
def provider_capabilities_clear(vm: Vm) -> bool:
    r"""Forget what `provider_capabilities_install` installed.

    Example:
        provider_capabilities_install("[[provider.local]]\nmodel_match = \"tiny*\"\nnative_tools = true\n")
        provider_capabilities_clear()
        provider_capabilities("local", "tiny-1").native_tools  // false
    """
    models_of(vm).config.capabilities.clear()
    return True
