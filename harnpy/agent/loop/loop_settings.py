"""Everything that a loop is made of, read from its options and checked; every default is here.

Spec: 07 §6.1–6.2, §7.3, §12; 08 §4.9.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from harnpy.agent.active_skills import read_matching, read_skills, read_working_files
from harnpy.agent.loop.ledger import read_ledger
from harnpy.agent.loop_options import COMPACTION, LOOP
from harnpy.agent.toolbox import refuse_unbacked, validate_surface
from harnpy.faults import MisuseError
from harnpy.formats.dicts import Options
from harnpy.formats.display import display
from harnpy.formats.json import pretty_json
from harnpy.llm.native_tools import tool_entries
from harnpy.session.compaction import TOKEN_THRESHOLD, TOOL_OUTPUT_MAX_CHARS, CompactPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.agent.active_skills import Matching
    from harnpy.agent.context import Rules
    from harnpy.agent.loop.ledger import Ledger
    from harnpy.agent.runtime import Runtime
    from harnpy.formats.dicts import Dict
    from harnpy.llm.request import Request

    #: ``(options, profile, caller)``: the value of a field.
    Reader = Callable[[Options, "Profile", str], Any]

SENTINEL: str = LOOP.default("done_sentinel")


class Profile(NamedTuple):
    max_iterations: int
    max_nudges: int
    tool_retries: int
    llm_retries: int
    schema_retries: int


_PROFILE: str = LOOP.default("profile")
PROFILES = {
    "tool_using": Profile(50, 8, 0, 2, 0),
    "researcher": Profile(30, 4, 0, 2, 0),
    "verifier": Profile(5, 0, 0, 2, 3),
    "completer": Profile(1, 0, 0, 2, 0),
}
LLM_BACKOFF_MS = 2000
#: The options that say together what tools there are, and what they may do.
_SURFACE = ("tools", "policy", "approval_policy", "tool_search")

#: What switches an option off.
COMPACTION_OFF: tuple[object, ...] = (None, False, "none", [], {})


class LoopOptions(Struct, frozen=True):
    """``session_id`` is "" for an anonymous loop; ``max_prose_chars`` cuts only what users see;
    ``tool_output_max_chars`` counts bytes. Messages name ``caller``, a builtin.
    """

    max_iterations: int
    max_nudges: int
    tool_retries: int
    tool_backoff_ms: int
    overflow_retries: int
    on_cut: str
    persistent: bool
    sentinel: str
    nudge: str | None
    break_unless_phase: str | None
    exit_when_verified: bool
    require_action: bool
    allow_sentinel: bool
    max_prose_chars: int | None
    native_tool_fallback: str
    tool_examples: str | None
    stop_after_tools: Sequence[str]
    require_tools: Sequence[str]
    loop_detect_warn: int
    loop_detect_block: int
    loop_detect_skip: int
    post_turn_callback: Callable[[dict[str, Any]], Any] | None
    on_chunk: Callable[[dict[str, Any]], Any] | None
    tool_output_max_chars: int
    compress_callback: Callable[[dict[str, Any]], Any] | None
    token_budget: int | None
    session_id: str = ""
    tool_format: str = "text"
    mode: str = "text"


def profile_of(options: Options, caller: str) -> Profile:
    """Return the preset that the options name. Raises `MisuseError` for an unknown one."""
    name = options.string("profile", _PROFILE)
    found = PROFILES.get(name or "")
    if found is None:
        raise MisuseError(f"{caller}: profile must be one of {', '.join(PROFILES)}; got `{name}`")
    return found


def read_loop_options(
    options: Options,
    profile: Profile,
    caller: str = "agent_loop",
    default_format: str = "text",
    model_format: str = "text",
) -> LoopOptions:
    """Return the loop's options.

    ``model_format`` is the tool format where they name none; ``default_format`` is what results report of
    the text format then.
    """
    read = {}
    if options.has_any(_READ):
        read = {
            field: reader(options, profile, caller)
            for option, fields in _READERS.items()
            if option in options
            for field, reader in fields.items()
        }
    session_id = options.string("session_id") or ""
    is_native = (options.string("tool_format") or model_format) == "native"
    return replace(
        _usual_loop(profile),
        session_id=session_id if session_id.strip() else "",
        tool_format="native" if is_native else "text",
        mode="native" if is_native else default_format,
        **read,
    )


@cache
def _usual_loop(profile: Profile) -> LoopOptions:
    """Return what a loop does that has no options."""
    none = Options({})
    fields = (each.items() for each in _READERS.values())
    return LoopOptions(**{field: reader(none, profile, "") for field, reader in chain.from_iterable(fields)})


def _on_cut(given: str | None, caller: str) -> str:
    """Return what a loop does with a reply that was cut off. Raises `MisuseError`."""
    chosen = given or LOOP.default("on_cut")
    if chosen not in ("fail", "continue", "accept"):
        raise MisuseError(f"{caller}: on_cut must be one of fail, continue, accept; got `{chosen}`")
    return str(chosen)


def _native_fallback(given: str | None, caller: str) -> str:
    """Return what a loop does with calls in text where it offers native tools. Raises `MisuseError`."""
    fallback = given or LOOP.default("native_tool_fallback")
    if fallback not in ("allow", "allow_once", "reject"):
        raise MisuseError(
            f"{caller}: native_tool_fallback must be one of allow, allow_once, reject; got `{fallback}`"
        )
    return str(fallback)


def callable_or_none(value: Any) -> Any:
    return value if callable(value) else None


def _most_output(options: Options, profile: Profile, caller: str) -> int:
    limit = options.limit("tool_output_max_chars", caller)
    return TOOL_OUTPUT_MAX_CHARS if limit is None else limit


def _by_profile(name: str) -> Reader:
    return lambda options, profile, caller: options.count(name, getattr(profile, name))


def _count(name: str) -> Reader:
    usual: int = LOOP.default(name)
    return lambda options, profile, caller: options.count(name, usual)


def _flag(name: str) -> Reader:
    return lambda options, profile, caller: options.flag(name)


def _text(name: str) -> Reader:
    return lambda options, profile, caller: options.string(name)


def _texts(name: str) -> Reader:
    return lambda options, profile, caller: options.strings(name) or ()


def _function(name: str) -> Reader:
    return lambda options, profile, caller: callable_or_none(options.value(name))


def _of_policy(read: Callable[[Options], Any]) -> Reader:
    return lambda options, profile, caller: read(Options(options.mapping("turn_policy")))


#: The option → the fields that it sets, and how each is read.
_READERS: Mapping[str, Mapping[str, Reader]] = {
    **{name: {name: _by_profile(name)} for name in ("max_iterations", "max_nudges", "tool_retries")},
    **{name: {name: _count(name)} for name in ("tool_backoff_ms", "overflow_retries")},
    **{name: {name: _count(name)} for name in ("loop_detect_warn", "loop_detect_block", "loop_detect_skip")},
    **{name: {name: _flag(name)} for name in ("persistent", "exit_when_verified")},
    **{name: {name: _text(name)} for name in ("nudge", "break_unless_phase", "tool_examples")},
    **{name: {name: _function(name)} for name in ("post_turn_callback", "on_chunk", "compress_callback")},
    "on_cut": {"on_cut": lambda options, profile, caller: _on_cut(options.string("on_cut"), caller)},
    "done_sentinel": {
        "sentinel": lambda options, profile, caller: options.string("done_sentinel") or SENTINEL
    },
    "turn_policy": {
        "require_action": _of_policy(lambda policy: policy.flag("require_action_or_yield")),
        "allow_sentinel": _of_policy(lambda policy: policy.flag("allow_done_sentinel", True)),
        "max_prose_chars": _of_policy(lambda policy: policy.integer("max_prose_chars")),
    },
    "native_tool_fallback": {
        "native_tool_fallback": lambda options, profile, caller: _native_fallback(
            options.string("native_tool_fallback"), caller
        )
    },
    "stop_after_successful_tools": {"stop_after_tools": _texts("stop_after_successful_tools")},
    "require_successful_tools": {"require_tools": _texts("require_successful_tools")},
    "tool_output_max_chars": {"tool_output_max_chars": _most_output},
    "token_budget": {"token_budget": lambda options, profile, caller: options.integer("token_budget")},
}
_READ = frozenset(_READERS)


_DEFAULT_LABEL: str = LOOP.default("compaction")
_LEAST_WINDOW = 4096


class _Preset(NamedTuple):
    """The settings that a label stands for: the strategy, that for the hard limit, how many messages stay.

    None is the default of every compaction.
    """

    label: str | None
    strategy: str | None
    fallback: str | None
    keep_last: int | None = COMPACTION.default("keep_last")


_MIDDLE = _Preset("summarize_middle", "llm", "llm")
_PRESETS = {
    "truncate": _Preset("truncate", "truncate", "truncate"),
    "summarize_middle": _MIDDLE,
    "summarize": _MIDDLE,
    "llm": _MIDDLE,
    "summarize_all": _Preset("summarize_all", "llm", "llm", 0),
    "hybrid": _Preset("hybrid", "llm", "truncate"),
}


class LoopCompaction(NamedTuple):
    """``label`` is the policy's name in events; ``threshold`` is in estimated tokens."""

    label: str
    policy: CompactPolicy
    threshold: int


