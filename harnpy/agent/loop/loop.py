"""The agent loop: ask the model, act on its answer, decide whether to continue. Spec: 07 §6, 08 §1.11.

`ModelInput` holds the conversation, `ModelOffer` decides what the model may call, `Dispatcher` calls it and
`completion` decides whether the work is complete. What is left here is the order of things, and how a loop is
made from a caller's options.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from harnpy import telemetry
from harnpy.agent.active_skills import LOAD_SKILL, ActiveSkills, SkillServers
from harnpy.agent.context import NOTHING
from harnpy.agent.loop import prompts
from harnpy.agent.loop.completion import LoopState
from harnpy.agent.loop.dispatch import Dispatcher
from harnpy.agent.loop.loop_settings import COMPACTION_OFF, read_settings
from harnpy.agent.loop.model_input import ModelInput
from harnpy.agent.loop.model_offer import DeferredTools, ModelOffer, searcher
from harnpy.agent.loop.resting import WATCHDOG, Daemon
from harnpy.agent.loop.shown_answers import ShownAnswers
from harnpy.agent.loop.transcript_entries import completed_step, record_reply, recorded_answer
from harnpy.agent.loop.turns import Idle, Turns
from harnpy.agent.rules.gate import Gate
from harnpy.agent.rules.hooks import PRE_AGENT_TURN
from harnpy.agent.rules.permissions import ApprovalLog
from harnpy.agent.toolbox import Toolbox
from harnpy.llm.account import project
from harnpy.llm.errors import OVERFLOW, BudgetExceeded, CallError
from harnpy.llm.structured import nudge_text, read_answer, record_retry
from harnpy.llm.text_format import visible_text
from harnpy.session.conversation import Conversation, SessionConversation
from harnpy.session.events import COMPACTION_STARTED, ESCALATION_RETRIED, STEP_COMPLETED, TRANSCRIPT_EVENT
from harnpy.session.transcript import lifecycle_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.agent.context import Rules
    from harnpy.agent.loop.loop_settings import DaemonOptions, LoopOptions, LoopSettings
    from harnpy.agent.loop.mcp_servers import LoopServers
    from harnpy.agent.runtime import Runtime
    from harnpy.formats.dicts import Dict
    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request

#: What the log calls the end of a loop whose status has another name. Spec: 10 §C16.1.
_STOP_REASONS = {"done": "completed", "idle": "waiting"}


def opening_messages(given: list[Any]) -> Iterator[Dict]:
    """Return a loop's opening messages. Without a role they are the user's; odd roles are dropped."""
    for message in given:
        if isinstance(message, dict):
            role = message.get("role")
            if role is None:
                yield {**message, "role": "user"}
            elif isinstance(role, str):
                yield message


class Loop:
    """One run."""

    def __init__(
        self,
        runtime: Runtime,
        settings: LoopSettings,
        conversation: Conversation,
        servers: LoopServers | None = None,
    ) -> None:
        self.runtime = runtime
        self.models = models = runtime.models
        self.options = options = settings.options
        self.rules = rules = settings.rules
        self.ledger = settings.ledger
        self.opening = settings.opening
        self.servers = servers
        self.daemon: Daemon | None = None
        #: What spans call the agent, if it has a name.
        self.agent: str | None = None
        self.conversation = conversation
        self.state = state = LoopState()
        self._emit = emit = runtime.announcer(conversation.id)
        id, note, world, request = conversation.id, conversation.note, runtime.world, settings.request
        request.segment = models.segment(
            session_id=id,
            new_loop_id=world.ids.new,
            depth=runtime.sessions.depth,
            tool_format=options.tool_format,
        )
        self.model_input = ModelInput(runtime, conversation, request, request.segment)
        held, found = SkillServers(runtime, note), runtime.found_skills
        self.skills = ActiveSkills(settings.skills, settings.matching, id, world, note, emit, held, found)
        entries = settings.tools
        deferred = _deferred(request, options, entries)
        active = self.ledger.active
        self.offer = ModelOffer(
            options, entries, request.system, request.style, active, self.skills, deferred
        )
        self.toolbox = Toolbox(entries, rules.policy, self.servers.clients if self.servers else {})
        if deferred is not None:
            self.toolbox.internal[deferred.name] = searcher(deferred, note, emit)
        if LOAD_SKILL not in self.toolbox.entries:
            self.toolbox.internal[LOAD_SKILL] = self.skills.answer
        self.turns = Turns(
            state,
            options,
            self.model_input,
            self.offer,
            partial(_dispatcher, runtime, state, options, rules, conversation, emit, self.toolbox),
            self.ledger,
            models.trace,
            runtime.hooks,
            emit,
        )
        conversation.summarize = self.model_input.summarize = self.summarize
        self.model_input.compaction = settings.compaction
        # The budget is checked here, not by the call: it ends the loop instead of failing.
        self.budget, request.budget = request.budget, None
        request.retried = self._note_retry
        is_native = options.tool_format == "native"
        request.shown = ShownAnswers(conversation, runtime.tasks, options.on_chunk, is_native=is_native)
        self.prefill = request.prefill
        self.caller_system = request.system
        #: When it is over, on the monotonic clock.
        self.until: float | None = None
        self._ran_out = False  # of iterations

    def rest_as(self, options: DaemonOptions, caller: str) -> None:
        """Go idle where the loop would otherwise end. Errors name ``caller``, a builtin."""
        self.daemon = Daemon(options, self.runtime, self.state, self.model_input, caller, self._emit)

    # From start to end.

    def run(self) -> Dict:
        conversation, runtime = self.conversation, self.runtime
        id, running = conversation.id, runtime.running
        with (
            self.servers or NOTHING,
            self.skills.servers,
            runtime.sessions.enter(id),
            runtime.context().govern(self.rules, note=self._note_decision),
            telemetry.agent_span(self.agent, id) as span,
        ):
            outer, running[id] = running.get(id), conversation
            try:
                result = self._run()
                if span.records:
                    span.set({"harn.status": result["status"], "harn.iterations": self.state.iterations})
                return result
            except BaseException as error:
                conversation.fail(error)
                raise
            finally:
                if outer is None:
                    del running[id]
                else:
                    running[id] = outer
                self._let_go()

    def _let_go(self) -> None:
        """Have nothing of the loop refer to it, so that it goes without the garbage collector: that had more
        to do with the remains of short loops than with what sessions keep."""
        self.conversation.summarize = self.model_input.summarize = None
        self.model_input.request.retried = self.model_input.request.shown = None

    def _run(self) -> Dict:
        clock, conversation, state = self.models.world.clock.monotonic, self.conversation, self.state
        begin = clock()
        self._begin()
        if self.skills:
            self.skills.restore(conversation.active_skills())
        status = self._turns()
        if status == "done" and not self._tools_succeeded():
            status = "failed"
        if self.daemon is not None:
            self.daemon.save(status)
        conversation.end(self._stop_reason(status), state.iterations, self.skills.active)
        ms = int((clock() - begin) * 1000)
        self.models.trace.record_loop(status, state.iterations, ms, state.calls, list(state.successful))
        return self._result(status, ms)

    def _stop_reason(self, status: str) -> str:
        """Return what the log calls the end of a loop with this status."""
        if self._ran_out:
            return "max_turns_hit"
        return _STOP_REASONS.get(status, status)

    def _begin(self) -> None:
        opening = opening_messages(self.opening)
        begin = self.model_input.begin if self.daemon is None else self.daemon.begin
        begin(self.caller_system, self.options.tool_format, opening)

    def _note_decision(self, kind: str, text: str, metadata: Dict) -> None:
        """Record what rules decided while a tool ran, also after the loop's end, and tell listeners.

        What is decided on a listener's own commands is not noted: it would be told of them, too, for ever.
        """
        event = lifecycle_event(kind, text, role="tool", metadata=metadata)
        self.runtime.record(self.conversation.id, [(TRANSCRIPT_EVENT, event)])
        context = self.runtime.context()
        note, context.note = context.note, None
        try:
            self._emit(kind, **metadata)
        finally:
            context.note = note

    def _tools_succeeded(self) -> bool:
        """Return True if one of the required tools succeeded."""
        required = self.options.require_tools
        return not required or any(name in self.state.successful for name in required)

    def _turns(self) -> str:
        """Take turns until one ends the loop. Return its status."""
        if self.options.max_iterations == 0:
            return "done"
        status = None if self.daemon is None else self.daemon.resume()
        if status is not None:
            return status
        for iteration in range(self.options.max_iterations):
            status = self._turn(iteration)
            if status is not None:
                return status
        self._ran_out = True
        self._emit("budget_exhausted", max_iterations=self.options.max_iterations)
        return "budget_exhausted"

    def _turn(self, iteration: int) -> str | None:
        """Take one turn. Return the loop's status if it ends here."""
        if self.model_input.segment is not None:
            self.model_input.segment.iteration = iteration
        if self.skills.due(iteration):
            self.skills.match(self.model_input.latest_request(), iteration)
        if self.offer.renew(self.model_input.request):
            self.toolbox.replace(self.offer.allowed)
        self._before_call(iteration)
        request = self._request()
        if self._over_budget(request):
            self.conversation.store()
            over = {"iteration": iteration, "failed": False, "text": "", "status": "budget_exhausted"}
            self._emit("iteration_end", iteration=iteration, turn_info=over)
            return "budget_exhausted"
        reply, text = self._ask(request, iteration)
        taken = self.turns.take(reply, text, iteration)
        status = self._rest(taken) if isinstance(taken, Idle) else taken
        status = "budget_exhausted" if self._spent() else status
        if status is None or self.daemon is not None:
            self.conversation.store()
        return status

    def _rest(self, idle: Idle) -> str | None:
        """End the loop, or let its daemon rest until something wakes it. Return the status that ends it."""
        if self.daemon is None:
            self.turns.close(idle.turn.info(False))
            return "done"
        rest = self.daemon.idle()
        self.turns.close(idle.turn.info(rest.mark == WATCHDOG, status=rest.mark))
        return rest.status

    # Before the call.

    def _before_call(self, iteration: int) -> None:
        model_input = self.model_input
        model_input.take_in_messages()
        model_input.compact_when_full("preflight", iteration)
        model_input.make_room()
        self._run_hooks(PRE_AGENT_TURN, iteration=iteration, total_iterations=self.options.max_iterations)
        if model_input.has_audience:
            self._emit("turn_start", iteration=iteration)
            self._emit("iteration_start", iteration=iteration)
        model_input.request.prefill = self.prefill
        feedback = self.runtime.sessions.take_feedback(self.conversation.id)
        if feedback:
            model_input.take_in_messages()  # what subscribers have injected in reply comes before it
        for kind, content in feedback:
            self._emit("feedback_injected", kind=kind, content=content)
            if kind == "prefill_assistant":
                model_input.request.prefill = content
            else:
                model_input.feed_back(kind, content)

    def _request(self) -> Request:
        """Return what is asked: the conversation, and what only this call sees."""
        request = self.model_input.current()
        tail = self.conversation.tail()
        if self.ledger.active:
            tail.append({"role": "user", "content": self.ledger.render()})
        return replace(request, messages=[*request.messages, *tail]) if tail else request

    def _over_budget(self, request: Request) -> bool:
        if self.until is not None and self.models.world.clock.monotonic() >= self.until:
            return True
        if self.budget is None:
            return False
        try:
            project(request, self.state.cost).check(self.budget, request)
        except BudgetExceeded:
            return True
        return False

    # The call.

    def _ask(self, request: Request, iteration: int) -> tuple[Reply, str]:
        """Return the model's answer, and its text including the prefill that it continues."""
        reply = self._valid_reply(request, iteration)
        self.state.iterations += 1
        text = (request.prefill or "") + reply.text
        self.state.texts.append(text)
        self.state.finish_reason = reply.stop_reason
        return reply, text

    def _valid_reply(self, request: Request, iteration: int) -> Reply:
        """Return the answer. Ask again while its output doesn't fit, as often as the options allow."""
        attempt = 0
        while True:
            sent, reply = self._fitting(request, iteration)
            self._note(reply, iteration, self._account(reply), sent.experiment_note)
            if sent.shown is not None:
                sent.shown.ended(reply)
            if not request.output.structured:
                return reply
            reading = read_answer(reply, request, self.models.values)
            if not reading.errors or reply.refused or attempt == request.output.retries:
                return reply
            attempt += 1
            nudge = nudge_text(request.output, reading.errors)
            record_retry(self.models.trace, attempt, reading, nudge)
            if nudge is not None:
                self._retried("schema", request, attempt, "; ".join(reading.errors))
                self.model_input.feed_back("schema_retry", nudge)
                request = self._request()

    def _fitting(self, request: Request, iteration: int) -> tuple[Request, Reply]:
        """Return what was sent, and its reply: a request that is too long is made again, with fewer messages,
        as often as the options allow."""
        attempt = 0
        while True:
            try:
                return self._called(request, iteration)
            except CallError as error:
                attempt += 1
                too_long = error.reason == OVERFLOW and attempt <= self.options.overflow_retries
                if not too_long or not self.model_input.can_shrink():
                    raise
                self._retried("overflow_recovery", request, attempt, str(error))
                if not self.model_input.shrink(iteration):
                    raise
                request = self._request()

    def summarize(self, prompt: str) -> str:
        """Ask the loop's model for a summary: no system prompt, no history, the same account."""
        messages = [{"role": "user", "content": prompt}]
        bare: Dict = {"system": None, "tools": None, "prefill": None, "segment": None, "shown": None}
        request = replace(self.model_input.request, messages=messages, **bare)
        purpose: Dict = {"purpose": "compaction"}
        self.conversation.fact(COMPACTION_STARTED, self.model_input.being_compacted())
        _, reply = self._called(request, None, **purpose)
        cost = self._account(reply)
        step = completed_step(reply, self.state.iterations, self.conversation.agent) | purpose
        self.conversation.fact(STEP_COMPLETED, step, cost)
        return reply.text

    def _called(self, request: Request, iteration: int | None, **purpose: Any) -> tuple[Request, Reply]:
        """Call the model, by right of the loop's caller. Return what was sent, and its reply.

        An experiment rewrites the request when the step has begun: its closure may write to the session.
        """
        number = self.state.iterations if iteration is None else iteration
        if iteration is None:
            self.conversation.step_started(request.provider, request.model, number, **purpose)
        else:
            request = self._begun(request, iteration)
        try:
            sent = request if iteration is None else request.rewritten(iteration)
            with self.runtime.context().as_caller():
                return sent, self.models.ask(sent, iteration, recorded_answer(self.conversation))
        except BaseException as error:
            failed = {
                "agent_id": self.conversation.agent,
                "iteration": number,
                **purpose,
                "error": str(error),
            }
            self.conversation.fact(STEP_COMPLETED, failed)
            raise

    def _begun(self, request: Request, iteration: int) -> Request:
        """Begin a step. Return its request: made again if others' messages have come meanwhile."""
        started, prompt = self.conversation.step_started, self.offer.prompt
        while True:
            facts: Dict = {"prefill": request.prefill} if request.prefill else {}
            if started(request.provider, request.model, iteration, prompt, **facts):
                return request
            request = self._request()

    def _note_retry(self, request: Request, attempt: int, error: str) -> None:
        self._retried("model", request, attempt, error)
        self.conversation.store()

    def _retried(self, scope: str, request: Request, attempt: int, error: str) -> None:
        """Record that the model is asked again."""
        retry = {
            "agent_id": self.conversation.agent,
            "scope": scope,
            "target": request.model,
            "attempt": attempt,
        }
        self.conversation.fact(ESCALATION_RETRIED, {**retry, "error": error})

    def _account(self, reply: Reply) -> float:
        """Charge a call to the loop's budget. Return its cost."""
        cost = reply.cost or 0.0
        self.state.tokens += reply.input_tokens + reply.output_tokens
        self.state.cost += cost
        return cost

    def _note(self, reply: Reply, iteration: int, cost: float, experiment: Dict | None) -> None:
        """Record a call in the session's log."""
        shown = {"tool_calling_mode": self.options.tool_format, "structural_experiment": experiment}
        record_reply(self.conversation, reply, iteration, cost, **shown)

    def _spent(self) -> bool:
        """Return True if a budget for the whole loop is used up."""
        limit = None if self.budget is None else self.budget.total_budget_usd
        if limit is not None and self.state.cost >= limit:
            return True
        return self.options.token_budget is not None and self.state.tokens >= self.options.token_budget

    # Hooks and the result.

    def _run_hooks(self, event: str, **turn: Any) -> None:
        if self.runtime.hooks:
            self.runtime.hooks.run(event, session={"id": self.conversation.id}, turn=turn)

    def _result(self, status: str, ms: int) -> Dict:
        trace, state, limit = self.models.trace, self.state, self.options.max_prose_chars
        visible = visible_text(state.last_prose)
        return {
            "status": status,
            "finish_reason": state.finish_reason,
            "text": "".join(state.texts),
            "visible_text": visible if limit is None else prompts.shown(visible, limit),
            "llm": {
                "iterations": state.iterations,
                "duration_ms": ms,
                "input_tokens": trace.input_tokens,
                "output_tokens": trace.output_tokens,
            },
            "tools": {
                "calls": state.calls,
                "successful": list(state.successful),
                "rejected": list(state.rejected),
                "mode": self.options.mode,
            },
            "deferred_user_messages": self.model_input.deferred(),
            "daemon_state": status if self.daemon else "active" if state.iterations else None,
            "daemon_snapshot_path": self.daemon and self.daemon.options.path,
            "task_ledger": self.ledger.as_dict(),
            "ledger_done_rejections": state.ledger_rejections,
            "trace": trace.summary(),
            "transcript": self.conversation.transcript("active" if status == "done" else "paused"),
        }


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

    def made(given: Any, servers: LoopServers | None = None) -> Loop:
        settings = read_settings(runtime, message, system, given, caller, default_format)
        loop = loop_of(runtime, settings, servers=servers)
        if settings.daemon is not None:
            loop.rest_as(settings.daemon, caller)
        return loop

    if not isinstance(given, dict) or given.get("mcp_servers") in COMPACTION_OFF:
        return made(given)
    from harnpy.agent.loop.mcp_servers import with_servers  # asyncio comes with it

    with ExitStack() as undoing:
        given, servers = with_servers(runtime, given, caller)
        undoing.push(servers)
        loop = made(given, servers)
        undoing.pop_all()
    return loop


