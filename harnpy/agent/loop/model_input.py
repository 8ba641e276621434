"""A loop's conversation on its way to the model: the request follows what the session holds.

A `ModelInput` keeps three records of one conversation in step: the `Conversation` (and through it the
session), the message list of the request, and the rows of the transcript sidecar. It compacts when the
conversation has grown too long. Spec: 07 §6.3 step 2, §7.3; 08 §4.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.loop.prompts import FEEDBACK, feedback
from harnpy.llm.messages import prompt_text, request_message
from harnpy.session.resize.engine import compact, content_bytes, message_bytes
from harnpy.session.resize.notes import compacted_event, note_of
from harnpy.session.resize.summaries import byte_length

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.agent.loop.loop_compaction import LoopCompaction
    from harnpy.agent.runtime import Runtime
    from harnpy.llm.request import Request
    from harnpy.llm.transcript_log import Segment
    from harnpy.reading.dicts import Dict
    from harnpy.session.loop_conversation import Conversation
    from harnpy.session.resize.policy import Compaction


#: What the transcript says of a compaction, by when it happened.
_NOTES = {
    "preflight": "Transcript compacted before agent LLM call",
    "auto": "Transcript compacted during agent loop",
}


class ModelInput:
    """``request`` is asked again and again; its messages are those of ``conversation``."""

    def __init__(
        self, runtime: Runtime, conversation: Conversation, request: Request, segment: Segment | None
    ) -> None:
        self.conversation = conversation
        self.request = request
        self.segment = segment
        self.compaction: LoopCompaction | None = None
        #: All that has entered the conversation, for those who keep it; None when nobody does.
        self.recorded: list[Dict] | None = None
        self._sessions = runtime.sessions
        self._trace = runtime.models.trace
        self._bytes = 0  # of text in the conversation

    def begin(self, system: str | None, tool_format: str, opening: Iterable[Dict]) -> None:
        """Load what came before, and add the messages that the loop begins with."""
        self.conversation.begin(system, tool_format)
        self._read_again()
        self._record(self.conversation.messages)
        for message in opening:
            self.add(message)

    def restore(self, messages: list[Dict], summary: str | None, events: list[Dict]) -> None:
        """Go on from what an earlier run left; this one has no messages yet."""
        self.conversation.restore(messages, summary, events)
        self._read_again()
        self._record(messages)

    def add(self, message: Dict) -> None:
        self.conversation.add(message)
        self._record((message,))
        self.request.messages.append(request_message(message))
        self._bytes += content_bytes((message,))

    def feed_back(self, kind: str, text: str) -> None:
        """Tell the model something in the name of the runtime."""
        self.add(feedback(kind, text))

    def take_in_messages(self) -> None:
        """Let in what others injected into the session meanwhile."""
        self._follow()
        arrivals = self.conversation.arrivals()
        self._record(arrivals)
        self.request.messages += map(request_message, arrivals)
        self._bytes += content_bytes(arrivals)

    def deferred(self) -> list[Any]:
        """What users said that hasn't been let in yet."""
        waiting = self.conversation.waiting()
        return [message.get("content") for message in waiting if message.get("role") == "user"]

    def latest_request(self) -> str:
        """What the user said last, without what the runtime says in the user's name."""
        for message in reversed(self.conversation.messages):
            text = prompt_text([message]) if message.get("role") == "user" else ""
            if text and not text.startswith(FEEDBACK):
                return text
        return ""

    # Compaction.

    def compact_when_full(self, mode: str, iteration: int) -> None:
        """Sum older messages up when the conversation has grown to the threshold (08 §4.9).

        ``mode``: ``preflight`` before a call, ``auto`` after a turn with tools.
        """
        compaction = self.compaction
        if compaction is None or not self._full(compaction.threshold, mode):
            return
        made = self._compacted(compaction)
        if made is None:
            return
        report = {**made.report(), "strategy": compaction.label}
        keep = {"keep_first": compaction.policy.keep_first, "keep_last": compaction.policy.keep_last}
        metadata = {"mode": mode, **report, "engine_strategy": made.strategy, **keep}
        self._put(made, note_of(metadata, _NOTES[mode]))
        self._trace.record(
            "context_compaction",
            archived_messages=made.archived,
            new_summary_len=len(made.text),
            iteration=iteration,
        )
        id = self.conversation.id
        self._sessions.emit(id, compacted_event(id, mode, report))

    def consolidate(self) -> None:
        """Sum older messages up, however few they are, and tell nobody."""
        made = None if self.compaction is None else self._compacted(self.compaction)
        if made is not None:
            self._put(made, None)

    def _compacted(self, compaction: LoopCompaction) -> Compaction | None:
        """What to put in the place of what, if anything."""
        self.conversation.store()  # what was said stays, should the compaction fail
        made = compact(self.conversation.messages, compaction.policy)
        if made is None or self._follow():  # or somebody else was quicker, while the model wrote
            return None
        return made

    def _put(self, made: Compaction, note: Dict | None) -> None:
        self.conversation.compact(made, note)
        self._read_again()
        self._record((made.message,))

    def _full(self, threshold: int, mode: str) -> bool:
        estimate = self._bytes // 4 + byte_length(self.request.system or "") // 4
        return estimate >= threshold if mode == "preflight" else estimate > threshold

    def _follow(self) -> bool:
        """Go on from what the session holds, if somebody else compacted it; whether somebody did."""
        former = self.conversation.replaced()
        if former is None:
            return False
        self._read_again()
        if self._is_recorded():
            known = set(map(id, former))
            self._record(message for message in self.conversation.messages if id(message) not in known)
        return True

    def _read_again(self) -> None:
        """Let the request have the conversation's messages, which are others now."""
        self.request.messages = self.conversation.converted(request_message)
        self._bytes = self.conversation.total(message_bytes)

    def _record(self, messages: Iterable[Dict]) -> None:
        """Note messages that enter the conversation in the records that are kept."""
        for message in messages if self._is_recorded() else ():
            if self.segment is not None:
                self.segment.message(message)
            if self.recorded is not None:
                self.recorded.append(message)

    def _is_recorded(self) -> bool:
        return self.segment is not None or self.recorded is not None
