"""The configuration of providers and models: its format, and how one file overrides another. Spec: 07 §1.14.

The dataclasses are the format: what `defaults` writes in Python, a providers file and the `[llm]` table of
harn.toml write in TOML under the same names.

    default_provider = "acme"

    [providers.acme]              # a new provider, or keys that replace those of a known one
    base_url = "https://acme.example/v1"
    auth_envs = ["ACME_API_KEY"]

    [aliases]
    fast = {id = "acme-small", provider = "acme"}

    [[inference]]
    glob = "acme-*"
    provider = "acme"
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

from harnpy.faults import OptionError
from harnpy.llm.configuration.prices import Price
from harnpy.text.globs import glob_matches

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """How to reach a provider, and what else is known of it.

    ``auth_style``: ``bearer``, ``header`` (the one that ``auth_header`` names), ``none``, or a cloud's own.
    ``auth_envs``: variables that may hold its key. ``protocol``: what it speaks, ``openai``, ``anthropic`` or
    a cloud's own. A call that names no model uses the first of ``default_model_envs`` that is set, else
    ``default_model``.

    Of clouds: ``region``, ``project`` and ``api_version`` with the variables that come before them;
    ``token_envs``: variables that may hold a bearer token instead of a key; ``credentials_env``: one that may
    name the file of a Google service account's key. ``{region}`` in ``base_url`` is replaced.
    """

    base_url: str
    auth_style: str = "bearer"
    auth_envs: tuple[str, ...] = ()
    chat_endpoint: str = "/chat/completions"
    protocol: str = "openai"
    api_key: str | None = field(default=None, repr=False)
    default_model: str | None = None
    default_model_envs: tuple[str, ...] = ()
    health_endpoint: str = "/models"
    display_name: str | None = None
    icon: str | None = None
    base_url_env: str | None = None
    completion_endpoint: str | None = None
    auth_header: str | None = None
    extra_headers: dict[str, str] = field(default_factory=dict, repr=False)
    features: tuple[str, ...] = ()
    rpm: int | None = None
    cost_per_1k_in: float | None = None
    cost_per_1k_out: float | None = None
    latency_p50_ms: float | None = None
    region: str | None = None
    region_envs: tuple[str, ...] = ()
    project: str | None = None
    project_envs: tuple[str, ...] = ()
    api_version: str | None = None
    api_version_envs: tuple[str, ...] = ()
    token_envs: tuple[str, ...] = ()
    credentials_env: str | None = None


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of a model."""

    id: str
    provider: str
    tool_format: str | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """What a file says of a model; the key is the model's id."""

    name: str
    provider: str
    context_window: int | None = None
    stream_timeout: float | None = None
    capabilities: tuple[str, ...] = ()
    pricing: Price | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPattern:
    """A pattern of model ids, in one of three forms."""

    exact: str | None = None
    glob: str | None = None
    contains: str | None = None
    ignore_case: bool = False

    def matches(self, model: str) -> bool:
        if self.ignore_case:
            model = model.lower()
        return (
            (self.exact is not None and model == self.exact)
            or (self.glob is not None and glob_matches(self.glob, model))
            or (self.contains is not None and self.contains in model)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceRule(ModelPattern):
    """Models of a provider, by their ids."""

    provider: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRule(ModelPattern):
    """Models of a tier, by their ids."""

    tier: str


@dataclass(frozen=True, slots=True)
class SamplingDefaults:
    """The sampling options of a call that sets none."""

    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole configuration. Of rules the first that matches decides; ``model_defaults`` goes by globs."""

    default_provider: str = "anthropic"
    providers: dict[str, ProviderEntry] = field(default_factory=dict)
    aliases: dict[str, Alias] = field(default_factory=dict)
    models: dict[str, Model] = field(default_factory=dict)
    qc_defaults: dict[str, str] = field(default_factory=dict)
    inference: tuple[InferenceRule, ...] = ()
    tiers: tuple[TierRule, ...] = ()
    model_defaults: dict[str, SamplingDefaults] = field(default_factory=dict)

    def overlaid(self, given: dict[str, Any], where: str) -> Settings:
        """These settings, overridden by those of a file. Raises `OptionError` for settings that are wrong.

        Entries are merged key by key, rules are put before the existing rules. ``where`` is the file.
        """
        _refuse_unknown(Settings, given, where, "")
        changed: dict[str, Any] = {}
        for key, value in given.items():
            former = getattr(self, key)
            if key in _ENTRIES:
                changed[key] = {**former, **_entries(_ENTRIES[key], former, value, where, key)}
            elif key in _RULES:
                changed[key] = (*_rules(_RULES[key], value, where, key), *former)
            else:
                changed[key] = convert(
                    value, str if key == "default_provider" else dict[str, str], where, key
                )
        if "qc_defaults" in changed:
            changed["qc_defaults"] = {**self.qc_defaults, **changed["qc_defaults"]}
        return replace(self, **changed)


_ENTRIES: dict[str, type] = {
    "providers": ProviderEntry,
    "aliases": Alias,
    "models": Model,
    "model_defaults": SamplingDefaults,
}
_RULES: dict[str, type] = {"inference": InferenceRule, "tiers": TierRule}


def convert(value: Any, kind: type[T], where: str, key: str) -> T:
    """A value of TOML as ``kind``. Raises `OptionError` with the place."""
    import msgspec

    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise OptionError(f"{where}: {key}: {error}") from None


def read_entry(kind: type[T], given: Any, where: str, key: str) -> T:
    """A table of TOML as the dataclass ``kind``; unlike `convert` it rejects unknown keys."""
    if isinstance(given, dict):
        _refuse_unknown(kind, given, where, key + ".")
    return convert(given, kind, where, key)


def _entries(kind: type, former: dict[str, Any], given: Any, where: str, key: str) -> dict[str, Any]:
    table = convert(given, dict[str, dict[str, Any]], where, key)
    return {
        name: read_entry(kind, {**_present(former.get(name)), **entry}, where, f"{key}.{name}")
        for name, entry in table.items()
    }


def _rules(kind: type, given: Any, where: str, key: str) -> list[Any]:
    rules = convert(given, list[dict[str, Any]], where, key)
    return [read_entry(kind, rule, where, f"{key}[{i}]") for i, rule in enumerate(rules)]


def _present(entry: Any) -> dict[str, Any]:
    return asdict(entry) if is_dataclass(entry) and not isinstance(entry, type) else {}


def _refuse_unknown(kind: Any, given: dict[str, Any], where: str, prefix: str) -> None:
    unknown = sorted(given.keys() - {each.name for each in fields(kind)})
    if unknown:
        raise OptionError(f"{where}: unknown key `{prefix}{unknown[0]}`")
