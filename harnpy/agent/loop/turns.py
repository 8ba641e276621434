"""The turns of a loop: an answer's calls are made, its claim to be done is checked. Spec: 07 §6.3–6.5.

`Turns.take` is steps 6 to 10 of an iteration. A turn with tool calls goes one way, one without the other.
Both notify the subscribers, and return the status that ends the loop, if any does. A turn that leaves
nothing to do is `Idle`: the loop decides whether to end or to rest.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from harnpy.agent.loop import completion, prompts
from harnpy.agent.loop.ledger import NAME as LEDGER
from harnpy.agent.loop.ledger import UNAVAILABLE as NO_LEDGER
from harnpy.agent.loop.ledger import LedgerError
from harnpy.agent.loop.tool_runner import OK, REJECTED
from harnpy.agent.loop.transcript_entries import calls_message, elided, recorded, text_message
from harnpy.agent.rules.hooks import POST_AGENT_TURN
from harnpy.llm.request_messages import unrun
from harnpy.llm.text_format import Parsed, is_tagged, parse_reply
from harnpy.session.messages import results_message, styled_result
from harnpy.session.transcript import lifecycle_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.loop.completion import LoopState
    from harnpy.agent.loop.dispatch import Dispatcher
    from harnpy.agent.loop.ledger import Ledger
    from harnpy.agent.loop.loop_settings import LoopOptions
    from harnpy.agent.loop.model_input import ModelInput
    from harnpy.agent.loop.model_offer import ModelOffer
    from harnpy.agent.loop.tool_runner import Result
    from harnpy.agent.rules.hooks import Hooks
    from harnpy.formats.dicts import Dict
    from harnpy.llm.account import Trace
    from harnpy.llm.reply import Reply


#: The status of a loop that ends with an answer that was cut off.
CUT = "cut"
#: That of one whose last answer is a refusal.
REFUSED = "refused"
#: So often in a row a model is asked for the rest.
_MOST_CUTS = 3


class Turn(Struct):
    """One answer of the model and what came of it.

    ``accepted``: it completes the request. ``ending``: the loop's status when it ends with this answer, which
    was cut off or refused.
    """

    iteration: int
    text: str
    reply: Reply
    parsed: Parsed = field(default_factory=Parsed)
    calls: list[Dict] = []
    accepted: bool = False
    ending: str | None = None

    def info(self, failed: bool, **mark: Any) -> Dict:
        """Return what subscribers and hooks receive about a turn without calls. Spec: 08 §1.7."""
        return {"iteration": self.iteration, "failed": failed, "text": self.text, **mark}


class Idle(NamedTuple):
    """The turn leaves nothing to do: the loop ends here, or rests. `Turns.close` ends the turn."""

    turn: Turn


class Turns:
    """The turns of one loop. ``dispatcher()`` returns what makes its calls."""

    def __init__(
        self,
        state: LoopState,
        options: LoopOptions,
        model_input: ModelInput,
        offer: ModelOffer,
        dispatcher: Callable[[], Dispatcher],
        ledger: Ledger,
        trace: Trace,
        hooks: Hooks,
        emit: Callable[..., None],
    ) -> None:
        self.state = state
        self.options = options
        self.model_input = model_input
        self.offer = offer
        self._new_dispatcher = dispatcher
        self.ledger = ledger
        self._trace = trace
        self._hooks = hooks
        self._emit = emit
        self._nudges = 0
        self._fallbacks = 0
        self._single_tool_turns = 0
        #: How many answers were cut off one after another, and what they say together.
        self._cuts = 0
        self._unfinished = ""

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """What makes the calls: most loops that have no tools need none."""
        return self._new_dispatcher()

    def take(self, reply: Reply, text: str, iteration: int) -> str | Idle | None:
        """Act on an answer, ``text`` being its whole text. Return the loop's status if it ends here."""
        turn = self._interpret(Turn(iteration, text, reply))
        if reply.is_cut and self.options.on_cut != "accept":
            return self._cut_turn(turn)
        self._cuts, self._unfinished = 0, ""
        if reply.refused:
            return self._refused_turn(turn)
        self._feed_back(turn)
        turn.accepted = self._completes(turn)
        self._keep_ledger(turn)
        return self._tool_turn(turn) if turn.calls else self._text_turn(turn)

    # What the answer says.

    def _interpret(self, turn: Turn) -> Turn:
        """Find the calls in an answer: the provider's, or else those in its text. Step 6."""
        text, reply = turn.text, turn.reply
        may_call = self.offer.has_tools or self.ledger.active
        if may_call or is_tagged(text):
            names = [*self.offer.names, LEDGER] if self.ledger.active else self.offer.names
            turn.parsed = parse_reply(text, names)
        if not may_call:
            turn.parsed.errors.clear()
        if reply.tool_calls:
            turn.calls = reply.tool_calls
        elif may_call:
            turn.calls = turn.parsed.calls
            if self.options.tool_format == "native" and turn.calls:
                self._fall_back(turn)
        self.state.last_prose = self._unfinished + (turn.parsed.prose or text)
        self.state.is_joined = bool(self._unfinished)
        segment = self.model_input.segment
        if segment is not None:
            segment.interpreted(self.state.last_prose, turn.calls, turn.parsed.errors)
        return turn

    def _fall_back(self, turn: Turn) -> None:
        """Handle calls that came as text although the loop's format is native."""
        self._fallbacks += 1
        policy = self.options.native_tool_fallback
        accepted = policy == "allow" or (policy == "allow_once" and self._fallbacks == 1)
        counts = {"accepted": accepted, "policy": policy, "fallback_index": self._fallbacks}
        counts["tool_call_count"] = len(turn.calls)
        details = {**counts, "tool_parse_error_count": len(turn.parsed.errors)}
        self.model_input.conversation.note(
            lifecycle_event("native_tool_fallback", role="assistant", metadata=details)
        )
        self._trace.record("native_tool_fallback", iteration=turn.iteration, **counts)
        if accepted:
            # Results name their calls, and blocks of one answer all have the same id.
            turn.calls = [{**call, "id": f"tc_{number}"} for number, call in enumerate(turn.calls)]
            return
        turn.calls = []
        self.model_input.feed_back(
            "native_tool_contract", prompts.native_mode_reminder(policy, self._fallbacks)
        )

    def _feed_back(self, turn: Turn) -> None:
        """Tell the model what was wrong with the form of its answer. Step 7."""
        parsed = turn.parsed
        if parsed.errors:
            self.model_input.feed_back("parse_guidance", prompts.unparsable(parsed.errors))
        if parsed.violations and self.offer.has_tools and self.options.tool_format == "text":
            text = prompts.violated(parsed.violations, self.options.sentinel)
            self.model_input.feed_back("protocol_violation", text)

    # An answer that was cut off. Spec: 07 §6.3.

    def _cut_turn(self, turn: Turn) -> str | None:
        """Ask for the rest of an answer, if the options want that, or end the loop."""
        self._cuts += 1
        goes_on = self.options.on_cut == "continue" and self._cuts <= _MOST_CUTS
        turn.ending = None if goes_on else CUT
        turn.parsed.errors.clear()  # of a call that isn't there to its end
        if goes_on:
            self._keep_ledger(turn)
        if turn.calls:
            return self._tool_turn(turn)
        self._record_text(turn)
        self._unfinished = self.state.last_prose
        if goes_on:
            self.model_input.feed_back("cut_off", prompts.CUT_OFF)
        self.close(turn.info(True, status=CUT))
        return turn.ending

    def _refused_turn(self, turn: Turn) -> str | None:
        """End the loop with a refusal: nothing that it asks for is run."""
        turn.ending = REFUSED
        turn.parsed.errors.clear()
        if turn.calls:
            return self._tool_turn(turn)
        if turn.text.strip():
            self._record_text(turn)
        self.close(turn.info(True, status=REFUSED))
        return REFUSED

    # Whether the work is complete.

    def _completes(self, turn: Turn) -> bool:
        """Return True if the turn completes the request. Else the model gets feedback. Spec: 07 §6.5."""
        options = self.options
        if not options.persistent:
            return False
        if self._changes_phase(turn):
            return True
        if not completion.completion_requested(options, turn.text, turn.parsed, self.offer.has_tools):
            return False
        acted = not self.offer.has_tools or bool(self.state.calls or turn.calls)
        refused = completion.refusal(options, self.state.verification, self.ledger, acted)
        if refused is None:
            return True
        self.state.ledger_rejections += refused.kind == "ledger_not_satisfied"
        self.model_input.feed_back(refused.kind, refused.text)
        return False

    def _changes_phase(self, turn: Turn) -> bool:
        phase = self.options.break_unless_phase
        named = None if phase is None else completion.next_phase(turn.text)
        if named is None or named == phase:
            return False
        self._trace.record("phase_change", from_phase=phase, to_phase=named, iteration=turn.iteration)
        return True

    def _keep_ledger(self, turn: Turn) -> None:
        """Apply and answer the model's calls of `ledger`. Step 9."""
        for call in turn.calls:
            if call["name"] == LEDGER:
                metadata = {"tool_call_id": call.get("id"), "tool_name": LEDGER}
                content = f"<tool_result>{self._ledger_answer(call)}</tool_result>"
                self.model_input.add({"role": "user", "content": content, "metadata": metadata})
        turn.calls = [call for call in turn.calls if call["name"] != LEDGER]

    def _ledger_answer(self, call: Dict) -> str:
        if not self.ledger.active:
            self.state.rejected[LEDGER] = None
            return NO_LEDGER
        try:
            done = self.ledger.apply(call["arguments"])
        except LedgerError as error:
            return f"ledger error: {error}"
        self.state.calls.append(LEDGER)
        self.state.successful[LEDGER] = None
        return f"ledger: {done}"

    # A turn with tool calls. Spec: 07 §6.4.

    def _tool_turn(self, turn: Turn) -> str | None:
        errors = turn.parsed.errors
        self.model_input.add(self._recorded_calls(turn))
        self._store_for_others()
        why = prompts.REFUSED if turn.ending == REFUSED else prompts.NOT_RUN
        calls = turn.calls if turn.ending is None else [unrun(call, why) for call in turn.calls]
        results = self.dispatcher.dispatch(calls, turn.iteration, self._answer_call)
        self._tell_results(results)
        self._nudges = 0
        info = self._tool_turn_info(turn, results)
        self.model_input.conversation.store()
        self._run_hooks(info)
        if self.model_input.has_audience:
            self._emit("turn_end", iteration=turn.iteration, turn_info=info)
            self._emit("iteration_end", iteration=turn.iteration, turn_info=info)
        if turn.ending is not None:
            return turn.ending
        if not set(self.options.stop_after_tools).isdisjoint(info["successful_tool_names"]):
            return "done"
        if self._called_back(info):
            return "done"
        self.model_input.compact_when_full("auto", turn.iteration)
        if errors:
            self.model_input.feed_back("parse_error", "\n\n".join(errors))
        return "done" if turn.accepted else None

    def _recorded_calls(self, turn: Turn) -> Dict:
        """Return the assistant's message of a turn with calls."""
        if self.options.tool_format == "native":
            return calls_message(turn.reply, turn.text, turn.calls, self.offer.style)
        parsed = turn.parsed
        if parsed.errors:
            content = elided([call["name"] for call in turn.calls], len(parsed.errors))
        else:
            content = recorded(parsed.canonical or turn.text)
        return {"role": "assistant", "content": content}

    def _answer_call(self, result: Result) -> None:
        """Add a call's result to the conversation; in text format, all of them come at once."""
        if self.options.tool_format == "native":
            failed = result.status != OK
            self.model_input.add(styled_result(result.call, result.content, self.offer.style, failed))

    def _tell_results(self, results: list[Result]) -> None:
        if self.options.tool_format != "native":
            self.model_input.add(results_message((result.call["name"], result.text) for result in results))
        for result in results:
            if result.call["name"] == "run" and result.status is not None:
                self.state.verification.read(result.text)

    def _tool_turn_info(self, turn: Turn, results: list[Result]) -> Dict:
        names = [call["name"] for call in turn.calls]
        self._single_tool_turns = self._single_tool_turns + 1 if len(names) == 1 else 0
        made: list[Dict] = []
        good: dict[str, None] = {}
        failed = False
        for result in results:
            name, status = result.call["name"], result.status
            if status is not None:
                made.append({"tool_name": name, "status": status, "rejected": status == REJECTED})
            if status == OK:
                good[name] = None
            else:
                failed = True
        return {
            "tool_names": names,
            "tool_results": made,
            "successful_tool_names": list(good),
            "tool_count": len(names),
            "iteration": turn.iteration,
            "failed": failed,
            "consecutive_single_tool_turns": self._single_tool_turns,
            "session_tools_used": list(self.state.calls),
            "session_successful_tools": list(self.state.successful),
        }

    def _called_back(self, info: Dict) -> bool:
        """Call the caller's `post_turn_callback`. Return whether it asks the loop to stop. Spec: 07 §6.9."""
        callback = self.options.post_turn_callback
        answer = None if callback is None else callback(info)
        message, stop = answer, False
        if isinstance(answer, bool):
            message, stop = None, answer
        elif isinstance(answer, dict):
            message, stop = answer.get("message"), bool(answer.get("stop"))
        if isinstance(message, str) and message:
            self.model_input.feed_back("post_turn_callback", message)
        return stop

    def _run_hooks(self, info: Dict) -> None:
        if self._hooks:
            self._hooks.run(POST_AGENT_TURN, session={"id": self.model_input.conversation.id}, turn=info)

    # A turn without tool calls. Spec: 07 §6.4.

    def _text_turn(self, turn: Turn) -> str | Idle | None:
        taken = self._take_text(turn)
        if isinstance(taken, Idle):
            return taken
        status, info = taken
        self.close(info)
        return status

    def close(self, info: Dict) -> None:
        """End a turn without calls; ``info`` is what hooks and subscribers receive about it."""
        self._store_for_others()
        self._run_hooks(info)
        self._emit("iteration_end", iteration=info["iteration"], turn_info=info)

    def _store_for_others(self) -> None:
        """Store the answer before hooks and subscribers hear of it. Where there are none, it is stored with
        what follows from it: the begin of a call, or the loop's end."""
        if self._hooks or self.model_input.has_audience:
            self.model_input.conversation.store()

    def _take_text(self, turn: Turn) -> tuple[str | None, Dict] | Idle:
        """Return the status that ends the loop, if any, and what hooks and subscribers receive."""
        options = self.options
        if turn.accepted:
            self._record_text(turn)
            return "done", turn.info(False, sentinel_hit=True)
        if turn.parsed.errors:
            self.model_input.feed_back("parse_error", "\n\n".join(turn.parsed.errors))
            self._nudges = 0
            return None, turn.info(True, parse_error=True)
        if options.tool_format == "native" and options.require_action and not self.state.calls:
            if self._stuck(turn):
                return "stuck", turn.info(True, action_required=True)
            self.model_input.feed_back("action_required", prompts.ACTION_REQUIRED)
            return None, turn.info(True, action_required=True)
        self._record_text(turn)
        if not options.persistent:
            return Idle(turn)
        if self.model_input.conversation.waiting():
            return None, turn.info(False, status="host_input")
        if self._stuck(turn):
            return "stuck", turn.info(True, status="stuck")
        self.model_input.feed_back("nudge", prompts.nudge(options, self.offer.has_tools))
        return None, turn.info(False, status="continue")

    def _record_text(self, turn: Turn) -> None:
        said = recorded(turn.parsed.canonical or turn.text)
        if self.options.tool_format == "native" and said == turn.reply.text:
            self.model_input.add(text_message(turn.reply, said))
        else:
            self.model_input.add({"role": "assistant", "content": said})

    def _stuck(self, turn: Turn) -> bool:
        """Count a turn that got nowhere. Return whether it was one too many."""
        self._nudges += 1
        limit = self.options.max_nudges
        if self._nudges <= limit:
            return False
        excerpt = prompts.excerpt(turn.text)
        self._emit("loop_stuck", max_nudges=limit, last_iteration=turn.iteration, tail_excerpt=excerpt)
        return True
