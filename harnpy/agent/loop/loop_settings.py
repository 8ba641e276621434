"""Everything that a loop is made of, read from its options and checked. Spec: 07 §6.1–6.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harnpy.agent.daemon.daemon_options import read_daemon
from harnpy.agent.loop.ledger import read_ledger
from harnpy.agent.loop.loop_compaction import read_compaction
from harnpy.agent.loop.options import LLM_BACKOFF_MS, profile_of, read_loop_options
from harnpy.agent.skills.active import read_matching, read_skills, read_working_files
from harnpy.agent.tools.toolbox import refuse_unbacked, validate_surface
from harnpy.llm.native_tools import tool_entries
from harnpy.reading.lenient import Options
from harnpy.text.json.writer import pretty_json

if TYPE_CHECKING:
    from harnpy.agent.context import Rules
    from harnpy.agent.daemon.daemon_options import DaemonOptions
    from harnpy.agent.loop.ledger import Ledger
    from harnpy.agent.loop.loop_compaction import LoopCompaction
    from harnpy.agent.loop.options import LoopOptions
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.skills.active import Matching
    from harnpy.agent.tools.loop_servers import LoopServers
    from harnpy.llm.request import Request
    from harnpy.reading.dicts import Dict


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """``tools`` are the entries that the loop may offer, ``opening`` the messages that it begins with.

    ``servers`` are the MCP servers that were started for it, and end with it.
    """

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
    servers: LoopServers | None = None


def read_settings(
    runtime: Runtime, message: str, system: str | None, given: Any, caller: str, default_format: str
) -> LoopSettings:
    """Return the settings that a caller's options make. Errors name ``caller``, a builtin.

    Raises `OptionError`, `MisuseError`, `PolicyError` and `ResizeError`.
    """
    options = runtime.models.options(given)
    profile = profile_of(options, caller)
    request = runtime.models.request(
        message,
        system,
        options,
        once=False,
        retries=profile.llm_retries,
        backoff_ms=LLM_BACKOFF_MS,
        schema_retries=profile.schema_retries,
    )
    rules = runtime.context().rules.for_options(options, caller).placed(runtime.workplace.real_root)
    surface = {key: options.value(key) for key in ("tools", "policy", "approval_policy", "tool_search")}
    tools = checked_tools(runtime, surface, rules, system, message, caller)
    loop_options = read_loop_options(options, profile, caller, default_format)
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
        compaction=read_compaction(options, request.model, pretty_json),
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
    runtime: Runtime, surface: Dict, rules: Rules, system: str | None, message: str, caller: str
) -> list[Dict]:
    """Return the entries of ``surface.tools``; refuse those that can't be run, warn of odd ones.

    Spec: 07 §4.7.
    """
    entries = tool_entries(surface["tools"])
    if entries:
        refuse_unbacked(entries, caller)
        shown = {**surface, "tools": entries, "system": system, "prompt": message}
        validate_surface(shown, rules, caller, runtime.world.warn)
    return entries
