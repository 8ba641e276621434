"""The agent loop: ask the model, take its answer in, decide whether to go on. Spec: 07 §6, 08 §1.11.

This is the loop without tools: every turn is a text turn. The conversation is kept by a
`harnpy.session.binding.Conversation`, and written to the session before each call and after each turn.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harnpy.agent import prompts
from harnpy.agent.compaction import LoopCompaction, read_compaction
from harnpy.agent.options import LLM_BACKOFF_MS, profile_of, read_loop_options
from harnpy.agent.record import reply_events
from harnpy.llm.budget import project
from harnpy.llm.errors import BudgetExceeded, MisuseError
from harnpy.llm.messages import request_message
from harnpy.llm.protocol import TAGS, Parsed, parse_reply
from harnpy.llm.visible import visible_text
from harnpy.session.binding import AGENT, Binding, Conversation
from harnpy.session.compaction import compacted_event, note_of
from harnpy.session.events import STEP_COMPLETED
from harnpy.session.resize import compact, content_bytes
from harnpy.session.summaries import byte_length

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.agent.options import LoopOptions
    from harnpy.llm.call import Models
    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request
    from harnpy.session.store import SessionStore

    Dict = dict[str, Any]

_NEXT_PHASE = re.compile(r"^[ \t]*next_phase:[ \t]*(\S+)", re.MULTILINE)


def run_loop(
    models: Models, sessions: SessionStore, message: str, system: str | None, given: Any
) -> dict[str, Any]:
    """Run a loop to its end; the result dict of 07 §6.11. ``given`` is the caller's options.

    Raises `OptionError` and `MisuseError` before anything happens, `CallError` when the model fails for
    good: the session then holds the conversation up to the failed call.
    """
    options = models.options(given)
    profile = profile_of(options)
    request = models.request(
        message, system, options, caller="agent_loop", retries=profile.llm_retries, backoff_ms=LLM_BACKOFF_MS
    )
    loop = Loop(models, sessions, request, read_loop_options(options, profile))
    pretty = functools.partial(sessions.effects.to_json, pretty=True)
    loop.compaction = read_compaction(options, request.model, loop.summarize, pretty)
    messages = options.value("messages")
    return loop.run(messages if isinstance(messages, list) else [{"role": "user", "content": message}])


def opening_messages(given: list[Any]) -> Iterator[Dict]:
    """The messages that a loop begins with; without a role they are the user's, with an odd one nobody's."""
    for message in given:
        if isinstance(message, dict):
            role = message.get("role")
            if role is None:
                yield {**message, "role": "user"}
            elif isinstance(role, str):
                yield message


class Loop:
    """One run. ``request`` is asked again and again, with the conversation so far."""

    def __init__(
        self, models: Models, sessions: SessionStore, request: Request, options: LoopOptions
    ) -> None:
        self.models = models
        self.sessions = sessions
        self.request = request
        self.options = options
        self.conversation: Conversation = (
            Binding(options.session_id, sessions)
            if options.session_id
            else Conversation(f"agent_session_{sessions.effects.new_id()}", sessions.effects)
        )
        self.compaction: LoopCompaction | None = None
        self.conversation.summarize = self.summarize
        # The budget is the loop's own affair: it ends the loop instead of failing the call.
        self.budget, request.budget = request.budget, None
        self.prefill = request.prefill
        self.caller_system = request.system
        request.system = prompts.system_prompt(request.system, options)
        self.size = 0  # bytes of text in the conversation
        self.segment = models.segment(
            session_id=self.conversation.id,
            new_loop_id=sessions.effects.new_id,
            depth=sessions.depth(),
            tool_format=options.tool_format,
        )
        request.segment = self.segment
        self.texts: list[str] = []
        self.last_prose = ""
        self.iterations = 0
        self.nudges = 0
        self.tokens = 0
        self.cost = 0.0

    def run(self, opening: list[Any]) -> Dict:
        conversation = self.conversation
        begin = self.models.monotonic()
        with self.sessions.enter(conversation.id):
            try:
                conversation.begin(self.caller_system, self.options.tool_format)
                self._read_again()
                self._record(conversation.messages)
                for message in opening_messages(opening):
                    self._add(message)
                status = self._turns()
            except BaseException as error:
                conversation.fail(str(error))
                raise
            if status == "done" and self.options.require_tools:
                status = "failed"  # no tool can have succeeded
            ms = int((self.models.monotonic() - begin) * 1000)
            self.models.trace.record_loop(status, self.iterations, ms)
            conversation.end("completed" if status == "done" else status, steps=self.iterations)
        return self._result(status, ms)

    def _turns(self) -> str:
        """Turn after turn until one ends the loop; its status."""
        for iteration in range(self.options.max_iterations):
            status = self._turn(iteration)
            if status is not None:
                return status
        if self.options.max_iterations == 0:
            return "done"
        self._emit("budget_exhausted", max_iterations=self.options.max_iterations)
        return "budget_exhausted"

    def _turn(self, iteration: int) -> str | None:
        """One turn; the loop's status if it ends here."""
        if self.segment is not None:
            self.segment.iteration = iteration
        self._take_in_messages()
        self._compact_when_full(iteration)
        self._emit("turn_start", iteration=iteration)
        self._emit("iteration_start", iteration=iteration)
        self._take_in_news()
        self.conversation.store()
        if self._over_budget():
            over = {"iteration": iteration, "failed": False, "text": "", "status": "budget_exhausted"}
            self._emit("iteration_end", iteration=iteration, turn_info=over)
            return "budget_exhausted"
        text = self._ask(iteration)
        status, mark = self._text_turn(iteration, text)
        turn = {
            "iteration": iteration,
            "failed": status == "stuck" or "action_required" in mark,
            "text": text,
        }
        self.conversation.store()
        self._emit("iteration_end", iteration=iteration, turn_info={**turn, **mark})
        return "budget_exhausted" if self._spent() else status

    # Before the call.

    def _take_in_messages(self) -> None:
        """Messages that others injected meanwhile."""
        self._follow()
        arrivals = self.conversation.arrivals()
        self._record(arrivals)
        self.request.messages += map(request_message, arrivals)
        self.size += content_bytes(arrivals)

    def _take_in_news(self) -> None:
        """What subscribers injected on hearing that the turn starts, and queued feedback."""
        self._take_in_messages()
        self.request.prefill = self.prefill
        for kind, content in self.sessions.take_feedback(self.conversation.id):
            self._emit("feedback_injected", kind=kind, content=content)
            if kind == "prefill_assistant":
                self.request.prefill = content
            else:
                self._add(prompts.feedback(kind, content))

    def _over_budget(self) -> bool:
        if self.budget is None:
            return False
        try:
            project(self.request, self.cost).check(self.budget, self.request)
        except BudgetExceeded:
            return True
        return False

    # Compaction.

    def _compact_when_full(self, iteration: int) -> None:
        """Sum older messages up before the call, when the conversation has reached the threshold (4.9)."""
        compaction = self.compaction
        if compaction is None or self._estimated_tokens() < compaction.threshold:
            return
        self.conversation.store()  # what was said stays, should the compaction fail
        made = compact(self.conversation.messages, compaction.policy)
        if made is None:
            return
        if self._follow():  # somebody else was quicker, while the model wrote the summary
            return
        report = {**made.report(), "strategy": compaction.label}
        keep = {"keep_first": compaction.policy.keep_first, "keep_last": compaction.policy.keep_last}
        metadata = {"mode": "preflight", **report, "engine_strategy": made.strategy, **keep}
        self.conversation.compact(made, note_of(metadata, "Transcript compacted before agent LLM call"))
        self._read_again()
        self._record((made.message,))
        self.models.trace.record(
            "context_compaction",
            archived_messages=made.archived,
            new_summary_len=len(made.text),
            iteration=iteration,
        )
        id = self.conversation.id
        self.sessions.emit(id, compacted_event(id, "preflight", report))

    def _estimated_tokens(self) -> int:
        return self.size // 4 + byte_length(self.request.system or "") // 4

    def _follow(self) -> bool:
        """Go on from what the session holds, if somebody else compacted it; whether somebody did."""
        former = self.conversation.replaced()
        if former is None:
            return False
        self._read_again()
        if self.segment is not None:
            known = set(map(id, former))
            self._record(message for message in self.conversation.messages if id(message) not in known)
        return True

    def _read_again(self) -> None:
        """Let the request have the conversation's messages, which are others now."""
        self.request.messages = self.conversation.converted(request_message)
        self.size = content_bytes(self.conversation.messages)

    def summarize(self, prompt: str) -> str:
        """Ask the loop's model for a summary: no system prompt, no history, the same account."""
        messages = [{"role": "user", "content": prompt}]
        bare: Dict = {"system": None, "tools": None, "prefill": None, "segment": None}
        request = replace(self.request, messages=messages, **bare)
        return self._account(self.models.ask(request)).text

    # The call.

    def _ask(self, iteration: int) -> str:
        """The model's text, its prefill included."""
        reply = self.models.ask(self.request, iteration)
        if reply.tool_calls:
            name = reply.tool_calls[0]["name"]
            raise MisuseError(f"agent_loop: the model called tool '{name}', but this loop has no tools")
        self.iterations = iteration + 1
        self._account(reply)
        self._note(reply)
        text = (self.request.prefill or "") + reply.text
        self.texts.append(text)
        return text

    def _account(self, reply: Reply) -> Reply:
        """Charge a call to the loop's budget."""
        self.tokens += reply.input_tokens + reply.output_tokens
        self.cost += reply.cost
        return reply

    def _note(self, reply: Reply) -> None:
        """What the session's log keeps of a call."""
        for event in reply_events(reply, tool_calling_mode=self.options.tool_format):
            self.conversation.note(event)
        usage = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
        usage["total_tokens"] = reply.input_tokens + reply.output_tokens
        self.conversation.fact(STEP_COMPLETED, {"agent_id": AGENT, "usage": usage})

    # After the call.

    def _text_turn(self, iteration: int, text: str) -> tuple[str | None, Dict]:
        """What a turn without calls leads to: the status that ends the loop, and the turn's mark (6.4)."""
        options = self.options
        parsed = parse_reply(text) if any(tag in text for tag in TAGS) else Parsed()
        self.last_prose = parsed.prose or text
        if self.segment is not None:
            self.segment.interpreted(self.last_prose, [], parsed.errors)
        accepted = self._completes(iteration, text, parsed)
        if not accepted and options.tool_format == "native" and options.require_action:
            return self._demand_action(iteration, text)
        self._add({"role": "assistant", "content": prompts.recorded(parsed.canonical or text)})
        if accepted:
            return "done", {"sentinel_hit": True}
        if not options.persistent:
            return "done", {}
        if self._stuck(iteration, text):
            return "stuck", {"status": "stuck"}
        self._add(prompts.feedback("nudge", prompts.nudge(options)))
        return None, {"status": "continue"}

    def _completes(self, iteration: int, text: str, parsed: Parsed) -> bool:
        """Whether the turn completes the request; a completion that is refused is answered (6.5)."""
        options = self.options
        if not options.persistent:
            return False
        if self._changes_phase(iteration, text):
            return True
        where = text if options.tool_format == "native" else parsed.prose or text
        if not options.allow_sentinel or not (options.sentinel in where or parsed.responses):
            return False
        if options.exit_when_verified:  # and nothing could have been run
            self._add(prompts.feedback("verification_gate", prompts.NOT_VERIFIED))
            return False
        return True

    def _changes_phase(self, iteration: int, text: str) -> bool:
        phase = self.options.break_unless_phase
        if phase is None:
            return False
        named = _NEXT_PHASE.findall(text)
        if not named or named[-1] == phase:
            return False
        self.models.trace.record("phase_change", from_phase=phase, to_phase=named[-1], iteration=iteration)
        return True

    def _demand_action(self, iteration: int, text: str) -> tuple[str | None, Dict]:
        if self._stuck(iteration, text):
            return "stuck", {"action_required": True}
        self._add(prompts.feedback("action_required", prompts.ACTION_REQUIRED))
        return None, {"action_required": True}

    def _stuck(self, iteration: int, text: str) -> bool:
        """Count a turn that got nowhere; true when it was one too many."""
        self.nudges += 1
        limit = self.options.max_nudges
        if self.nudges <= limit:
            return False
        excerpt = prompts.excerpt(text)
        self._emit("loop_stuck", max_nudges=limit, last_iteration=iteration, tail_excerpt=excerpt)
        return True

    def _spent(self) -> bool:
        """Whether a budget for the whole loop is used up."""
        limit = None if self.budget is None else self.budget.total_budget_usd
        if limit is not None and self.cost >= limit:
            return True
        return self.options.token_budget is not None and self.tokens >= self.options.token_budget

    # Both ends.

    def _record(self, messages: Iterable[Dict]) -> None:
        """Note messages that enter the conversation in the transcript sidecar, if one is kept."""
        if self.segment is not None:
            for message in messages:
                self.segment.message(message)

    def _add(self, message: Dict) -> None:
        self.conversation.add(message)
        self._record((message,))
        self.request.messages.append(request_message(message))
        self.size += content_bytes((message,))

    def _emit(self, type: str, **fields: Any) -> None:
        id = self.conversation.id
        self.sessions.emit(id, {"type": type, "session_id": id, **fields})

    def _result(self, status: str, ms: int) -> Dict:
        trace = self.models.trace
        return {
            "status": status,
            "text": "".join(self.texts),
            "visible_text": prompts.shown(visible_text(self.last_prose), self.options.max_prose_chars),
            "llm": {
                "iterations": self.iterations,
                "duration_ms": ms,
                "input_tokens": trace.input_tokens,
                "output_tokens": trace.output_tokens,
            },
            "tools": {"calls": [], "successful": [], "rejected": [], "mode": self.options.tool_format},
            "deferred_user_messages": [],
            "daemon_state": "active" if self.iterations else None,
            "daemon_snapshot_path": None,
            "task_ledger": {"root_task": "", "deliverables": [], "rationale": "", "observations": []},
            "ledger_done_rejections": 0,
            "trace": trace.summary(),
            "transcript": self.conversation.transcript("active" if status == "done" else "paused"),
        }
