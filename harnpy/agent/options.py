"""The options of `agent_loop`. Every default is here. Spec: 07 §6.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from harnpy.llm.errors import MisuseError
from harnpy.llm.options import Options
from harnpy.llm.request import not_yet

SENTINEL = "##DONE##"


class Profile(NamedTuple):
    max_iterations: int
    max_nudges: int
    llm_retries: int


PROFILES = {
    "tool_using": Profile(50, 8, 2),
    "researcher": Profile(30, 4, 2),
    "verifier": Profile(5, 0, 2),
    "completer": Profile(1, 0, 2),
}
LLM_BACKOFF_MS = 2000

#: Options whose meaning isn't built yet: a loop that ignored one would do something else than asked.
_LATER = {
    "tools": "tools",
    "mcp_servers": "tools",
    "skills": "skills",
    "policy": "policies",
    "approval_policy": "policies",
    "permissions": "policies",
    "command_policy": "policies",
    "task_ledger": "the task ledger",
    "deliverables": "the task ledger",
    "daemon": "daemon loops",
}
_OFF: tuple[object, ...] = (None, False, "none", [], {})


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """``session_id`` is "" for an anonymous loop; ``max_prose_chars`` cuts only what users see."""

    max_iterations: int
    max_nudges: int
    persistent: bool
    sentinel: str
    nudge: str | None
    break_unless_phase: str | None
    exit_when_verified: bool
    require_action: bool
    allow_sentinel: bool
    max_prose_chars: int | None
    tool_format: str
    require_tools: list[str]
    session_id: str
    token_budget: int | None


def profile_of(options: Options) -> Profile:
    """The preset that the options name. Raises `MisuseError` for an unknown one."""
    name = options.string("profile", "tool_using")
    found = PROFILES.get(name or "")
    if found is None:
        raise MisuseError(f"agent_loop: profile must be one of {', '.join(PROFILES)}; got `{name}`")
    return found


def read_loop_options(options: Options, profile: Profile) -> LoopOptions:
    for key, what in _LATER.items():
        if options.value(key) not in _OFF:
            raise MisuseError(not_yet("agent_loop", key, what))
    fallback = options.string("native_tool_fallback", "allow")
    if fallback not in ("allow", "allow_once", "reject"):
        raise MisuseError(
            f"agent_loop: native_tool_fallback must be one of allow, allow_once, reject; got `{fallback}`"
        )
    session_id = options.string("session_id") or ""
    policy = Options(options.mapping("turn_policy"), options.show)
    return LoopOptions(
        max_iterations=options.count("max_iterations", profile.max_iterations),
        max_nudges=options.count("max_nudges", profile.max_nudges),
        persistent=options.flag("persistent"),
        sentinel=options.string("done_sentinel") or SENTINEL,
        nudge=options.string("nudge"),
        break_unless_phase=options.string("break_unless_phase"),
        exit_when_verified=options.flag("exit_when_verified"),
        require_action=policy.flag("require_action_or_yield"),
        allow_sentinel=policy.flag("allow_done_sentinel", True),
        max_prose_chars=policy.integer("max_prose_chars"),
        tool_format="native" if options.string("tool_format") == "native" else "text",
        require_tools=options.strings("require_successful_tools") or [],
        session_id=session_id if session_id.strip() else "",
        token_budget=options.integer("token_budget"),
    )
