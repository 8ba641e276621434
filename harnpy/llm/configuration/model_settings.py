"""The configuration of providers and models: its format, its defaults, and the files that override them.

A providers file overrides the defaults, harn.toml overrides both. The dataclasses are the format: the
defaults are written in Python; a providers file and the `[llm]` table of harn.toml use the same names in
TOML.

    default_provider = "acme"

    [providers.acme]              # a new provider, or keys that replace those of a known one
    base_url = "https://acme.example/v1"
    auth_envs = ["ACME_API_KEY"]

    [aliases]
    fast = {id = "acme-small", provider = "acme"}

    [[inference]]
    glob = "acme-*"
    provider = "acme"

Spec: 07 §1.14.
"""

from __future__ import annotations

import os.path
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from harnpy.faults import OptionError
from harnpy.formats.globs import glob_matches
from harnpy.formats.manifest import manifest_of
from harnpy.formats.toml import parse_toml
from harnpy.llm.configuration.prices import Price
from harnpy.project import MANIFEST, project_root
from harnpy.world.files import plain_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.world import World

    Env = Callable[[str], str | None]
    Read = Callable[[str], str]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """The way to reach a provider, and what else is known of it.

    ``auth_style``: ``bearer``, ``header`` (the one that ``auth_header`` names), ``none``, or a cloud's own;
    by default ``bearer``, but ``none`` for a server on this machine whose entry names no key.
    ``auth_envs``: variables that may hold its key. ``protocol``: what it speaks, ``openai``, ``anthropic`` …
    (07 §1.19). ``extra_body``: what the body of each call has beside the call's own. A call that names no
    model uses the first of ``default_model_envs`` that is set, else ``default_model``. ``features``: what its
    service has beside the protocol (07 §1.19).

    Of clouds: ``region``, ``project`` and ``api_version`` with the variables that come before them;
    ``token_envs``: variables that may hold a bearer token instead of a key; ``credentials_env``: one that may
    name the file of a Google service account's key. ``{region}`` in ``base_url`` is replaced.
    """

    base_url: str
    auth_style: str = ""
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
    extra_body: dict[str, Any] = field(default_factory=dict, repr=False)
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
    """A model in a file; the key is the model's id. Without a ``provider`` the id tells it."""

    name: str | None = None
    provider: str | None = None
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
    except msgspec.ValidationError:
        from harnpy.formats.mismatch import mismatch

        raise OptionError(f"{where}: {mismatch(value, kind, key)}") from None


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


# The providers and models that are known without a configuration file: data. Spec: 07 §1.14.


_CLOUD = ("native_tools",)

