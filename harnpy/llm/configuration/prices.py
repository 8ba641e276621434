"""The prices of models and their context windows. Spec: 07 §1.12, §7.3.

`listed` looks a model up in the table prices.json, which release/prices.py makes, and which is read when the
first model is looked up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.globs import glob_matches

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Tier:
    """The rates of a call, for all of its tokens, whose prompt has more than ``above`` tokens."""

    above: int
    input_per_mtok: float
    output_per_mtok: float
    cache_read_per_mtok: float | None = None
    cache_write_per_mtok: float | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens; a missing cache price is the input price."""

    input_per_mtok: float
    output_per_mtok: float
    cache_read_per_mtok: float | None = None
    cache_write_per_mtok: float | None = None
    tiers: tuple[Tier, ...] = ()

    def cost(self, prompt: int, output: int) -> float:
        """Return what a call costs without a cache; ``prompt`` are all of its tokens, cached or not."""
        rates = self._rates(prompt) if self.tiers else self
        return (prompt * rates.input_per_mtok + output * rates.output_per_mtok) / 1_000_000

    def cache_savings(self, prompt: int, read: int, written: int, for_an_hour: int = 0) -> float:
        """Return what the cache saves of `cost`; negative where writing it costs more than it saves.

        Of what was ``written``, so many tokens are kept ``for_an_hour``: these cost twice what input costs,
        where writing has a price at all.
        """
        rates = self._rates(prompt)
        base = rates.input_per_mtok
        read_price = base if rates.cache_read_per_mtok is None else rates.cache_read_per_mtok
        write_price = base if rates.cache_write_per_mtok is None else rates.cache_write_per_mtok
        hour_price = base if rates.cache_write_per_mtok is None else 2 * base
        saved = read * (base - read_price) + (written - for_an_hour) * (base - write_price)
        return (saved + for_an_hour * (base - hour_price)) / 1_000_000

    def _rates(self, prompt: int) -> Price | Tier:
        reached = [tier for tier in self.tiers if prompt > tier.above]
        return max(reached, key=lambda tier: tier.above) if reached else self


FREE = Price(0.0, 0.0)


class Listed(NamedTuple):
    """What the table says of a model; ``window`` is its context window in tokens, if that is known."""

    price: Price
    window: int | None


#: Our names of sections that the table calls otherwise.
_SECTIONS = {"azure_openai": "azure", "bedrock": "aws", "gemini": "google", "vertex": "google"}


def listed(model: str, provider: str, url: str = "") -> Listed | None:
    """Return what the table says of a model of a provider, whose ``url`` may tell a provider of another name.

    A provider with a section sells what is there, and what its section says others make.
    """
    if provider == "huggingface":  # a router: the provider stands behind a colon
        model, _, behind = model.rpartition(":")
        provider = f"huggingface_{behind}"
    sections = _table()["providers"]
    name = _section(provider, url)
    if name is None:
        return None
    for seller in (name, *sections[name]["sells"]):
        found = _row(model, sections[seller]["models"])
        if found is not None:
            return found
    return None


def listed_by_maker(model: str) -> Listed | None:
    """Return what the table says of a model of the one that makes it, known by the model's name."""
    for section in _table()["providers"].values():
        if _matches(section["makes"], model.lower()):
            return _row(model, section["models"])
    return None


@cache
def _table() -> Any:
    """Return ``{source, date, providers}``.

    A provider has a ``url`` pattern, patterns of the models that it ``makes``, the providers whose models it
    ``sells`` too, and ``models``: rows ``[patterns, window, rates, [above, rates], …]``, of which the first
    that matches counts.
    """
    import msgspec

    return msgspec.json.decode(Path(__file__).with_name("prices.json").read_bytes())


def _section(provider: str, url: str) -> str | None:
    """Return the name of a provider's section, None if it has none."""
    sections = _table()["providers"]
    name = _SECTIONS.get(provider, provider)
    if name in sections:
        return name
    return next((each for each, section in sections.items() if re.match(section["url"], url)), None)


def _row(model: str, rows: list[Any]) -> Listed | None:
    name = model.lower()
    for patterns, window, (before, after, read, written), *tiers in rows:
        if _matches(patterns, name):
            dearer = tuple(Tier(above, *rates) for above, rates in tiers)
            return Listed(Price(before, after, read, written, dearer), window)
    return None


def _matches(patterns: Iterable[str], name: str) -> bool:
    """Return True if one matches: a pattern with stars, or a regular expression, which begins with `^`."""
    for pattern in patterns:
        if re.match(pattern, name) if pattern.startswith("^") else glob_matches(pattern, name):
            return True
    return False
