"""Showing the model's answers piece by piece: to watches of the session, the sender of the turn, and the
loop's option `on_chunk`. Spec: 07 §6.9, 10 §C10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.llm.text_format import visible_so_far, visible_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from harnpy.agent.tasks import Tasks
    from harnpy.formats.dicts import Dict
    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request
    from harnpy.session.conversation import Conversation

#: An answer with markup is looked at anew when it has grown by one of so many parts.
_PARTS = 128


class ShownAnswers:
    """Shows each answer of one loop as it comes, and what is missing once it is there.

    In text format its markup isn't shown. What was shown too early is replaced, but for the sender, who can't
    take anything back: they get the answer again, as a new paragraph. ``on_chunk`` gets ``{text, start}``; it
    is called where the loop waits for its model, so it may wait, too.
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
        self._begin()

    def _begin(self, prefill: str = "") -> None:
        self._prefill = prefill
        self._came: list[str] = []  # of the answer itself
        self._size = self._looked = 0
        self._shown = ""
        self._untold: list[str] = []
        self._is_told = False

    @property
    def reports(self) -> bool:
        """Return whether `tell` is to be called while the model answers."""
        return self._on_chunk is not None

    def began(self, request: Request) -> None:
        """Take notice that a model is asked, for the first time or again."""
        self._begin(request.prefill or "")
        self._conversation.start_answer()

    def piece(self, text: str) -> None:
        """Show the next piece of its text."""
        text = text if self._came else self._prefill + text
        self._came.append(text)
        if self._is_native:
            self._show(text)
            return
        self._size += len(text)
        if self._is_watched and self._size - self._looked >= self._looked // _PARTS:
            self._looked = self._size
            self._show_up_to(visible_so_far("".join(self._came)))

    def tell(self) -> None:
        """Call the loop's option with what has come since."""
        text, self._untold = "".join(self._untold), []
        if text and self._on_chunk is not None:
            start, self._is_told = not self._is_told, True
            self._on_chunk({"text": text, "start": start})

    def ended(self, reply: Reply) -> None:
        """Take the whole answer, and show what wasn't yet."""
        if self._is_watched:
            text = self._prefill + reply.text
            if not self._is_native:
                self._end(visible_text(text))
            elif not self._came:
                self._end(text)
            self.tell()
        self._begin()
        self._tasks.go_on()

    def _end(self, text: str) -> None:
        if not text.startswith(self._shown):
            self._start_again(text)
        seen = self._show_up_to(text)
        if seen is not None:
            seen.result()

    @property
    def _is_watched(self) -> bool:
        return self._on_chunk is not None or self._conversation.is_watched

    def _start_again(self, text: str) -> None:
        self._conversation.start_answer()
        self._shown, self._untold, self._is_told = "", [], False
        if text:
            self._conversation.show_sender("\n\n")

    def _show_up_to(self, text: str) -> Future[None] | None:
        """Show an answer up to there, as far as that goes on what was shown."""
        shown, is_more = len(self._shown), len(text) > len(self._shown)
        if not (is_more and text.startswith(self._shown)):
            return None
        self._shown = text
        return self._show(text[shown:])

    def _show(self, text: str) -> Future[None] | None:
        """Return what has a result once the sender has seen it, if they want to be waited for."""
        self._conversation.show(text)
        if self._on_chunk is not None:
            self._untold.append(text)
        return self._conversation.show_sender(text)
