"""From a caller's options to a loop that is ready to run. Spec: 07 §6.1–6.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.daemon.daemon_options import read_daemon
from harnpy.agent.loop.dispatch import Dispatcher
from harnpy.agent.loop.ledger import read_ledger
from harnpy.agent.loop.loop import Loop, Parts
from harnpy.agent.loop.loop_compaction import read_compaction
from harnpy.agent.loop.loop_state import LoopState
from harnpy.agent.loop.model_input import ModelInput
from harnpy.agent.loop.offer import Offer
from harnpy.agent.loop.options import LLM_BACKOFF_MS, profile_of, read_loop_options
from harnpy.agent.loop.turns import Turns
from harnpy.agent.rules.gate import Gate
from harnpy.agent.skills.active import ActiveSkills, read_matching, read_skills
from harnpy.agent.skills.loading import LOAD_SKILL
from harnpy.agent.tools.search import DeferredTools, searcher
from harnpy.agent.tools.toolbox import Toolbox, refuse_unbacked, validate_surface
from harnpy.llm.native_tools import native_style, tool_entries
from harnpy.session.loop_conversation import Conversation, SessionConversation
from harnpy.text.display import display
from harnpy.text.json.writer import pretty_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.context import Rules
    from harnpy.agent.loop.options import LoopOptions
    from harnpy.agent.runtime import Runtime
    from harnpy.llm.request import Request
    from harnpy.reading.dicts import Dict
    from harnpy.reading.lenient import Options


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
    models = runtime.models
    options = models.options(given)
    profile = profile_of(options, caller)
    request = models.request(
        message,
        system,
        options,
        once=False,
        retries=profile.llm_retries,
        backoff_ms=LLM_BACKOFF_MS,
        schema_retries=profile.schema_retries,
    )
    rules = runtime.context().rules.for_options(options, caller)
    _check_tools(options, system, message, rules, caller, models.warn)
    loop_options = read_loop_options(options, profile, caller, default_format)
    options = _with_inherited_skills(options, runtime)
    skills = read_skills(options.value("skills"), caller)
    parts = _make_parts(runtime, request, options, loop_options, rules, skills)
    loop = Loop(runtime, request, loop_options, rules, parts)
    daemon = read_daemon(options)
    if daemon is not None:
        loop.rest_as(daemon, caller)
    pretty = pretty_json
    loop.model_input.compaction = read_compaction(options, request.model, loop.summarize, pretty)
    messages = options.value("messages")
    loop.opening = messages if isinstance(messages, list) else [{"role": "user", "content": message}]
    return loop


def _with_inherited_skills(options: Options, runtime: Runtime) -> Options:
    """Fill in the skills of the workflow that the loop works for, unless the options set any."""
    workflow = runtime.context().workflow
    if workflow is None:
        return options
    inherited = {"skills": workflow.skills, "skill_match": workflow.skill_match}
    missing = {key: value for key, value in inherited.items() if options.value(key) is None}
    return runtime.models.options({**options.given, **missing})


def _check_tools(
    options: Options,
    system: str | None,
    message: str,
    rules: Rules,
    caller: str,
    warn: Callable[[str, str], None],
) -> None:
    """Refuse tools that nobody could run, and warn of what is odd about the others (07 §4.7)."""
    entries = tool_entries(options.value("tools"))
    if not entries:
        return
    refuse_unbacked(entries, caller)
    keys = ("policy", "approval_policy", "tool_search")
    given = {key: options.value(key) for key in keys}
    validate_surface({**given, "tools": entries, "system": system, "prompt": message}, rules, caller, warn)


def _make_parts(
    runtime: Runtime,
    request: Request,
    given: Options,
    options: LoopOptions,
    rules: Rules,
    skills: list[Dict],
) -> Parts:
    sessions, trace = runtime.sessions, runtime.models.trace
    world = sessions.world
    state, conversation = LoopState(), _conversation(runtime, options)
    id, note = conversation.id, conversation.note
    emit = runtime.announcer(id)
    request.segment = runtime.models.segment(
        session_id=id,
        new_loop_id=world.ids.new,
        depth=sessions.depth(),
        tool_format=options.tool_format,
    )
    model_input = ModelInput(runtime, conversation, request, request.segment)
    ledger = read_ledger(given)
    active = ActiveSkills(skills, read_matching(given), id, world, note, emit, runtime.found_skills)
    entries = tool_entries(given.value("tools"))
    deferred = _deferred(request, options, entries, runtime)
    style = native_style(request.provider, request.model)
    offer = Offer(options, entries, request.system, style, ledger.active, active, deferred)
    toolbox = Toolbox(entries, rules.policy)
    if deferred is not None:
        toolbox.internal[deferred.name] = searcher(deferred, note, emit)
    if LOAD_SKILL not in toolbox.entries:
        toolbox.internal[LOAD_SKILL] = lambda call: active.load(call["arguments"])
    gate = Gate(rules, runtime.hooks, id, display, runtime.ask)
    dispatcher = Dispatcher(runtime, state, options, conversation, emit, toolbox, gate)
    turns = Turns(state, options, model_input, offer, dispatcher, ledger, trace, runtime.hooks, emit)
    return Parts(state, conversation, model_input, active, ledger, offer, toolbox, dispatcher, turns, emit)


def _conversation(runtime: Runtime, options: LoopOptions) -> Conversation:
    """Return the conversation of the session that the options name, or one of the loop's own."""
    sessions = runtime.sessions
    if options.session_id:
        return SessionConversation(options.session_id, sessions)
    return Conversation(f"agent_session_{sessions.world.ids.new()}", sessions.world)


def _deferred(
    request: Request, options: LoopOptions, entries: list[Dict], runtime: Runtime
) -> DeferredTools | None:
    """Return the deferred tools, if they are searched for here and not by the provider."""
    search = request.search
    if search is None or search.in_format(options.tool_format).native:
        return None
    return DeferredTools(entries, search.option, runtime.pattern)
