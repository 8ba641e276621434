"""The capabilities of models, as far as they are known: the matrix, its built-in rows, and overrides of it.

Spec: 07 §1.15.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError, OptionError
from harnpy.formats.globs import glob_matches
from harnpy.formats.json import compact_json
from harnpy.formats.toml import parse_toml
from harnpy.llm.configuration.known_providers import DEFAULT_MODEL, MOCK
from harnpy.llm.configuration.model_settings import convert, read_entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Version = tuple[int, int]

#: Whose models the mock provider stands for.
_MOCKED = ("anthropic", "openai")
_NEVER_SHOWN = ("model_match", "version_min", "structured_output")

_AFTER_CLAUDE = ("opus-", "sonnet-", "haiku-")
_DOTTED = re.compile(r"([0-9]+)\.([0-9]*)")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_NUMBER = re.compile(r"[0-9]+")
_DATES_BEGIN = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The features of a model."""

    native_tools: bool = False
    defer_loading: bool = False
    tool_search: tuple[str, ...] = ()
    max_tools: int | None = None
    prompt_caching: bool = False
    thinking_modes: tuple[str, ...] = ()
    interleaved_thinking_supported: bool = False
    anthropic_beta_features: tuple[str, ...] = ()
    vision_supported: bool | None = False
    """None in a row of one's own that doesn't say."""
    audio: bool = False
    pdf: bool = False
    preserve_thinking: bool = False
    requires_completion_tokens: bool = False
    reasoning_effort_supported: bool = False
    structured_output: bool = False

    @property
    def is_blind(self) -> bool:
        """Whether a row says that the model takes no images."""
        return self is not NOTHING and self.vision_supported is False

    def as_dict(self, provider: str, model: str) -> dict[str, Any]:
        """Return the result of `provider_capabilities`."""
        shown = {key: value for key, value in asdict(self).items() if key not in _NEVER_SHOWN}
        lists = {key: list(value) for key, value in shown.items() if isinstance(value, tuple)}
        return {
            "provider": provider,
            "model": model,
            "thinking": bool(self.thinking_modes),
            **shown,
            "vision_supported": bool(self.vision_supported),
            **lists,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Capabilities):
    """A row: the models that ``model_match`` describes, in lower case, from ``version_min`` on."""

    model_match: str
    version_min: Version | None = None

    def matches(self, model: str, version: Version | None) -> bool:
        if self.version_min is not None and (version is None or version < self.version_min):
            return False
        return glob_matches(self.model_match, model)


@dataclass(frozen=True, slots=True)
class Rules:
    """Rows by provider, the first that matches decides; ``families`` name whose rows come next."""

    rows: Mapping[str, tuple[Rule, ...]]
    families: Mapping[str, str]


NOTHING = Capabilities()


class Matrix:
    """The built-in rows below the overrides of files and of a program.

    ``files`` are the rows of the project's file, then of the user's. ``own`` are the providers that only a
    file names.
    """

    def __init__(self, files: Sequence[Rules] = (), own: Iterable[str] = ()) -> None:
        self._others = {**OTHER_MODELS, **dict.fromkeys(own, OWN)}
        self._files = _joined(files)
        self._overrides = self._files
        self._known: dict[tuple[str, str], Capabilities] = {}

    def install(self, source: str) -> None:
        """Replace all earlier overrides with the rows of a TOML text. Raises `MisuseError`."""
        caller = "provider_capabilities_install"
        self._known.clear()
        try:
            self._overrides = read_rules(parse_toml(source), "")
        except (ValueError, OptionError) as error:
            raise MisuseError(f"{caller}: parse error: {str(error).removeprefix(': ')}") from None

    def clear(self) -> None:
        """Forget what was installed."""
        self._overrides = self._files
        self._known.clear()

    def of(self, provider: str, model: str) -> Capabilities:
        """Return what the model can do at the provider. A row stands alone: what it leaves out, it denies."""
        known = self._known.get((provider, model))
        if known is None:
            known = self._known[provider, model] = self._find(provider, model)
        return known

    def is_assumed(self, provider: str, model: str) -> bool:
        """Return True if no row is about the model."""
        return not isinstance(self.of(provider, model), Rule)

    def _find(self, provider: str, model: str) -> Capabilities:
        id = DEFAULT_MODEL if provider == model == MOCK else model.lower()
        version = model_version(id)
        names = self._lookups(provider)
        for layer in (self._overrides, BUILT_IN_ROWS):
            for name in names:
                for rule in layer.rows.get(name, ()):
                    if rule.matches(id, version):
                        return rule
        return self._others.get(provider, NOTHING)

    def _lookups(self, provider: str) -> tuple[str, ...]:
        """The providers whose rows apply to this provider's models."""
        if provider == MOCK:
            return _MOCKED
        families = {**BUILT_IN_ROWS.families, **self._overrides.families}
        return (provider, families[provider]) if provider in families else (provider,)


