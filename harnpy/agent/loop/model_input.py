"""A loop's conversation as the model sees it: the request follows the session.

A `ModelInput` keeps three records of one conversation in step: the `Conversation` (and through it the
session), the message list of the request, and the rows of the transcript sidecar. It compacts when the
conversation has grown too long. Spec: 07 §6.3 step 2, §7.3; 08 §4.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats.text_size import byte_length, tokens_of
from harnpy.llm.request_messages import request_message
from harnpy.session.compaction import boundaries, compact, content_bytes, message_bytes
from harnpy.session.lifecycle import compacted_event
from harnpy.session.messages import RESULTS, feedback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.agent.loop.loop_settings import LoopCompaction
    from harnpy.agent.runtime import Runtime
    from harnpy.formats.dicts import Dict
    from harnpy.llm.request import Request
    from harnpy.llm.transcript_log import Segment
    from harnpy.session.compaction import Compaction
    from harnpy.session.conversation import Conversation


class ModelInput:
    """``request`` is sent once a turn, with the messages of ``conversation``."""

    def __init__(
        self, runtime: Runtime, conversation: Conversation, request: Request, segment: Segment | None
    ) -> None:
        self.conversation = conversation
        self.request = request
        self.segment = segment
        self.compaction: LoopCompaction | None = None
        #: ``summarize(prompt)`` asks the loop's model.
        self.summarize: Callable[[str], str] | None = None
        #: Everything that has entered the conversation; None unless somebody records it.
        self.recorded: list[Dict] | None = None
        self._sessions = runtime.sessions
        self._trace = runtime.models.trace
        self._bytes = 0  # of text in the conversation

    @property
    def has_audience(self) -> bool:
        """Return whether anybody hears of what the loop does."""
        return self._sessions.has_audience(self.conversation.id)

    def begin(self, system: str | None, tool_format: str, opening: Iterable[Dict]) -> None:
        """Load what came before, and add the messages that the loop begins with."""
        self.conversation.begin(system, tool_format)
        self._measure()
        self._record(self.conversation.messages)
        for message in opening:
            self.add(message)

    def restore(self, messages: list[Dict], summary: str | None, events: list[Dict]) -> None:
        """Continue from what an earlier run left; this one has no messages yet."""
        self.conversation.restore(messages, summary, events)
        self._measure()
        self._record(messages)

    def add(self, message: Dict) -> None:
        self.conversation.add(message)
        self._record((message,))
        self._bytes += message_bytes(message)

    def feed_back(self, kind: str, text: str) -> None:
        """Add a message from the runtime to the model."""
        self.add(feedback(kind, text))

    def take_in_messages(self) -> None:
        """Add what others have injected into the session meanwhile."""
        self._follow()
        arrivals = self.conversation.arrivals()
        if arrivals:
            self._record(arrivals)
            self._bytes += content_bytes(arrivals)

    def current(self) -> Request:
        """Return the request with the conversation as it is now."""
        self.take_in_messages()
        self.request.messages = self.conversation.sent(request_message)
        return self.request

    def deferred(self) -> list[Any]:
        """Return the user messages that haven't been added yet."""
        waiting = self.conversation.waiting()
        return [message.get("content") for message in waiting if message.get("role") == "user"]

    def latest_request(self) -> str:
        """Return the newest text for the model, the runtime's feedback included but not results of tools."""
        for message in reversed(self.conversation.messages):
            text = message.get("content") if message.get("role") == "user" else None
            if isinstance(text, str) and not text.startswith(RESULTS):
                return text
        return ""

    # Compaction.

    def compact_when_full(self, mode: str, iteration: int) -> None:
        """Summarise older messages once the conversation has grown to the threshold (08 §4.9).

        ``mode``: ``preflight`` before a call, ``auto`` after a turn with tools.
        """
        compaction = self.compaction
        if compaction is None:
            return
        room = compaction.threshold - self._tokens()
        if room < 0 or (room == 0 and mode == "preflight"):
            self._shorten(compaction, mode, iteration)

    def being_compacted(self) -> Dict:
        """Return what the log says of a compaction that a model is asked for. Spec: 10 §A1.2."""
        return {"strategy": "llm", "current_tokens": self._tokens()}

    def can_shrink(self) -> bool:
        """Return True if a compaction would replace any message, or the session may be resized."""
        return self.conversation.can_shrink or self._can_compact()

    def _can_compact(self) -> bool:
        policy = None if self.compaction is None else self.compaction.policy
        if policy is None:
            return False
        return boundaries(self.conversation.messages, policy.keep_first, policy.keep_last) is not None

    def make_room(self) -> None:
        """Have the session's policy look at the conversation."""
        self.conversation.make_room()

    def shrink(self, iteration: int) -> bool:
        """Summarise older messages after a context overflow, without the model that they are too much for;
        where the loop's options don't say how, as the session's policy does. Return False if nothing was
        done."""
        compaction = self.compaction
        if compaction is None or not self._can_compact():
            shrunk = self.conversation.shrink()
            self._follow()
            return shrunk
        strategy = compaction.policy.strategy
        strategy = "truncate" if strategy == "llm" else strategy
        policy = compaction.policy._replace(strategy=strategy, hard_limit_strategy="truncate")
        self._shorten(compaction._replace(policy=policy), "overflow", iteration)
        return True

    def _shorten(self, compaction: LoopCompaction, mode: str, iteration: int) -> None:
        made = self._compacted(compaction)
        if made is None:
            return
        report = {**made.report(), "strategy": compaction.label}
        keep = {"keep_first": compaction.policy.keep_first, "keep_last": compaction.policy.keep_last}
        metadata = {"mode": mode, **report, "engine_strategy": made.strategy, **keep}
        if not self._put(made, metadata):
            return
        self._trace.record(
            "context_compaction",
            archived_messages=made.archived,
            new_summary_len=len(made.text),
            iteration=iteration,
        )
        id = self.conversation.id
        self._sessions.emit(id, compacted_event(id, mode, report))

    def consolidate(self) -> None:
        """Summarise older messages, however few, without notifying anyone."""
        made = None if self.compaction is None else self._compacted(self.compaction)
        if made is not None:
            self._put(made, None)

    def _compacted(self, compaction: LoopCompaction) -> Compaction | None:
        """Decide which messages to replace, and with what, if any."""
        self.conversation.store()  # keeps the messages should the compaction fail
        policy = compaction.policy._replace(summarize=self.summarize)
        made = compact(self.conversation.messages, policy)
        if made is None or self._follow():  # somebody else compacted while the model wrote
            return None
        return made

    def _put(self, made: Compaction, note: Dict | None) -> bool:
        """Carry a compaction out. Return False if somebody else was faster: theirs is taken over."""
        if not self.conversation.compact(made, note):
            self._follow()
            return False
        self._measure()
        self._record((made.message,))
        return True

    def _tokens(self) -> int:
        """Estimate the tokens of conversation and system prompt."""
        conversation, system = tokens_of(self._bytes, whole=True), self.request.system
        return conversation + tokens_of(byte_length(system), whole=True) if system else conversation

    def _follow(self) -> bool:
        """Continue from what the session holds if somebody else compacted it. Return whether they did."""
        former = self.conversation.replaced()
        if former is None:
            return False
        self._measure()
        known = set(map(id, former))
        self._record(message for message in self.conversation.messages if id(message) not in known)
        return True

    def _measure(self) -> None:
        """Measure the conversation."""
        self._bytes = self.conversation.total(message_bytes)

    def _record(self, messages: Iterable[Dict]) -> None:
        """Add messages that enter the conversation to the records that are kept."""
        if self.segment is None and self.recorded is None:
            return
        for message in messages:
            if self.segment is not None:
                self.segment.message(message)
            if self.recorded is not None:
                self.recorded.append(message)
