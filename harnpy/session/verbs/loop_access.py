"""What a running agent loop needs of a session. Spec: 08 §1.7, §1.11."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.registry import Registry
from harnpy.session.values import detached

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.session.log import Session
    from harnpy.session.loop_conversation import Binding


class Driving(Registry):
    """`bind` and what a binding asks for; feedback; transcripts that a host stores."""

    def prompt_state(self, id: str) -> tuple[list[Dict], str | None]:
        """What a loop starts from: the messages, led by the summary, and the summary."""
        messages, summary = self._known("agent_session_prompt_state", id).session.prompt_state()
        return detached(messages), summary

    def store_transcript(self, id: str, transcript: Dict) -> None:
        """Let the session hold what ``transcript`` holds. Unknown ids are ignored."""
        resident = self._residents.get(id)
        if resident is None:
            return
        self.touch(id)
        resident.session.restore(detached(transcript))

    def bind(self, binding: Binding) -> Session:
        """Open the binding's session, and let it hear of what others do to it."""
        resident = self._opened(binding.id)
        resident.bindings.append(binding)
        return resident.session

    def bound(self, binding: Binding) -> Session | None:
        """The binding's session; None once it was closed, even if another one has its id now."""
        resident = self._residents.get(binding.id)
        return resident.session if resident is not None and binding in resident.bindings else None

    def overtake(self, binding: Binding) -> None:
        """Tell other loops on the binding's session that it compacted the conversation."""
        resident = self._residents.get(binding.id)
        for other in resident.bindings if resident is not None else ():
            if other is not binding:
                other.overtaken()

    def unbind(self, binding: Binding) -> None:
        resident = self._residents.get(binding.id)
        if resident is not None and binding in resident.bindings:
            resident.bindings.remove(binding)

    def inject_feedback(self, id: str, kind: str, content: str) -> None:
        """Queue a note for the loop that runs under ``id`` now or next."""
        self._feedback.setdefault(id, []).append((kind, content))

    def has_feedback(self, id: str) -> bool:
        """Whether a note is queued for the loop that runs under ``id``."""
        return bool(self._feedback.get(id))

    def take_feedback(self, id: str) -> list[tuple[str, str]]:
        """The queued (kind, content) pairs, which leave the queue."""
        return self._feedback.pop(id, [])