_OF_COMPACTION = frozenset(
    "compaction auto_compact compact_strategy compact_threshold compact_keep_first compact_keep_last "
    "compact_callback hard_limit_tokens hard_limit_strategy tool_output_max_chars summarize_prompt "
    "mask_callback compress_callback".split()
)


def read_compaction(
    options: Options, window: int | None, pretty: Callable[[Any], str]
) -> LoopCompaction | None:
    """Return how the options compact a conversation, None for not at all; ``window`` is the model's.

    Callbacks are Python callables, and `summarize_prompt` a function `prompt(lines, count)`. Raises
    `MisuseError`, and `ResizeError` for a strategy that can't be carried out.
    """
    if not options.has_any(_OF_COMPACTION):
        return _usual_compaction(window, pretty)
    return _read_compaction(options, window, pretty)


@cache
def _usual_compaction(window: int | None, pretty: Callable[[Any], str]) -> LoopCompaction | None:
    return _read_compaction(Options({}), window, pretty)


def _read_compaction(
    options: Options, window: int | None, pretty: Callable[[Any], str]
) -> LoopCompaction | None:
    preset, keep_first = _preset(options)
    if preset is None:
        return None
    hard_limit = options.limit("hard_limit_tokens", "agent_loop")
    threshold = options.limit("compact_threshold", "agent_loop")
    first = options.limit("compact_keep_first", "agent_loop")
    last = options.limit("compact_keep_last", "agent_loop")
    policy = CompactPolicy.of(
        keep_first=keep_first if first is None else first,
        keep_last=preset.keep_last if last is None else last,
        strategy=preset.strategy,
        hard_limit_tokens=hard_limit,
        hard_limit_strategy=preset.fallback,
        tool_output_max_chars=options.limit("tool_output_max_chars", "agent_loop"),
        custom_compactor=options.value("compact_callback"),
        mask_callback=callable_or_none(options.value("mask_callback")),
        compress_callback=callable_or_none(options.value("compress_callback")),
        prompt=callable_or_none(options.value("summarize_prompt")),
        pretty=pretty,
    )
    return compaction_of(preset.label or policy.strategy, policy, threshold, window)