def _joined(files: Sequence[Rules]) -> Rules:
    """Return the rows of some files, the first one's first."""
    rows: dict[str, tuple[Rule, ...]] = {}
    families: dict[str, str] = {}
    for each in files:
        families = {**each.families, **families}
        for provider, found in each.rows.items():
            rows[provider] = rows.get(provider, ()) + found
    return Rules(rows, families)


def row_of(provider: str, model: str, can: Capabilities) -> str:
    """Return the TOML of harn.toml that says what a model can do."""
    told = {
        key: value
        for key, value in asdict(can).items()
        if value and key not in ("model_match", "version_min")
    }
    said = {"model_match": model, "native_tools": can.native_tools, **told}
    lines = [f"{key} = {_toml(value)}" for key, value in said.items()]
    name = provider if _BARE_KEY.fullmatch(provider) else compact_json(provider)
    return "\n".join([f"[[capabilities.provider.{name}]]", *lines])


def _toml(value: Any) -> str:
    """Return a text, a number, a flag or a list of texts as TOML has them, which is as JSON has them."""
    return compact_json(list(value) if isinstance(value, tuple) else value)


def read_rules(given: dict[str, Any], where: str) -> Rules:
    """Overrides as TOML has them: ``[[provider.<name>]]`` and ``[provider_family]``. Raises `OptionError`."""
    unknown = sorted(given.keys() - {"provider", "provider_family"})
    if unknown:
        raise OptionError(f"{where}: unknown key `{unknown[0]}`")
    tables = convert(given.get("provider", {}), dict[str, list[dict[str, Any]]], where, "provider")
    rows = {
        provider: tuple(
            _read_rule(table, where, f"provider.{provider}[{i}]") for i, table in enumerate(given_rows)
        )
        for provider, given_rows in tables.items()
    }
    families = convert(given.get("provider_family", {}), dict[str, str], where, "provider_family")
    return Rules(rows, families)


def _read_rule(table: dict[str, Any], where: str, key: str) -> Rule:
    table = dict(table)
    if "vision" in table:  # the name of the option of a call
        table["vision_supported"] = table.pop("vision")
    table.setdefault("vision_supported", None)
    if isinstance(table.get("model_match"), str):
        table["model_match"] = table["model_match"].lower()
    return read_entry(Rule, table, where, key)


def model_version(model: str) -> Version | None:
    """The version in a lower-cased model id."""
    text = _after_name(model)
    if text is None:
        return None
    dotted = _DOTTED.match(text)
    if dotted is not None:
        return int(dotted[1]), int(dotted[2] or 0)
    major, _, rest = text.partition("-")
    if not _NUMBER.fullmatch(major):
        return None
    minor = rest.partition("-")[0]
    if not _NUMBER.fullmatch(minor) or int(minor) >= _DATES_BEGIN:
        return int(major), 0
    return int(major), int(minor)


def _after_name(model: str) -> str | None:
    """The part of an id from its version on, if it has one."""
    model = model.partition("@")[0]  # Vertex AI's ids end in the date of the version
    if model.startswith("claude-") or "/claude-" in model or ".claude-" in model:
        return next((model.partition(name)[2] for name in _AFTER_CLAUDE if name in model), None)
    _, found, rest = model.rpartition("/")[2].partition("gpt-")
    return rest if found else None


# The built-in matrix of capabilities: data. Spec: 07 §1.15.


def _named(rule: Rule, *globs: str) -> tuple[Rule, ...]:
    return tuple(replace(rule, model_match=glob) for glob in globs)


def _prefixed(rules: tuple[Rule, ...], prefix: str) -> tuple[Rule, ...]:
    return tuple(replace(rule, model_match=prefix + rule.model_match) for rule in rules)


_CLAUDE = Rule(
    model_match="claude-*",
    native_tools=True,
    prompt_caching=True,
    thinking_modes=("enabled",),
    vision_supported=True,
    structured_output=True,
)
_CLAUDE_4 = replace(_CLAUDE, defer_loading=True, tool_search=("bm25", "regex"), max_tools=10000)
_CLAUDE_47 = replace(_CLAUDE_4, version_min=(4, 7), thinking_modes=("adaptive",))

