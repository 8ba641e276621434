"""Routing: the provider and the model of a call, by name or by policy, and those that follow if it fails.

Spec: 07 §1.2, §1.14.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import OptionError
from harnpy.formats.display import display
from harnpy.formats.suggestions import STATIC_LIMIT, nearest
from harnpy.llm.configuration.known_models import TIERS, without_prefix
from harnpy.llm.configuration.known_providers import MOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.formats.dicts import Options
    from harnpy.llm.configuration.known_models import KnownModels, Target
    from harnpy.llm.configuration.known_providers import KnownProviders

MANUAL = "manual"
ALWAYS = "always"
CHEAPEST = "cheapest_over_quality"
FASTEST = "fastest_over_quality"

#: The provider of a server of one's own, and the one whose models have their vendor's name before a slash.
LOCAL, OPENROUTER = "local", "openrouter"
#: Shorter names are too like each other.
_LEAST_NAME = 4

_MODES = (MANUAL, ALWAYS, CHEAPEST, FASTEST)
_CALL = re.compile(r"\s*(\w+)\s*(?:\(\s*(.*?)\s*\))?\s*")
_EXPECTED = 'expected "manual", "always(id)", "cheapest_over_quality(t)", or "fastest_over_quality(t)"'


@dataclass(frozen=True, slots=True)
class Policy:
    """``argument`` is the model of `always`, the least tier of the other two."""

    mode: str = MANUAL
    argument: str = ""

    @property
    def label(self) -> str:
        return f"{self.mode}({self.argument})" if self.argument else self.mode

    @property
    def quality(self) -> str | None:
        return self.argument if self.mode in (CHEAPEST, FASTEST) else None


BY_HAND = Policy()


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of a policy; ``alternatives`` are all the models that it considered."""

    provider: str = ""
    model: str = ""
    alternatives: tuple[dict[str, Any], ...] = ()


def read_policy(given: Any) -> Policy:
    """Raises `OptionError`."""
    if given is None:
        return BY_HAND
    if isinstance(given, str):
        call = _CALL.fullmatch(given)
        mode, argument = (call[1], call[2] or "") if call else (given, "")
    elif isinstance(given, dict):
        mode = display(given.get("mode", MANUAL))
        found = (given.get(key) for key in ("target", "quality", "id"))
        argument = next((display(value) for value in found if value is not None), "")
    else:
        raise OptionError("route_policy: expected string or dict")
    if mode not in _MODES:
        raise OptionError(f'route_policy: {_EXPECTED}, got "{mode}"')
    if mode == MANUAL:
        return BY_HAND
    if mode == ALWAYS and not argument:
        raise OptionError("route_policy: always needs the id of a model")
    if mode != ALWAYS and argument not in TIERS:
        raise OptionError(f'route_policy: quality must be "small", "mid", or "frontier", got "{argument}"')
    return Policy(mode, argument)


def choose(
    policy: Policy,
    known_models: KnownModels,
    providers: KnownProviders,
    wanted: str | None,
    callable_now: Callable[[str], bool],
) -> Choice:
    """The model that the policy prefers. Raises `OptionError` when no model is good enough.

    ``wanted`` is the only provider that the caller accepts. The mock provider stands for all others.
    """
    if policy.mode == ALWAYS:
        target = known_models.pick(policy.argument)
        return Choice(wanted or target.provider, target.id)
    anything = wanted == MOCK
    candidates = [
        Candidate(target, known_models, providers, anything or callable_now(target.provider))
        for target in known_models.targets()
        if anything or wanted in (None, target.provider)
    ]
    good = [each for each in candidates if each.usable and each.reaches(policy.argument)]
    if not good:
        raise OptionError(
            f"route_policy: {policy.label} finds no model: none of that quality is known at a provider "
            "whose credentials are available"
        )
    best = min(good, key=Candidate.by_cost if policy.mode == CHEAPEST else Candidate.by_latency)
    return Choice(best.provider, best.model, tuple(each.as_dict(best) for each in candidates))


