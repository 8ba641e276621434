"""Providers and tiers that nobody knows, where they are written out. Spec: 07 §1.2, §1.14."""

from __future__ import annotations

from harnpy.builtins.bridge.option_places import places_of
from harnpy.builtins.bridge.option_tables import TABLES, known_providers
from harnpy.check.knowledge import UNKNOWN_PROVIDER, UNKNOWN_TIER, Problem
from harnpy.llm.option_tables import CALL
from harnpy.text.spell import nearest, nearest_at_run_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from harnpy.vm.vm import Vm

#: What takes the options of a model call, and perhaps more.
CALLS = frozenset(name for name, table in TABLES.items() if CALL.own.keys() <= table.own.keys())

#: What the provider may be called beside its name. Spec: 07 §1.2.
_AUTO = "auto"


def problems(vm: Vm, function: str, arguments: Sequence[Any]) -> Iterator[Problem]:
    """What a model call would say of its `provider`, `fallback_chain` and `model_tier`."""
    if function not in CALLS:
        return
    for place in places_of(function):
        given = arguments[place] if place < len(arguments) else None
        if type(given) is dict:
            yield from _providers(vm, given, place)
            yield from _tier(vm, given, place)


def _providers(vm: Vm, given: dict[str, Any], place: int) -> Iterator[Problem]:
    named = given.get("provider")
    chain = given.get("fallback_chain")
    names = [(named, "provider")] if type(named) is str and named.lower() != _AUTO else []
    from harnpy.llm.routing import read_chain
    from harnpy.reading.lenient import Options

    if type(chain) is str or (type(chain) is list and all(type(name) is str for name in chain)):
        names += [(name, "fallback_chain") for name in read_chain(Options({"fallback_chain": chain}))]
    known = known_providers(vm) if names else []
    for name, key in names:
        if name and name not in known:
            from harnpy.llm.configuration.known_providers import unknown_provider

            # A mock may stand for it, a program may register it: nothing is certain.
            yield Problem(
                UNKNOWN_PROVIDER,
                unknown_provider(name, known),
                (place, key),
                near=nearest_at_run_time(name, known),
                severity="warning",
            )


def _tier(vm: Vm, given: dict[str, Any], place: int) -> Iterator[Problem]:
    """A tier that is nearly one: a model's id may stand there as well, so nothing refuses it."""
    tier = given.get("model_tier")
    if type(tier) is not str:
        return
    from harnpy.builtins.bridge.live_models import models_of
    from harnpy.llm.configuration.known_models import TIERS

    known = [*TIERS, *models_of(vm).config.known_models.alias_names()]
    near = nearest(tier, known, limit=1 if len(tier) <= 5 else 2) if tier not in known else None
    if near is not None:
        yield Problem(
            UNKNOWN_TIER,
            f"model_tier: '{tier}' is no tier and no alias, but a model's id (did you mean '{near}'?)",
            (place, "model_tier"),
            near=near,
            severity="warning",
        )
