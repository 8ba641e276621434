"""What an agent remembers beyond one session: recalled before a request, told after it. Spec: 10 §A2.8."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

from harnpy.session.extension.request_prompt import INFO, MEMORY, MEMORY_SLOT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.extension.request_prompt import RequestPrompt

#: What is recalled at most: characters in all and of one text, and how many texts.
CHARS: Final = 4000
BLOCK_CHARS: Final = 1200
BLOCKS: Final = 16


class Memory(Protocol):
    """Where memories are kept, over `std/memory`, a database or whatever finds them again."""

    def recall(self, query: str) -> Iterable[str]:
        """Return the texts that belong to ``query``, the best first."""

    def remember(self, session_id: str, asked: str, answered: str) -> object:
        """Take notice of what was said; either may be empty."""


def show(memory: Memory, prompt: RequestPrompt) -> None:
    """Put what belongs to a request into its slot ``info.session_memory_context``."""
    try:
        text = _within_budget(memory.recall(prompt.text()))
    except Exception:
        _failed("recall")
        text = ""
    info = prompt.request.get(INFO)
    if info is not None and not isinstance(info, dict):
        _put(prompt.request, MEMORY_SLOT, text)
        return
    known = dict(info or {})
    _put(known, MEMORY, text)
    _put(prompt.request, INFO, known)


def tell(memory: Memory, session_id: str, asked: str, answered: str) -> None:
    """Tell what was said."""
    try:
        memory.remember(session_id, asked, answered)
    except Exception:
        _failed("remember")


def _put(slots: dict[str, Any], key: str, value: Any) -> None:
    if value:
        slots[key] = value
    else:
        slots.pop(key, None)


def _within_budget(texts: Iterable[str]) -> str:
    """Return the texts that fit, each cut to its share, with a blank line between two of them."""
    found: list[str] = []
    left = CHARS
    for text in texts:
        block = text.strip()[: min(BLOCK_CHARS, left)]
        if block:
            found.append(block)
            left -= len(block)
        if not left or len(found) == BLOCKS:
            break
    return "\n\n".join(found)


def _failed(verb: str) -> None:
    """A memory that fails fails no request."""
    logging.getLogger(__name__).exception("a session's memory could not %s", verb)