def compaction_of(
    label: str, policy: CompactPolicy, threshold: int | None, window: int | None
) -> LoopCompaction:
    """Return the compaction by ``policy``, its limits within the model's context window, where it is known.

    Raises `ResizeError`.
    """
    threshold, hard_limit = _limits(threshold, policy.hard_limit_tokens, window)
    policy = policy._replace(hard_limit_tokens=hard_limit)
    policy.check()
    return LoopCompaction(label, policy, threshold)


def _preset(options: Options) -> tuple[_Preset | None, int]:
    """Return the preset, and how many messages stay in front; (None, …) is off."""
    if "compaction" in options:
        return _labelled(options.value("compaction"))
    if "auto_compact" not in options:
        return _PRESETS[_DEFAULT_LABEL], 0
    if not options.value("auto_compact"):
        return None, 0
    strategy, fallback = options.string("compact_strategy"), options.string("hard_limit_strategy")
    return _Preset(None, strategy or None, fallback or None, None), 0


def _labelled(given: Any) -> tuple[_Preset | None, int]:
    if given is None or given is True:
        return _PRESETS[_DEFAULT_LABEL], 0
    if given is False:
        return None, 0
    if isinstance(given, str):
        return _named(given), 0
    if not isinstance(given, dict):
        raise MisuseError("agent_loop: compaction must be a string, dict, bool, or nil")
    preset = _named(_first(given, ("type", "kind", "strategy"), _DEFAULT_LABEL))
    if preset is None:
        return None, 0
    keep_first = _first(given, ("keep_first_n", "keep_first"), 0)
    keep_last = _first(given, ("keep_last_n", "keep_last"), preset.keep_last)
    for keep in (keep_first, keep_last):
        if type(keep) is not int or keep < 0:
            raise MisuseError("agent_loop: compaction keep counts must be >= 0")
    return preset._replace(keep_last=keep_last), keep_first


def _named(label: Any) -> _Preset | None:
    if label == "none":
        return None
    preset = _PRESETS.get(label) if isinstance(label, str) else None
    if preset is None:
        raise MisuseError(
            f"agent_loop: unknown compaction strategy '{display(label)}' "
            "(expected none, truncate, summarize_middle, summarize_all, or hybrid)"
        )
    return preset


