"""The options of `agent_loop`. Every default is here. Spec: 07 §6.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import MisuseError
from harnpy.reading.lenient import Options
from harnpy.session.resize.compaction import TOOL_OUTPUT_MAX_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable

SENTINEL = "##DONE##"


class Profile(NamedTuple):
    max_iterations: int
    max_nudges: int
    tool_retries: int
    llm_retries: int
    schema_retries: int


PROFILES = {
    "tool_using": Profile(50, 8, 0, 2, 0),
    "researcher": Profile(30, 4, 0, 2, 0),
    "verifier": Profile(5, 0, 0, 2, 3),
    "completer": Profile(1, 0, 0, 2, 0),
}
LLM_BACKOFF_MS = 2000
TOOL_BACKOFF_MS = 1000
OVERFLOW_RETRIES = 1

#: What switches an option off.
OFF: tuple[object, ...] = (None, False, "none", [], {})


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """``session_id`` is "" for an anonymous loop; ``max_prose_chars`` cuts only what users see;
    ``tool_output_max_chars`` counts bytes. Messages name ``caller``, a builtin.
    """

    max_iterations: int
    max_nudges: int
    tool_retries: int
    tool_backoff_ms: int
    overflow_retries: int
    persistent: bool
    sentinel: str
    nudge: str | None
    break_unless_phase: str | None
    exit_when_verified: bool
    require_action: bool
    allow_sentinel: bool
    max_prose_chars: int | None
    tool_format: str
    mode: str
    native_tool_fallback: str
    tool_examples: str | None
    stop_after_tools: list[str]
    require_tools: list[str]
    loop_detect_warn: int
    loop_detect_block: int
    loop_detect_skip: int
    post_turn_callback: Callable[[dict[str, Any]], Any] | None
    tool_output_max_chars: int
    compress_callback: Callable[[dict[str, Any]], Any] | None
    session_id: str
    token_budget: int | None


def profile_of(options: Options, caller: str) -> Profile:
    """Return the preset that the options name. Raises `MisuseError` for an unknown one."""
    name = options.string("profile", "tool_using")
    found = PROFILES.get(name or "")
    if found is None:
        raise MisuseError(f"{caller}: profile must be one of {', '.join(PROFILES)}; got `{name}`")
    return found


def read_loop_options(
    options: Options, profile: Profile, caller: str = "agent_loop", default_format: str = "text"
) -> LoopOptions:
    """Return the loop's options; ``default_format`` is the tool format that results report by default."""
    session_id = options.string("session_id") or ""
    policy = Options(options.mapping("turn_policy"))
    mode = options.string("tool_format", default_format) or default_format
    limit = options.limit("tool_output_max_chars", caller)
    return LoopOptions(
        max_iterations=options.count("max_iterations", profile.max_iterations),
        max_nudges=options.count("max_nudges", profile.max_nudges),
        tool_retries=options.count("tool_retries", profile.tool_retries),
        tool_backoff_ms=options.count("tool_backoff_ms", TOOL_BACKOFF_MS),
        overflow_retries=options.count("overflow_retries", OVERFLOW_RETRIES),
        persistent=options.flag("persistent"),
        sentinel=options.string("done_sentinel") or SENTINEL,
        nudge=options.string("nudge"),
        break_unless_phase=options.string("break_unless_phase"),
        exit_when_verified=options.flag("exit_when_verified"),
        require_action=policy.flag("require_action_or_yield"),
        allow_sentinel=policy.flag("allow_done_sentinel", True),
        max_prose_chars=policy.integer("max_prose_chars"),
        tool_format="native" if mode == "native" else "text",
        mode="native" if mode == "native" else default_format,
        native_tool_fallback=native_fallback(options.string("native_tool_fallback"), caller),
        tool_examples=options.string("tool_examples"),
        stop_after_tools=options.strings("stop_after_successful_tools") or [],
        require_tools=options.strings("require_successful_tools") or [],
        loop_detect_warn=options.count("loop_detect_warn", 2),
        loop_detect_block=options.count("loop_detect_block", 3),
        loop_detect_skip=options.count("loop_detect_skip", 4),
        post_turn_callback=callable_or_none(options.value("post_turn_callback")),
        tool_output_max_chars=TOOL_OUTPUT_MAX_CHARS if limit is None else limit,
        compress_callback=callable_or_none(options.value("compress_callback")),
        session_id=session_id if session_id.strip() else "",
        token_budget=options.integer("token_budget"),
    )


def native_fallback(given: str | None, caller: str) -> str:
    """Return what a loop does with calls in text where it offers native tools. Raises `MisuseError`."""
    fallback = given or "allow"
    if fallback not in ("allow", "allow_once", "reject"):
        raise MisuseError(
            f"{caller}: native_tool_fallback must be one of allow, allow_once, reject; got `{fallback}`"
        )
    return fallback


def callable_or_none(value: Any) -> Any:
    return value if callable(value) else None