_PROVIDERS = {
    "anthropic": ProviderEntry(
        "https://api.anthropic.com/v1",
        "header",
        ("ANTHROPIC_API_KEY",),
        "/messages",
        protocol="anthropic",
        auth_header="x-api-key",
        extra_headers={"anthropic-version": "2023-06-01"},
        display_name="Anthropic",
    ),
    "openai": ProviderEntry(
        "https://api.openai.com/v1",
        auth_envs=("OPENAI_API_KEY",),
        default_model="gpt-4o",
        display_name="OpenAI",
        features=("max_completion_tokens",),
    ),
    "openrouter": ProviderEntry(
        "https://openrouter.ai/api/v1",
        auth_envs=("OPENROUTER_API_KEY",),
        default_model="anthropic/claude-sonnet-4.6",
        display_name="OpenRouter",
        features=("reasoning", "cache_control"),
    ),
    "gemini": ProviderEntry(
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "header",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        auth_header="x-goog-api-key",
        display_name="Google Gemini",
    ),
    "huggingface": ProviderEntry(
        "https://router.huggingface.co/v1",
        auth_envs=("HF_TOKEN", "HUGGINGFACE_API_KEY"),
        display_name="Hugging Face",
    ),
    "together": ProviderEntry(
        "https://api.together.xyz/v1", auth_envs=("TOGETHER_AI_API_KEY",), display_name="Together AI"
    ),
    "groq": ProviderEntry("https://api.groq.com/openai/v1", auth_envs=("GROQ_API_KEY",), display_name="Groq"),
    "deepseek": ProviderEntry(
        "https://api.deepseek.com",
        auth_envs=("DEEPSEEK_API_KEY",),
        protocol="deepseek",
        display_name="DeepSeek",
    ),
    "fireworks": ProviderEntry(
        "https://api.fireworks.ai/inference/v1", auth_envs=("FIREWORKS_API_KEY",), display_name="Fireworks"
    ),
    "dashscope": ProviderEntry(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        auth_envs=("DASHSCOPE_API_KEY",),
        display_name="DashScope",
    ),
    "mistral": ProviderEntry(
        "https://api.mistral.ai/v1",
        auth_envs=("MISTRAL_API_KEY",),
        protocol="mistral",
        default_model="mistral-medium-latest",
        display_name="Mistral AI",
    ),
    "ollama": ProviderEntry(
        "http://localhost:11434",
        "none",
        chat_endpoint="/v1/chat/completions",
        health_endpoint="/api/tags",
        default_model="llama3.2",
        base_url_env="OLLAMA_HOST",
        display_name="Ollama",
        features=("ollama_messages",),
    ),
    "local": ProviderEntry(
        "http://localhost:8000",
        "none",
        chat_endpoint="/v1/chat/completions",
        health_endpoint="/v1/models",
        default_model="gpt-4o",
        default_model_envs=("LOCAL_LLM_MODEL", "HARN_LLM_MODEL"),
        base_url_env="LOCAL_LLM_BASE_URL",
        display_name="Local server",
    ),
    "mlx": ProviderEntry(
        "http://localhost:8080",
        "none",
        chat_endpoint="/v1/chat/completions",
        health_endpoint="/v1/models",
        default_model_envs=("MLX_MODEL_ID",),
        base_url_env="MLX_BASE_URL",
        display_name="MLX",
    ),
    "vllm": ProviderEntry(
        "http://localhost:8000",
        "none",
        chat_endpoint="/v1/chat/completions",
        health_endpoint="/v1/models",
        base_url_env="VLLM_BASE_URL",
        display_name="vLLM",
    ),
    "tgi": ProviderEntry(
        "http://localhost:8080",
        "none",
        chat_endpoint="/v1/chat/completions",
        health_endpoint="/health",
        base_url_env="TGI_BASE_URL",
        display_name="Text Generation Inference",
    ),
    # Clouds, which authorise and place calls in their own ways.
    "bedrock": ProviderEntry(
        "https://bedrock-runtime.{region}.amazonaws.com",
        "aws_sigv4",
        ("AWS_ACCESS_KEY_ID",),
        "/model/{model}/invoke",
        protocol="bedrock",
        health_endpoint="/foundation-models",
        features=_CLOUD,
        base_url_env="BEDROCK_BASE_URL",
        display_name="Amazon Bedrock",
        region="us-east-1",
        region_envs=("AWS_REGION", "AWS_DEFAULT_REGION"),
        token_envs=("AWS_BEARER_TOKEN_BEDROCK",),
    ),
    "azure_openai": ProviderEntry(
        "",
        "azure_openai",
        ("AZURE_OPENAI_API_KEY",),
        "/openai/deployments/{model}/chat/completions",
        protocol="azure_openai",
        health_endpoint="/models",
        features=_CLOUD,
        base_url_env="AZURE_OPENAI_ENDPOINT",
        display_name="Azure OpenAI",
        api_version="2024-10-21",
        api_version_envs=("AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION"),
        token_envs=("AZURE_OPENAI_AD_TOKEN",),
    ),
    "vertex": ProviderEntry(
        "https://{region}-aiplatform.googleapis.com/v1",
        "bearer",
        ("VERTEX_AI_ACCESS_TOKEN",),
        "/projects/{project}/locations/{region}/publishers/anthropic/models/{model}:rawPredict",
        protocol="vertex",
        health_endpoint="/projects/{project}/locations/{region}",
        features=_CLOUD,
        base_url_env="VERTEX_AI_BASE_URL",
        display_name="Vertex AI",
        region="global",
        region_envs=("CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION"),
        project_envs=("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"),
        credentials_env="GOOGLE_APPLICATION_CREDENTIALS",
    ),
}

_FRONTIER = Alias("claude-sonnet-4-20250514", "anthropic")
_MID = Alias("gpt-4o-mini", "openai")
_SMALL = Alias("Qwen/Qwen3.5-9B", "openrouter")

_ALIASES = {
    "frontier": _FRONTIER,
    "tier/frontier": _FRONTIER,
    "mid": _MID,
    "tier/mid": _MID,
    "small": _SMALL,
    "tier/small": _SMALL,
    "local-gemma4": Alias("gemma4:26b", "ollama"),
    "local-gemma4-31b": Alias("gemma4:31b", "ollama"),
    "local-qwen3": Alias("qwen3:8b", "ollama"),
}

_MODELS = {
    "claude-sonnet-4-20250514": Model(
        "Claude Sonnet 4",
        "anthropic",
        capabilities=("tools", "vision", "prompt_caching", "thinking"),
    ),
    "claude-3-5-haiku-20241022": Model(
        "Claude 3.5 Haiku", "anthropic", capabilities=("tools", "prompt_caching")
    ),
    "gpt-4o": Model("GPT-4o", "openai", capabilities=("tools", "vision", "audio")),
    "gpt-4o-mini": Model("GPT-4o mini", "openai", capabilities=("tools", "vision", "audio")),
    "google/gemini-2.5-flash": Model("Gemini 2.5 Flash", "openrouter", capabilities=("tools", "vision")),
    "Qwen/Qwen3.5-9B": Model("Qwen 3.5 9B", "openrouter", capabilities=("tools", "thinking")),
    "llama3.2": Model("Llama 3.2", "ollama"),
    "gemma4:26b": Model("Gemma 4 26B", "ollama"),
    "gemma4:31b": Model("Gemma 4 31B", "ollama"),
    "qwen3:8b": Model("Qwen 3 8B", "ollama", capabilities=("tools", "thinking")),
}