class Candidate:
    """A model that may be chosen. ``cost`` is USD for a million tokens in and out, None when unknown."""

    def __init__(
        self, target: Target, known_models: KnownModels, providers: KnownProviders, usable: bool
    ) -> None:
        self.provider, self.model = target.provider, target.id
        self.tier = known_models.tier(target.id)
        self.usable = usable
        entry = providers.find(target.provider)
        self.latency = None if entry is None else entry.latency_p50_ms
        price = known_models.price(target.id, target.provider)
        self.cost = None if price is None else price.input_per_mtok + price.output_per_mtok

    def reaches(self, quality: str) -> bool:
        return self.tier in TIERS and TIERS.index(self.tier) >= TIERS.index(quality)

    def by_cost(self) -> tuple[float, float, str, str]:
        return (_or_worst(self.cost), _or_worst(self.latency), self.provider, self.model)

    def by_latency(self) -> tuple[float, float, str, str]:
        return (_or_worst(self.latency), _or_worst(self.cost), self.provider, self.model)

    def as_dict(self, chosen: Candidate) -> dict[str, Any]:
        return {
            "provider": self.provider,
            "model": self.model,
            "quality": self.tier,
            "available": self.usable,
            "cost_per_mtok": self.cost,
            "latency_p50_ms": self.latency,
            "selected": self is chosen,
        }


def _or_worst(value: float | None) -> float:
    return inf if value is None else value


class Stop(NamedTuple):
    """One provider to ask, for one model."""

    provider: str
    model: str


class Route(NamedTuple):
    """The stops of a call, in the order in which they are tried, and why the first was chosen."""

    first: Stop
    fallbacks: tuple[Stop, ...] = ()
    policy: str = MANUAL
    quality: str | None = None
    alternatives: tuple[dict[str, Any], ...] = ()

    def fallback_names(self) -> list[str]:
        return [stop.provider for stop in self.fallbacks]

    def decision(self) -> dict[str, Any] | None:
        """The row of the transcript sidecar; None for a call without a policy or fallbacks (08 §3.2)."""
        if self.policy == MANUAL and not self.fallbacks:
            return None
        return {
            "policy": self.policy,
            "requested_quality": self.quality,
            "selected_provider": self.first.provider,
            "selected_model": self.first.model,
            "fallback_chain": self.fallback_names(),
            "alternatives": list(self.alternatives),
        }


