"""The known models: their aliases, providers, tiers and prices. Spec: 07 §1.14–1.15.

`Configured` reads the files when first asked, and holds providers, models and capabilities.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.globs import glob_matches
from harnpy.llm.configuration.capabilities import BUILT_IN_ROWS, Matrix, read_rules
from harnpy.llm.configuration.known_providers import KnownProviders, ProjectProviders
from harnpy.llm.configuration.model_settings import Configuration, load
from harnpy.llm.configuration.prices import context_window, price_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.llm.configuration.model_settings import Settings
    from harnpy.llm.configuration.prices import Price
    from harnpy.world import World

#: Worst to best.
TIERS = ("small", "mid", "frontier")

_PREFIXES = {"local:": "ollama", "ollama:": "ollama", "huggingface:": "huggingface", "hf:": "huggingface"}
_FAMILIES = (
    ("claude-*", "anthropic"),
    ("gpt-*", "openai"),
    ("o1*", "openai"),
    ("o3*", "openai"),
    ("o4*", "openai"),
    ("gemini-*", "gemini"),
    ("*:*", "ollama"),
)


class Target(NamedTuple):
    """A model and its provider; ``alias`` is the name by which it was asked for."""

    id: str
    provider: str
    alias: str | None = None


class KnownModels:
    """The known models. A model that nothing else assigns belongs to ``default_provider``."""

    def __init__(self, settings: Settings, default_provider: str) -> None:
        self._settings = settings
        self._default_provider = default_provider
        # Settings never change, programs use few models, and every call asks: each is looked up once.
        self.resolve: Callable[[str], Target] = lru_cache(self._resolve)
        self.price: Callable[[str], Price] = lru_cache(self._price)

    # Names.

    def _resolve(self, selector: str) -> Target:
        """The model that an alias or id means."""
        alias = self._settings.aliases.get(selector)
        if alias is not None:
            return Target(alias.id, alias.provider, selector)
        return Target(without_prefix(selector), self.infer_provider(selector))

    def pick(self, target: str, provider: str | None = None) -> Target:
        """The model that a tier, an alias or an id means, at ``provider`` if it has one of that name."""
        of_provider = [f"{provider}/{target}", f"{provider}:{target}"] if provider else []
        for name in (target, *of_provider, f"tier/{target}"):
            if name in self._settings.aliases:
                return self.resolve(name)
        found = self.resolve(target)
        return found._replace(provider=provider) if provider else found

    def infer_provider(self, model: str) -> str:
        """The provider of a model, by the model's id alone."""
        for prefix, provider in _PREFIXES.items():
            if model.startswith(prefix):
                return provider
        for rule in self._settings.inference:
            if rule.matches(model):
                return rule.provider
        if model.count("/") == 1:
            return "openrouter"
        found = (provider for glob, provider in _FAMILIES if glob_matches(glob, model))
        return next(found, self._default_provider)

    def alias_names(self) -> list[str]:
        return sorted(self._settings.aliases)

    def aliases(self) -> dict[str, Any]:
        return {name: _present(asdict(alias)) for name, alias in self._settings.aliases.items()}

    # Facts.

    def tier(self, model: str) -> str:
        return next((rule.tier for rule in self._settings.tiers if rule.matches(model)), "mid")

    def tool_format(self, model: str, provider: str) -> str:
        """Return how tools are offered to the model by default: ``text`` or ``native``."""
        for alias in self._settings.aliases.values():
            if alias.tool_format and (alias.id, alias.provider) == (model, provider):
                return alias.tool_format
        entry = self._settings.providers.get(provider)
        return "native" if entry is not None and "native_tools" in entry.features else "text"

    def _price(self, model: str) -> Price:
        entry = self._settings.models.get(model)
        return price_of(model) if entry is None or entry.pricing is None else entry.pricing

    def sampling(self, model: str) -> dict[str, float]:
        """The sampling options of a call of the model that sets none."""
        for glob, defaults in self._settings.model_defaults.items():
            if glob_matches(glob, model):
                return _present(asdict(defaults))
        return {}

    def qc_default(self, provider: str) -> str | None:
        return self._settings.qc_defaults.get(provider)

    def qc_defaults(self) -> dict[str, str]:
        return dict(self._settings.qc_defaults)

    def entry(self, model: str) -> dict[str, Any] | None:
        """Return what the configuration says of a model, None for one that it does not name."""
        found = self._settings.models.get(model)
        if found is None:
            return None
        return {
            "id": model,
            "name": found.name,
            "provider": found.provider,
            "context_window": found.context_window or context_window(model),
            "stream_timeout": found.stream_timeout,
            "capabilities": list(found.capabilities),
            "pricing": None if found.pricing is None else asdict(found.pricing),
        }

    def entries(self) -> dict[str, Any]:
        return {model: self.entry(model) for model in self._settings.models}

    def describe(self, target: Target) -> dict[str, Any]:
        """The model as programs see it."""
        return {
            "id": target.id,
            "provider": target.provider,
            "alias": target.alias,
            "tool_format": self.tool_format(target.id, target.provider),
            "tier": self.tier(target.id),
        }

    def targets(self) -> list[Target]:
        """Every model that is known by name, once."""
        named = [Target(alias.id, alias.provider) for alias in self._settings.aliases.values()]
        listed = [Target(id, model.provider) for id, model in self._settings.models.items()]
        return list(dict.fromkeys(named + listed))


def without_prefix(model: str) -> str:
    """A model id without the prefix that only names the provider."""
    return next((model.removeprefix(prefix) for prefix in _PREFIXES if model.startswith(prefix)), model)


def _present(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}


class Configured:
    """``directory`` returns the program's place; ``program`` is what the program itself may read.

    Each property raises `OptionError` for a file that is wrong.
    """

    def __init__(
        self,
        world: World,
        directory: Callable[[], str],
        program: tuple[Callable[[str], str | None], Callable[[str], str]] | None = None,
    ) -> None:
        self._world = world
        self._directory = directory
        self._program = (world.environment.get, world.files.read_text) if program is None else program

    @cached_property
    def _files(self) -> Configuration:
        return load(self._world, self._directory())

    @cached_property
    def known_providers(self) -> KnownProviders:
        found, world = self._files, self._world
        project = ProjectProviders(found.project, found.untrusted, *self._program)
        env, read = world.environment.get, world.files.read_text
        return KnownProviders(found.settings, env, read, project, found.source)

    @cached_property
    def known_models(self) -> KnownModels:
        return KnownModels(self._files.settings, self.known_providers.default)

    @cached_property
    def capabilities(self) -> Matrix:
        table = self._files.capabilities
        where = f"{self._files.manifest}: capabilities"
        return Matrix(BUILT_IN_ROWS, None if table is None else read_rules(table, where))