_CLAUDE_ROWS = (
    replace(_CLAUDE_47, model_match="claude-opus-*", interleaved_thinking_supported=True),
    *_named(_CLAUDE_47, "claude-haiku-*", "claude-sonnet-*"),
    replace(
        _CLAUDE_4,
        model_match="claude-opus-*",
        version_min=(4, 6),
        interleaved_thinking_supported=True,
    ),
    replace(_CLAUDE_4, model_match="claude-haiku-*", version_min=(4, 5)),
    replace(_CLAUDE_4, model_match="claude-opus-*", version_min=(4, 0)),
    replace(_CLAUDE_4, model_match="claude-sonnet-*", version_min=(4, 0)),
    _CLAUDE,
)

_GPT = Rule(model_match="gpt-*", native_tools=True, structured_output=True)
_GPT_SEES = replace(_GPT, vision_supported=True)
_REASONING = replace(
    _GPT,
    thinking_modes=("effort",),
    requires_completion_tokens=True,
    reasoning_effort_supported=True,
)

_GPT_ROWS = (
    replace(_GPT_SEES, model_match="gpt-4o*", audio=True),
    replace(_GPT_SEES, model_match="gpt-4.1*"),
    replace(_GPT_SEES, version_min=(5, 4), defer_loading=True, tool_search=("hosted", "client")),
    _GPT,
    *_named(_REASONING, "o1*", "o3*"),
    replace(_REASONING, model_match="o4*", vision_supported=True),
)

_THINKS = Rule(model_match="*", native_tools=True, thinking_modes=("enabled",), structured_output=True)
_SEES = Rule(model_match="*", vision_supported=True, structured_output=True)
_CLOUD = Rule(model_match="*", native_tools=True)

#: Models of others on a cloud: what their own services search and defer is not there.
_CLOUD_CLAUDE = tuple(
    replace(rule, defer_loading=False, tool_search=(), max_tools=None) for rule in _CLAUDE_ROWS
)
_CLOUD_GPT = tuple(replace(rule, defer_loading=False, tool_search=()) for rule in _GPT_ROWS)
_GEMINI = replace(_CLOUD, model_match="gemini-*", vision_supported=True, structured_output=True)

_HOSTED = _named(_THINKS, "*qwen*", "*deepseek*")

_LIKE_OPENAI = (
    *("openrouter", "together", "groq", "deepseek", "fireworks", "huggingface", "local", "dashscope"),
    *("llamacpp", "mlx"),
)

BUILT_IN_ROWS = Rules(
    rows={
        "anthropic": _CLAUDE_ROWS + _prefixed(_CLAUDE_ROWS, "anthropic/"),
        "openai": _GPT_ROWS + _prefixed(_GPT_ROWS, "openai/"),
        "openrouter": _prefixed(_CLAUDE_ROWS, "anthropic/") + _HOSTED,
        **dict.fromkeys(("together", "groq", "deepseek", "fireworks", "huggingface", "dashscope"), _HOSTED),
        "ollama": (
            *_named(_SEES, "llava*", "bakllava*", "llama3.2-vision*", "gemma3*"),
            replace(_THINKS, model_match="qwen3*"),
        ),
        "gemini": (replace(_SEES, model_match="gemini-*"),),
        "mistral": (replace(_SEES, native_tools=True, thinking_modes=("effort",)),),
        "bedrock": (*_prefixed(_CLOUD_CLAUDE, "*anthropic."), _CLOUD),
        "azure_openai": _CLOUD_GPT,
        "vertex": (*_CLOUD_CLAUDE, _GEMINI),
    },
    families=dict.fromkeys(_LIKE_OPENAI, "openai"),
)

#: What is known of a provider's models that have no row. Where chat completions are served, and by a server
#: of one's own, tools are taken today; `OWN` says nothing of images.
_ANY_MODEL = Capabilities(structured_output=True)
_SERVED = Capabilities(native_tools=True, structured_output=True)
OWN = Capabilities(native_tools=True, structured_output=True, vision_supported=None)
OTHER_MODELS = {
    **dict.fromkeys((MOCK, "openai"), _ANY_MODEL),
    **dict.fromkeys((*_LIKE_OPENAI, "ollama", "vllm", "tgi"), _SERVED),
}