class Router:
    """``callable_now(provider)``: whether it could be called: its key is there, or mocks reply for it."""

    def __init__(
        self,
        providers: KnownProviders,
        known_models: KnownModels,
        env: Callable[[str], str | None],
        callable_now: Callable[[str], bool],
    ) -> None:
        self._providers = providers
        self._known_models = known_models
        self._env = env
        self._callable_now = callable_now

    def route(self, options: Options) -> Route:
        """The route that the options ask for. Raises `OptionError`."""
        policy = read_policy(options.value("route_policy"))
        first = self._manual(options)
        if policy.mode == MANUAL:
            return Route(first, self._fallbacks(options, first))
        wanted = self._named_provider(options)
        choice = choose(policy, self._known_models, self._providers, wanted, self._callable_now)
        first = Stop(MOCK if wanted == MOCK else choice.provider, choice.model)
        return Route(
            first,
            self._fallbacks(options, first),
            policy.label,
            policy.quality,
            choice.alternatives,
        )

    # The provider by rules 1 to 7, and its model.

    def _manual(self, options: Options) -> Stop:
        model, tier = options.string("model"), options.string("model_tier")
        provider = self.provider(options.string("provider"), model, tier)
        return Stop(provider, self._model(provider, model, tier))

    def _named_provider(self, options: Options) -> str | None:
        """The provider that the caller or the environment names."""
        return _unless_auto(options.string("provider")) or _unless_auto(self._env("HARN_LLM_PROVIDER"))

    def provider(self, given: str | None, model: str | None, tier: str | None = None) -> str:
        """The provider of a call with these options."""
        return self.decided(given, model, tier)[0]

    def decided(self, given: str | None, model: str | None, tier: str | None = None) -> tuple[str, str]:
        """The provider of a call with these options, and the option or variable that says so; "" for none."""
        known_models, env = self._known_models, self._env
        named = _unless_auto(given)
        if named:
            return named, "provider"
        if given and model:
            self._refuse_misspelt(model, OPENROUTER)
            return known_models.resolve(model).provider, "model"
        named = _unless_auto(env("HARN_LLM_PROVIDER"))
        if named:
            return named, "HARN_LLM_PROVIDER"
        local = env("LOCAL_LLM_BASE_URL")
        asked = model or (None if tier else env("HARN_LLM_MODEL"))
        if asked:
            self._refuse_misspelt(asked, LOCAL if local else OPENROUTER)
        if local and (model or env("HARN_LLM_MODEL") or env("LOCAL_LLM_MODEL")):
            return LOCAL, "LOCAL_LLM_BASE_URL"
        if model:
            return known_models.resolve(model).provider, "model"
        if tier:
            return known_models.pick(tier).provider, "model_tier"
        model = env("HARN_LLM_MODEL")
        if model:
            return known_models.resolve(model).provider, "HARN_LLM_MODEL"
        return self._default(), ""

    def _refuse_misspelt(self, model: str, otherwise: str) -> None:
        """Raise `OptionError` for `vendor/model` whose vendor looks like a provider's name.

        ``otherwise`` is the provider that would get it; OpenRouter, if it can be called, knows its vendors.
        """
        vendor, _, name = model.partition("/")
        if model.count("/") != 1 or self._known_models.assigns(model):
            return
        if otherwise == OPENROUTER and self._callable_now(OPENROUTER):
            return
        near = _misspelt(vendor.lower(), self._providers.names())
        if near is not None:
            raise OptionError(
                f"model \"{model}\": no provider is called '{vendor}', did you mean '{near}'? "
                f'Set provider: "{near}" and model: "{name}", or the provider that knows the whole name'
            )

    def _default(self) -> str:
        default = self._providers.default
        for name in (default, "ollama", LOCAL):
            if self._callable_now(name):
                return name
        return default

    def _model(self, provider: str, model: str | None, tier: str | None) -> str:
        known_models = self._known_models
        if model:
            return known_models.resolve(model).id
        if tier:
            return known_models.pick(tier, provider).id
        named = self._env("HARN_LLM_MODEL")
        if named and known_models.resolve(named).provider == provider:
            return known_models.resolve(named).id
        return without_prefix(self._providers.default_model(provider))

    # Fallbacks.

    def _fallbacks(self, options: Options, first: Stop) -> tuple[Stop, ...]:
        """The fallbacks of a call; the mock provider has none."""
        names = read_chain(options)
        if not names:
            return ()
        for name in names:
            self._providers.require_known(name)
        if first.provider == MOCK:
            return ()
        return tuple(Stop(name, self._model_at(name, first, options)) for name in names)

    def _model_at(self, provider: str, first: Stop, options: Options) -> str:
        """The model that stands in for the first stop's: the same where it exists, else of the same tier."""
        if provider in (MOCK, first.provider) or self._known_models.infer_provider(first.model) == provider:
            return first.model
        tier = options.string("model_tier")
        target = self._known_models.pick(tier, provider) if tier else None
        if target is not None and target.alias is not None and target.provider == provider:
            return target.id
        return without_prefix(self._providers.default_model(provider))


def read_chain(options: Options) -> list[str]:
    """The ``fallback_chain`` option: a list, or names with commas between them."""
    given = options.value("fallback_chain")
    if given is None:
        return []
    if isinstance(given, str):
        names = [name.strip() for name in given.split(",")]
        return [name for name in names if name]
    return options.strings("fallback_chain") or []


def _misspelt(name: str, known: list[str]) -> str | None:
    """Return the known name that another one looks like; a longer one, `openai-community`, is another's."""
    if name in known or len(name) < _LEAST_NAME:
        return None
    longer = any(name.startswith(each) for each in known)
    return nearest(name, known, limit=1 if longer or len(name) == _LEAST_NAME else STATIC_LIMIT)


def _unless_auto(name: str | None) -> str | None:
    return name if name and name.lower() != "auto" else None
