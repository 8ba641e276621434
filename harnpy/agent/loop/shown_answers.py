"""Showing the model's answers piece by piece: to watches of the session, the sender of the turn, and the
loop's option `on_chunk`. Spec: 07 §6.9, 10 §C10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.llm.text_format import visible_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.tasks import Tasks
    from harnpy.formats.dicts import Dict
    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request
    from harnpy.session.conversation import Conversation


class ShownAnswers:
    """Shows each answer of one loop as it comes, else once it is there. In text format its markup isn't
    shown, so it is shown once it is there.

    ``on_chunk`` gets ``{text, start}``; it is called where the loop waits for its model, so it may wait, too.
    """

    def __init__(
        self,
        conversation: Conversation,
        tasks: Tasks,
        on_chunk: Callable[[Dict], Any] | None,
        *,
        is_native: bool,
    ) -> None:
        self._conversation = conversation
        self._tasks = tasks
        self._on_chunk = on_chunk
        self._is_native = is_native
        self._prefill = ""
        self._came = False
        self._is_told = False  # of something of this answer
        self._untold: list[str] = []

    @property
    def reports(self) -> bool:
        """Return whether `tell` is to be called while the model answers."""
        return self._on_chunk is not None and self._is_native

    def began(self, request: Request) -> None:
        """Take notice that a model is asked, for the first time or again."""
        self._prefill = request.prefill or ""
        self._came = self._is_told = False
        self._untold = []
        self._conversation.start_answer()

    def piece(self, text: str) -> None:
        """Show the next piece of its text."""
        if not self._is_native:
            return
        if not self._came:
            text = self._prefill + text
        self._came = True
        self._conversation.show(text)
        if self._on_chunk is not None:
            self._untold.append(text)

    def tell(self) -> None:
        """Call the loop's option with what has come since."""
        text, self._untold = "".join(self._untold), []
        if text and self._on_chunk is not None:
            start, self._is_told = not self._is_told, True
            self._on_chunk({"text": text, "start": start})

    def ended(self, reply: Reply) -> None:
        """Take the whole answer, and show it unless it came in pieces."""
        came, self._came = self._came, False
        if not came and (self._on_chunk is not None or self._conversation.is_watched):
            text = self._prefill + reply.text
            text = text if self._is_native else visible_text(text)
            if text:
                self._untold.append(text)
                seen = self._conversation.show(text)
                if seen is not None:
                    seen.result()
        self.tell()
        self._tasks.go_on()
