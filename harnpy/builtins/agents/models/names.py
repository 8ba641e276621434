"""What the names of models mean: aliases, providers, tiers. Spec: 07 §1.14."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_models import models_of
from harnpy.builtins.bridge.option_tables import check_options
from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="llm_config")


@builtin("llm_infer_provider(model: string) -> string")
def llm_infer_provider(vm: Vm, model: str) -> str:
    """The provider of a model, by the model's id alone: `"llama3.2:latest"` is ollama's.

    Example:
        llm_infer_provider("llama3.2:latest")  // "ollama"
    """
    return models_of(vm).config.known_models.infer_provider(model)


@builtin("llm_model_tier(model: string) -> string")
def llm_model_tier(vm: Vm, model: str) -> str:
    """How strong a model is, by its id: `"small"`, `"mid"` or `"frontier"`.

    Example:
        llm_model_tier("claude-opus-4-1")  // "frontier"
    """
    return models_of(vm).config.known_models.tier(model)


@builtin("llm_resolve_model(alias: string) -> dict")
def llm_resolve_model(vm: Vm, alias: str) -> Dict:
    """The model that an alias or id means: `{id, provider, alias, tool_format, tier}`.

    Example:
        llm_resolve_model("llama3.2:latest").id  // "llama3.2:latest"
    """
    known_models = models_of(vm).config.known_models
    return known_models.describe(known_models.resolve(alias))


@builtin("llm_model_info(selector: string) -> dict")
def llm_model_info(vm: Vm, selector: str) -> Dict:
    """All that is known of a model: as `llm_resolve_model`, with its capabilities and its configuration.

    Example:
        llm_model_info("llama3.2:latest").provider  // "ollama"
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


@builtin("llm_pick_model(target: string, options?: dict) -> dict")
def llm_pick_model(vm: Vm, target: str, options: Value) -> Dict:
    """The model that a tier, an alias or an id means, as `{id, provider, tier}`.

    `options.provider` is where it should run: aliases of that provider's own are tried as well.

    Example:
        llm_pick_model("llama3.2:latest").provider  // "ollama"
    """
    check_options(vm, "llm_pick_model", options)
    models = models_of(vm)
    known_models = models.config.known_models
    found = known_models.pick(target, models.options(options).string("provider"))
    return {"id": found.id, "provider": found.provider, "tier": known_models.tier(found.id)}


@builtin("llm_known_models() -> list")
def llm_known_models(vm: Vm) -> list[str]:
    """The aliases that stand for models, sorted.

    Example:
        llm_known_models().contains("frontier")  // true
    """
    return models_of(vm).config.known_models.alias_names()


@builtin("llm_qc_default_model(provider: string) -> any")
def llm_qc_default_model(vm: Vm, provider: str) -> str | None:
    """A provider's cheap model for checking other models' work, nil when none is configured.

    Example:
        llm_qc_default_model("anthropic")  // "claude-3-5-haiku-20241022"
    """
    return models_of(vm).config.known_models.qc_default(provider)