_TIERS = (
    *(TierRule(contains=part, tier="small") for part in ("9b", "a3b", "gemma-4-e2b", "gemma-4-e4b")),
    *(TierRule(contains=part, tier="mid") for part in ("gemma-4-26b", "gemma4:26b")),
    *(TierRule(contains=part, tier="frontier") for part in ("gemma-4-31b", "gemma4:31b")),
    TierRule(glob="claude-*", tier="frontier"),
    TierRule(exact="gpt-4o", tier="frontier"),
    *(TierRule(contains=part, ignore_case=True, tier="small") for part in ("9b", "a3b")),
)

DEFAULTS = Settings(
    providers=_PROVIDERS,
    aliases=_ALIASES,
    models=_MODELS,
    tiers=_TIERS,
    qc_defaults={
        "anthropic": "claude-3-5-haiku-20241022",
        "openai": "gpt-4o-mini",
        "openrouter": "google/gemini-2.5-flash",
        "ollama": "llama3.2",
        "local": "gpt-4o",
    },
)


# Where the configuration comes from: a providers file over the defaults, harn.toml over both.
#
# Spec: 07 §1.14.


VARIABLE = "HARN_PROVIDERS_CONFIG"
_USUAL_PLACE = (".config", "harn", "providers.toml")

BUILT_IN = "<built-in defaults>"


class Configuration(NamedTuple):
    """``source`` is the providers file; ``capabilities`` are the tables of that name in the two files, the
    project's first, each with where it stands. ``manifest`` is the project's file, or where it would be.

    ``project`` names the providers that the manifest configures; ``untrusted`` says why none of them may be
    called, if nobody trusts it.
    """

    settings: Settings = DEFAULTS
    source: str = BUILT_IN
    capabilities: tuple[tuple[dict[str, Any], str], ...] = ()
    manifest: str = MANIFEST
    project: frozenset[str] = frozenset()
    untrusted: str | None = None


def load(world: World, directory: str) -> Configuration:
    """The configuration of a program in ``directory``. Raises `OptionError` for a file that is wrong."""
    settings, source, capabilities = DEFAULTS, BUILT_IN, _capabilities(None, "")
    path, text = _providers_file(world.environment.get, world.files.read_text)
    if text is not None:
        given = _parse(text, path)
        capabilities = _capabilities(given.pop("capabilities", None), path)
        settings, source = settings.overlaid(given, path), path
    root = project_root(directory, world.files)
    path = os.path.join(root or directory, MANIFEST)
    if root is None:
        return Configuration(settings, source, capabilities, path)
    try:
        manifest = manifest_of(world, root)
    except (OSError, ValueError) as error:
        raise OptionError(f"{path}: {plain_reason(error)}") from None
    overlay = convert(manifest.tables.get("llm", {}), dict[str, Any], path, "llm")
    settings = settings.overlaid(overlay, f"{path}: llm")
    refusal = manifest.refusal("llm")
    providers = manifest.held.get(("llm", "providers"))
    return Configuration(
        settings,
        source,
        (*_capabilities(manifest.tables.get("capabilities"), path), *capabilities),
        path,
        frozenset(providers if isinstance(providers, dict) else ()),
        None if refusal is None else refusal.message,
    )


def _capabilities(given: Any, path: str) -> tuple[tuple[dict[str, Any], str], ...]:
    if given is None:
        return ()
    return ((convert(given, dict[str, Any], path, "capabilities"), f"{path}: capabilities"),)


def _providers_file(env: Env, read: Read) -> tuple[str, str | None]:
    """Its path and text; the text is None when there is none."""
    named = env(VARIABLE)
    if named:
        text = _read(read, named)
        if text is None:
            raise OptionError(f"{VARIABLE}: {named}: no such file")
        return named, text
    home = env("HOME") or env("USERPROFILE") or ""
    if not os.path.isabs(home):  # a relative one would be the project's
        return "", None
    path = os.path.join(home, *_USUAL_PLACE)
    return path, _read(read, path)


def _read(read: Read, path: str) -> str | None:
    """The text of a file, None where there is no file."""
    try:
        return read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path}: {plain_reason(error)}") from None


def _parse(text: str, path: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except ValueError as error:
        raise OptionError(f"{path}: {error}") from None
