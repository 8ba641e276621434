"""The known models: their aliases, providers, tiers and prices. Spec: 07 §1.14–1.15.

`Configured` reads the files when first asked, and holds providers, models and capabilities.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.globs import glob_matches
from harnpy.llm.configuration.capabilities import Matrix, read_rules
from harnpy.llm.configuration.known_providers import MOCK, KnownProviders, ProjectProviders
from harnpy.llm.configuration.model_settings import DEFAULTS, Configuration, load
from harnpy.llm.configuration.prices import FREE, listed, listed_by_maker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.llm.configuration.model_settings import Settings
    from harnpy.llm.configuration.prices import Listed, Price
    from harnpy.world import World

#: Worst to best.
TIERS = ("small", "mid", "frontier")

_PREFIXES = {"local:": "ollama", "ollama:": "ollama", "huggingface:": "huggingface", "hf:": "huggingface"}
_ANY_PREFIX = tuple(_PREFIXES)
_OF_MAKERS = (
    ("claude-*", "anthropic"),
    ("gpt-*", "openai"),
    ("o1*", "openai"),
    ("o3*", "openai"),
    ("o4*", "openai"),
    ("gemini-*", "gemini"),
)
_FAMILIES = (*_OF_MAKERS, ("*:*", "ollama"))


class Target(NamedTuple):
    """A model and its provider; ``alias`` is the name by which it was asked for."""

    id: str
    provider: str
    alias: str | None = None


class KnownModels:
    """The known models. A model that nothing else assigns belongs to the default of ``providers``."""

    def __init__(self, settings: Settings, providers: KnownProviders, capabilities: Matrix) -> None:
        self._settings = settings
        self._providers = providers
        self._capabilities = capabilities
        # Settings never change, programs use few models, and every call asks: each is looked up once.
        self.resolve: Callable[[str], Target] = lru_cache(self._resolve)
        self._listed: Callable[[str, str], Listed | None] = lru_cache(self._look_up)
        #: The sampling options of a call of the model that sets none. Read them, don't change them.
        self.sampling: Callable[[str], Mapping[str, float]] = lru_cache(self._sampling)
        self._formats = {
            (alias.id, alias.provider): alias.tool_format
            for alias in reversed(settings.aliases.values())
            if alias.tool_format
        }

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

    def assigns(self, model: str) -> bool:
        """Return True if the model's provider is certain: by an entry, a rule or a prefix."""
        settings = self._settings
        return (
            model in settings.aliases
            or model in settings.models
            or model.startswith(_ANY_PREFIX)
            or any(rule.matches(model) for rule in settings.inference)
        )

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
        return next(found, self._providers.default)

    def alias_names(self) -> list[str]:
        return sorted(self._settings.aliases)

    def aliases(self) -> dict[str, Any]:
        return {name: _present(asdict(alias)) for name, alias in self._settings.aliases.items()}

    # Facts.

    def tier(self, model: str) -> str:
        return next((rule.tier for rule in self._settings.tiers if rule.matches(model)), "mid")

    def tool_format(self, model: str, provider: str, *, mocked: bool = False) -> str:
        """Return how tools are offered to the model by default: ``text`` or ``native``.

        Programs expect text of the mock, whatever model it stands for; ``mocked``: it answers the call.
        """
        named = self._formats.get((model, provider))
        if named is not None:
            return named
        if mocked or provider == MOCK:
            return "native" if self._serves_tools(provider) else "text"
        return "native" if self.takes_tools(model, provider) else "text"

    def takes_tools(self, model: str, provider: str) -> bool:
        """Return True if the model can be offered native tools."""
        return self._serves_tools(provider) or self._capabilities.of(provider, model).native_tools

    def _serves_tools(self, provider: str) -> bool:
        entry = self._settings.providers.get(provider)
        return entry is not None and "native_tools" in entry.features

    def price(self, model: str, provider: str | None = None) -> Price | None:
        """Return the price of a model, None when it isn't known; only the mock and local models are free.

        The configuration's comes before the provider's price for every model, and that before the table's.
        """
        entry = self._settings.models.get(model)
        if entry is not None and entry.pricing is not None:
            return entry.pricing
        provider = provider or self._provider_of(model)
        of_all = self._providers.price(provider)
        if of_all is not None:
            return of_all
        found = self._listed(model, provider)
        if found is not None:
            return found.price
        return FREE if MOCK in (model, provider) or self._providers.is_local(provider) else None

    def context_window(self, model: str, provider: str | None = None) -> int | None:
        """Return how many tokens a model takes in, None when that isn't known."""
        entry = self._settings.models.get(model)
        if entry is not None and entry.context_window is not None:
            return entry.context_window
        found = self._listed(model, provider or self._provider_of(model))
        return None if found is None else found.window

    def _provider_of(self, model: str) -> str:
        entry = self._settings.models.get(model)
        return (entry.provider if entry else None) or self.resolve(model).provider

    def _look_up(self, model: str, provider: str) -> Listed | None:
        """Return what the table says of a model; the mock's is that of the model it stands for.

        A local server may pass on what only its maker runs, and that is paid for; all else there is local.
        """
        if provider == MOCK:
            provider = self.infer_provider(model)
        if self._providers.is_local(provider):
            return listed_by_maker(model) if _runs_at_its_maker(model) else None
        return listed(model, provider, self._providers.url(provider)) or listed_by_maker(model)

    def _sampling(self, model: str) -> Mapping[str, float]:
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
        price = self.price(model)
        return {
            "id": model,
            "name": found.name or model,
            "provider": self._provider_of(model),
            "context_window": self.context_window(model),
            "stream_timeout": found.stream_timeout,
            "capabilities": list(found.capabilities),
            "pricing": None if price is None else shown_price(price),
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
        in_files = [Target(id, self._provider_of(id)) for id in self._settings.models]
        return list(dict.fromkeys(named + in_files))


def without_prefix(model: str) -> str:
    """A model id without the prefix that only names the provider."""
    if not model.startswith(_ANY_PREFIX):
        return model
    return next(model.removeprefix(prefix) for prefix in _PREFIXES if model.startswith(prefix))


def _runs_at_its_maker(model: str) -> bool:
    """Return True for a model whose weights nobody else has."""
    return any(glob_matches(glob, model) for glob, _ in _OF_MAKERS) and not model.startswith("gpt-oss")


def shown_price(price: Price) -> dict[str, Any]:
    """Return a price as programs see it."""
    return asdict(price) | {"tiers": [asdict(tier) for tier in price.tiers]}


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
        self.program = (world.environment.get, world.files.read_text) if program is None else program

    @cached_property
    def _files(self) -> Configuration:
        return load(self._world, self._directory())

    @property
    def manifest(self) -> str:
        """The project's file, or where it would be."""
        return self._files.manifest

    @cached_property
    def known_providers(self) -> KnownProviders:
        found, world = self._files, self._world
        project = ProjectProviders(found.project, found.untrusted, *self.program)
        env, read = world.environment.get, world.files.read_text
        return KnownProviders(found.settings, env, read, project, found.source)

    @cached_property
    def known_models(self) -> KnownModels:
        return KnownModels(self._files.settings, self.known_providers, self.capabilities)

    @cached_property
    def capabilities(self) -> Matrix:
        files = [read_rules(table, where) for table, where in self._files.capabilities]
        return Matrix(files, self._files.settings.providers.keys() - DEFAULTS.providers.keys())
