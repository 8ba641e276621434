"""From a caller's options to a loop that is ready to run. Spec: 07 §6.1–6.2."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from harnpy.agent.loop.dispatch import Dispatcher
from harnpy.agent.loop.loop import Loop, Parts
from harnpy.agent.loop.loop_settings import read_settings
from harnpy.agent.loop.loop_state import LoopState
from harnpy.agent.loop.model_input import ModelInput
from harnpy.agent.loop.model_offer import ModelOffer
from harnpy.agent.loop.options import OFF
from harnpy.agent.loop.turns import Turns
from harnpy.agent.rules.approval_log import ApprovalLog
from harnpy.agent.rules.gate import Gate
from harnpy.agent.skills.active import ActiveSkills
from harnpy.agent.skills.loading import LOAD_SKILL
from harnpy.agent.skills.skill_servers import SkillServers
from harnpy.agent.tools.search import DeferredTools, searcher
from harnpy.agent.tools.toolbox import Toolbox
from harnpy.llm.native_tools import native_style
from harnpy.session.loop_conversation import SessionConversation
from harnpy.session.turns.conversation import Conversation

if TYPE_CHECKING:
    from harnpy.agent.loop.loop_settings import LoopSettings
    from harnpy.agent.loop.options import LoopOptions
    from harnpy.agent.runtime import Runtime
    from harnpy.llm.request import Request
    from harnpy.reading.dicts import Dict


def run_loop(runtime: Runtime, message: str, system: str | None, given: Any) -> dict[str, Any]:
    """Run a loop to its end and return its result. ``given`` is the caller's options. Spec: 07 §6.11.

    Raises `OptionError` and `MisuseError` before anything happens, `CallError` when the model fails for
    good: the session then holds the conversation up to the failed call.
    """
    return make_loop(runtime, message, system, given).run()


def make_loop(
    runtime: Runtime,
    message: str,
    system: str | None,
    given: Any,
    caller: str = "agent_loop",
    default_format: str = "text",
) -> Loop:
    """Return a loop that is ready to run. Errors name ``caller``, a builtin."""
    servers = None
    if isinstance(given, dict) and given.get("mcp_servers") not in OFF:
        from harnpy.agent.tools.loop_servers import with_servers  # asyncio comes with it

        given, servers = with_servers(runtime, given, caller)
    with ExitStack() as undoing:
        if servers is not None:
            undoing.push(servers)
        settings = read_settings(runtime, message, system, given, caller, default_format)
        loop = loop_of(runtime, replace(settings, servers=servers))
        if settings.daemon is not None:
            loop.rest_as(settings.daemon, caller)
        undoing.pop_all()
    return loop


def loop_of(runtime: Runtime, settings: LoopSettings, conversation: Conversation | None = None) -> Loop:
    """Return a loop with these settings that is ready to run; it ends where it has nothing to do.

    Its conversation is that of the session that its options name, unless it is given one.
    """
    parts = _make_parts(runtime, settings, conversation or _conversation(runtime, settings.options))
    loop = Loop(runtime, settings.request, settings.options, settings.rules, parts)
    if settings.compaction is not None:
        loop.model_input.compaction = settings.compaction.summarized_by(loop.summarize)
    loop.opening = settings.opening
    loop.servers = settings.servers
    return loop


def _make_parts(runtime: Runtime, settings: LoopSettings, conversation: Conversation) -> Parts:
    request, options, rules, ledger = settings.request, settings.options, settings.rules, settings.ledger
    sessions, trace = runtime.sessions, runtime.models.trace
    world = sessions.world
    state = LoopState()
    id, note = conversation.id, conversation.note
    emit = runtime.announcer(id)
    request.segment = runtime.models.segment(
        session_id=id,
        new_loop_id=world.ids.new,
        depth=sessions.depth(),
        tool_format=options.tool_format,
    )
    model_input = ModelInput(runtime, conversation, request, request.segment)
    held, found = SkillServers(runtime, note), runtime.found_skills
    active = ActiveSkills(settings.skills, settings.matching, id, world, note, emit, held, found)
    entries = settings.tools
    deferred = _deferred(request, options, entries)
    style = native_style(request.provider, request.model)
    offer = ModelOffer(options, entries, request.system, style, ledger.active, active, deferred)
    toolbox = Toolbox(entries, rules.policy, settings.servers.clients if settings.servers else {})
    if deferred is not None:
        toolbox.internal[deferred.name] = searcher(deferred, note, emit)
    if LOAD_SKILL not in toolbox.entries:
        toolbox.internal[LOAD_SKILL] = lambda call: active.load(call["arguments"])
    log = ApprovalLog(id, partial(runtime.record, id), world.ids.new) if rules.permissions else None
    gate = Gate(rules, runtime.hooks, id, runtime.workplace, runtime.ask, log)
    dispatcher = Dispatcher(runtime, state, options, conversation, emit, toolbox, gate)
    turns = Turns(state, options, model_input, offer, dispatcher, ledger, trace, runtime.hooks, emit)
    return Parts(state, conversation, model_input, active, ledger, offer, toolbox, dispatcher, turns, emit)


def _conversation(runtime: Runtime, options: LoopOptions) -> Conversation:
    """Return the conversation of the session that the options name, or one of the loop's own."""
    sessions = runtime.sessions
    if options.session_id:
        return SessionConversation(options.session_id, sessions)
    return Conversation(f"agent_session_{sessions.world.ids.new()}", sessions.world)


def _deferred(request: Request, options: LoopOptions, entries: list[Dict]) -> DeferredTools | None:
    """Return the deferred tools, if they are searched for here and not by the provider."""
    search = request.search
    if search is None or search.in_format(options.tool_format).native:
        return None
    return DeferredTools(entries, search.option)
