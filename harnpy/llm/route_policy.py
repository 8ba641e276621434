"""The `route_policy` option: how a model is chosen among those that are known. Spec: 07 §1.2."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError
from harnpy.llm.configuration.known_models import TIERS
from harnpy.llm.configuration.known_providers import MOCK
from harnpy.text.display import display

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.llm.configuration.known_models import KnownModels, Target
    from harnpy.llm.configuration.known_providers import KnownProviders

MANUAL = "manual"
ALWAYS = "always"
CHEAPEST = "cheapest_over_quality"
FASTEST = "fastest_over_quality"

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


@dataclass(frozen=True, slots=True)
class Choice:
    """What a policy chose; ``alternatives`` are all the models that it considered."""

    provider: str = ""
    model: str = ""
    alternatives: tuple[dict[str, Any], ...] = ()


def read_policy(given: Any) -> Policy:
    """Raises `OptionError`."""
    if given is None:
        return Policy()
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
        return Policy()
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
        price = known_models.price(target.id)
        self.cost: float | None = price.input_per_mtok + price.output_per_mtok
        if not self.cost and entry is not None:
            self.cost = 0.0 if entry.auth_style == "none" else _per_mtok(entry)

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


def _per_mtok(entry: Any) -> float | None:
    """The provider's price for every model, if its configuration has one."""
    prices = [price for price in (entry.cost_per_1k_in, entry.cost_per_1k_out) if price is not None]
    return sum(prices) * 1000 if prices else None


def _or_worst(value: float | None) -> float:
    return inf if value is None else value