def _limits(threshold: int | None, hard_limit: int | None, window: int | None) -> tuple[int, int | None]:
    """Return the threshold and the hard limit, both within the model's context window."""
    if window is None:
        return (TOKEN_THRESHOLD if threshold is None else threshold), hard_limit
    usable = max(window, _LEAST_WINDOW) * 3 // 4
    hard_limit = usable if hard_limit is None else min(hard_limit, usable)
    if threshold is None:
        return min(TOKEN_THRESHOLD, window * 13 // 20), hard_limit
    return min(threshold, usable), hard_limit


def _first(given: dict[str, Any], keys: tuple[str, ...], default: Any) -> Any:
    """Return the first of ``keys`` that is set."""
    return next((given[key] for key in keys if given.get(key) is not None), default)


@dataclass(frozen=True, slots=True)
class DaemonOptions:
    """``path`` is where snapshots go; ``watchdog_attempts`` 0 means no watchdog."""

    path: str | None
    resume_path: str | None
    wake_interval_ms: int | None
    watch_paths: list[str]
    consolidates: bool
    watchdog_attempts: int


def read_daemon(options: Options) -> DaemonOptions | None:
    """Return how the loop rests; None when it doesn't."""
    if not options.flag("daemon"):
        return None
    resume_path = _path(options, "resume_path")
    interval = options.integer("wake_interval_ms")
    return DaemonOptions(
        path=_path(options, "persist_path") or resume_path,
        resume_path=resume_path,
        wake_interval_ms=None if interval is None else max(0, interval),
        watch_paths=list(dict.fromkeys(options.strings("watch_paths") or ())),
        consolidates=options.value("consolidate_on_idle") is True,
        watchdog_attempts=options.count("idle_watchdog_attempts", LOOP.default("idle_watchdog_attempts")),
    )


def _path(options: Options, key: str) -> str | None:
    path = options.string(key)
    return path if path and path.strip() else None


class LoopSettings(Struct, frozen=True):
    """``tools`` are the entries that the loop may offer, ``opening`` the messages that it begins with."""

    request: Request
    options: LoopOptions
    tools: list[Dict]
    rules: Rules
    skills: list[Dict]
    matching: Matching
    ledger: Ledger
    compaction: LoopCompaction | None
    opening: list[Dict]
    daemon: DaemonOptions | None = None


def read_settings(
    runtime: Runtime,
    message: str,
    system: str | None,
    given: Any,
    caller: str,
    default_format: str,
    *,
    prefers_native: bool = False,
) -> LoopSettings:
    """Return the settings that a caller's options make. Errors name ``caller``, a builtin.

    ``prefers_native``: as in `Models.tool_format`.

    Raises `OptionError`, `MisuseError`, `PolicyError` and `ResizeError`.
    """
    options = runtime.models.options(given)
    profile = profile_of(options, caller)
    request = runtime.models.request(
        message,
        system,
        options,
        once=False,
        prefers_native=prefers_native,
        retries=profile.llm_retries,
        backoff_ms=LLM_BACKOFF_MS,
        schema_retries=profile.schema_retries,
    )
    window = runtime.models.config.known_models.context_window(request.model, request.provider)
    rules = runtime.context().rules.for_options(options, caller).placed(runtime.workplace.real_root)
    loop_options = read_loop_options(options, profile, caller, default_format, request.tool_format)
    tools: list[Dict] = []
    surface = {key: options.given.get(key) for key in _SURFACE}
    if surface["tools"] is not None:
        is_native = loop_options.tool_format == "native"
        tools = checked_tools(runtime, surface, rules, system, message, caller, is_native)
    skills, matching = inherited_skills(runtime, options.value("skills"), options.value("skill_match"))
    ledger, messages = options.mapping("task_ledger"), options.value("messages")
    return LoopSettings(
        request=request,
        options=loop_options,
        tools=tools,
        rules=rules,
        skills=read_skills(skills, caller),
        matching=read_matching(Options(matching), read_working_files(options)),
        ledger=read_ledger(options if ledger is None else Options(ledger)),
        daemon=read_daemon(options),
        compaction=read_compaction(options, window, pretty_json),
        opening=messages if isinstance(messages, list) else opening(message),
    )


def opening(message: str) -> list[Dict]:
    """Return the messages that a loop begins with, unless its caller gives others."""
    return [{"role": "user", "content": message}]


def inherited_skills(runtime: Runtime, skills: Any, matching: Any) -> tuple[Any, Any]:
    """Return skills and how they are matched, those of the loop's workflow where the loop has none."""
    workflow = runtime.context().workflow
    if workflow is None:
        return skills, matching
    return (
        workflow.skills if skills is None else skills,
        workflow.skill_match if matching is None else matching,
    )


def checked_tools(
    runtime: Runtime,
    surface: Dict,
    rules: Rules,
    system: str | None,
    message: str,
    caller: str,
    is_native: bool,
) -> list[Dict]:
    """Return the entries of ``surface.tools``; refuse those that can't be run, warn of odd ones.

    Spec: 07 §4.7.
    """
    entries = tool_entries(surface["tools"])
    if entries:
        refuse_unbacked(entries, caller, is_native)
        shown = {**surface, "tools": entries, "system": system, "prompt": message}
        validate_surface(shown, rules, caller, runtime.world.warn)
    return entries