def loop_of(
    runtime: Runtime,
    settings: LoopSettings,
    conversation: Conversation | None = None,
    servers: LoopServers | None = None,
) -> Loop:
    """Return a loop with these settings that is ready to run; it ends where it has nothing to do.

    Its conversation is that of the session that its options name, unless it is given one. ``servers`` are the
    MCP servers that were started for it, and end with it.
    """
    own = _conversation(runtime, settings.options) if conversation is None else conversation
    return Loop(runtime, settings, own, servers)


def _conversation(runtime: Runtime, options: LoopOptions) -> Conversation:
    """Return the conversation of the session that the options name, or one of the loop's own."""
    sessions = runtime.sessions
    if options.session_id:
        return SessionConversation(options.session_id, sessions)
    return Conversation(f"agent_session_{sessions.world.ids.new()}", sessions.world)


def _dispatcher(
    runtime: Runtime,
    state: LoopState,
    options: LoopOptions,
    rules: Rules,
    conversation: Conversation,
    emit: Callable[..., None],
    toolbox: Toolbox,
) -> Dispatcher:
    """Return what makes a loop's calls."""
    id, new_id = conversation.id, runtime.world.ids.new
    log = ApprovalLog(id, partial(runtime.record, id), new_id) if rules.permissions else None
    gate = Gate(rules, runtime.hooks, id, runtime.workplace, runtime.ask, log)
    return Dispatcher(runtime, state, options, conversation, emit, toolbox, gate)


def _deferred(request: Request, options: LoopOptions, entries: list[Dict]) -> DeferredTools | None:
    """Return the deferred tools, if they are searched for here and not by the provider."""
    search = request.search
    if search is None or search.in_format(options.tool_format).native:
        return None
    return DeferredTools(entries, search.option)
