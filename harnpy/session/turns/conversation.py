"""The conversation of a running agent loop that has no session: its own list of messages. Spec: 08 §1.11."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session.derived import ShownOrder, transcript_form
from harnpy.session.resize.engine import merged_summary
from harnpy.session.resize.notes import note_of
from harnpy.session.transcript import message_event, plain_message, transcript
from harnpy.session.turns.calls import ToolStarted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.reading.dicts import Dict
    from harnpy.session.events import Event
    from harnpy.session.resize.compaction import Compaction
    from harnpy.session.runtime.recorded import Recalled
    from harnpy.session.turns.prompt_cache import Prompt
    from harnpy.world import World


#: What the log calls a loop that has no name.
AGENT = "agent_loop"


class Conversation:
    """The messages of a loop without a session. ``summary`` is that of earlier compactions, ``agent`` what
    the log calls the loop."""

    agent = AGENT

    def __init__(self, id: str, world: World) -> None:
        self.id = id
        self.world = world
        self.messages: list[Dict] = []
        self.summary: str | None = None
        #: Asks the loop's own model, for compactions of the session while the loop runs.
        self.summarize: Callable[[str], str] | None = None
        #: What began the turn that runs, if a session has it.
        self.turn: Event | None = None
        self._lifecycle: list[tuple[str, Any]] = []
        self._order: ShownOrder[Any] = ShownOrder()
        self._sent: list[Dict] = []
        self._sent_of: object = None  # what it is the request form of

    def begin(self, system: str | None, tool_format: str) -> None:
        """Load what came before. ``system`` is the caller's system prompt."""

    def add(self, message: Dict) -> None:
        self.messages.append(message)

    def note(self, event: Dict) -> None:
        """Record a transcript event that has no type of its own."""
        self.fact(kinds.TRANSCRIPT_EVENT, event)

    def fact(self, type: str, payload: Any, cost: float = 0.0) -> None:
        """Record an event of this run. `store` writes it."""
        self._lifecycle += self._order.add(type, payload, (type, payload))

    def call_started(self, tool: str, arguments: Dict, id: str | None, number: int, parallel: bool) -> None:
        """Record that call ``number`` of the assistant's last message is made."""
        self.fact(kinds.TOOL_STARTED, ToolStarted(tool, arguments, id, parallel))

    def step_started(
        self, provider: str, model: str, iteration: int, prompt: Prompt | None = None, **facts: Any
    ) -> bool:
        """Store the conversation and record that the model is about to be asked.

        ``prompt`` is what it is asked with beside what `sent` returned; None for a call that isn't about the
        conversation. Return False if others' messages have come meanwhile: they are to be sent, too.
        """
        return True

    def recall(self, type: str, **names: Any) -> Recalled | None:
        """Return what an earlier run of this turn left of the call that was begun last with an event of that
        type and those names in its data. Spec: 10 §C16.5."""
        return None

    def sent(self, convert: Callable[[Dict], Dict]) -> list[Dict]:
        """Return the messages of a request, each as ``convert`` makes it: the same function each time.

        The list only ever grows; what isn't the former messages and more comes in another list.
        """
        if self._sent_of is not self.messages:
            self._sent_of, self._sent = self.messages, []
        self._sent += map(convert, self.messages[len(self._sent) :])
        return self._sent

    def tail(self) -> list[Dict]:
        """Return the messages that follow those in this one request. Spec: 10 §C16.2."""
        return []

    def active_skills(self) -> list[str]:
        """Return the skills that were active at the end of the session's last loop."""
        return []

    def restore(self, messages: list[Dict], summary: str | None, events: list[Dict]) -> None:
        """Continue from what an earlier run left; the conversation has no messages yet."""
        self.messages, self.summary = list(messages), summary

    def waiting(self) -> list[Dict]:
        """Return the injected messages that haven't joined the conversation yet."""
        return []

    def arrivals(self) -> list[Dict]:
        """Return the messages injected since the last call; they join the conversation now."""
        return []

    def replaced(self) -> list[Dict] | None:
        """Return the former messages, if somebody else cut the conversation since the last call."""
        return None

    def compact(self, compaction: Compaction, note: Dict | None) -> bool:
        """Replace older messages with a summary; ``note`` is what its transcript event says, if it has one.

        Return False, having done nothing, if somebody else has cut the conversation meanwhile (`replaced`).
        """
        self.messages = compaction.applied(self.messages)
        self.summary = merged_summary(self.summary, compaction.text)
        if note is not None:
            self.note(note_of(note))
        return True

    def make_room(self) -> None:
        """Do what the session's policy says about its window, before the model is asked."""

    #: Whether `shrink` may be of use.
    can_shrink = False

    def shrink(self) -> bool:
        """Make the window smaller for a model that it is too long for. Return False if it isn't smaller."""
        return False

    def total(self, measure: Callable[[Dict], int]) -> int:
        """Return the sum of ``measure(message)``."""
        return sum(map(measure, self.messages))

    def store(self) -> None:
        """Write the conversation to the session."""

    def end(self, stop_reason: str, steps: int = 0, skills: Sequence[str] = ()) -> None:
        """Record that the loop has ended, with these skills active for the session's next one."""

    def fail(self, error: BaseException) -> None:
        """Record that an error or a cancellation ended the loop: calls that are open get an end."""

    def transcript(self, state: str) -> Dict:
        """Return the loop's result: these messages, their events, and this run's lifecycle events."""
        messages = [plain for plain in map(plain_message, self.messages) if plain is not None]
        new_id = self.world.ids.new
        events = [message_event(message, new_id()) for message in messages]
        return self._transcript(messages, events, state)

    def _transcript(self, messages: list[Dict], events: list[Dict], state: str) -> Dict:
        events = events + self._lifecycle_events()
        return transcript(self.id, messages, events, [], summary=self.summary, state=state)

    def _lifecycle_events(self) -> list[Dict]:
        return [{"id": self.world.ids.new(), **transcript_form(*fact)} for fact in self._lifecycle]
