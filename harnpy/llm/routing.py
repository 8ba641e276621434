"""Which provider and which model take a call, and which take over when they fail. Spec: 07 §1.2, §1.14."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.llm.configuration.known_models import without_prefix
from harnpy.llm.configuration.known_providers import MOCK
from harnpy.llm.route_policy import MANUAL, Choice, choose, read_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.llm.configuration.known_models import KnownModels
    from harnpy.llm.configuration.known_providers import KnownProviders
    from harnpy.reading.lenient import Options


class Stop(NamedTuple):
    """One provider to ask, for one model."""

    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class Route:
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
        choice = Choice()
        if policy.mode != MANUAL:
            wanted = self._named_provider(options)
            choice = choose(policy, self._known_models, self._providers, wanted, self._callable_now)
            provider = MOCK if wanted == MOCK else choice.provider
            first = Stop(provider, choice.model)
        return Route(
            first,
            self._fallbacks(options, first),
            policy.label,
            policy.quality,
            choice.alternatives,
        )

    # The provider by rules 1 to 7, and its model.

    def _manual(self, options: Options) -> Stop:
        named = (options.string(key) for key in ("provider", "model", "model_tier"))
        provider = self.provider(*named)
        return Stop(provider, self._model(options, provider))

    def _named_provider(self, options: Options) -> str | None:
        """The provider that the caller or the environment names."""
        return _unless_auto(options.string("provider")) or _unless_auto(self._env("HARN_LLM_PROVIDER"))

    def provider(self, given: str | None, model: str | None, tier: str | None = None) -> str:
        """The provider of a call with these options."""
        known_models, env = self._known_models, self._env
        named = _unless_auto(given)
        if named:
            return named
        if given and model:
            return known_models.resolve(model).provider
        named = _unless_auto(env("HARN_LLM_PROVIDER"))
        if named:
            return named
        if env("LOCAL_LLM_BASE_URL") and (model or env("HARN_LLM_MODEL") or env("LOCAL_LLM_MODEL")):
            return "local"
        if model:
            return known_models.resolve(model).provider
        if tier:
            return known_models.pick(tier).provider
        model = env("HARN_LLM_MODEL")
        return known_models.resolve(model).provider if model else self._default()

    def _default(self) -> str:
        default = self._providers.default
        for name in (default, "ollama", "local"):
            if self._callable_now(name):
                return name
        return default

    def _model(self, options: Options, provider: str) -> str:
        known_models = self._known_models
        model = options.string("model")
        if model:
            return known_models.resolve(model).id
        tier = options.string("model_tier")
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
    if isinstance(given, str):
        names = [name.strip() for name in given.split(",")]
        return [name for name in names if name]
    return options.strings("fallback_chain") or []


def _unless_auto(name: str | None) -> str | None:
    return name if name and name.lower() != "auto" else None
