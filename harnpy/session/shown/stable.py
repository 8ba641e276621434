"""The messages of a step's request: the window as a model gets it, kept from one request to the next.

A conversation in order passes through: each new message is looked at once. What isn't in order, and whatever
changes the window other than at its end, is a reason to show all of it anew. Spec: 10 §C16.2, §C16.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from harnpy.session.shown.message_parts import calls_of, has_payload, results_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harnpy.session.events import Event
    from harnpy.session.shown.entries import HistoryEntry
    from harnpy.session.shown.message_parts import Message
    from harnpy.session.turns.prompt_cache import PromptCache
    from harnpy.session.window import Window

    ReadTools = Callable[[int, int | None], Iterable[Event]]


class Shown(Protocol):
    """A view, as far as it matters here."""

    pins: tuple[int, ...]

    @property
    def window(self) -> Window: ...

    def entries(self, read_tools: ReadTools) -> list[HistoryEntry]: ...


class Stable:
    """``messages`` are those of `Session.window`, each as ``convert`` makes it; the list only ever grows.

    The first ``prefix`` of them are context that stands before the conversation. ``cache`` is the prompt
    cache of the last step that sent them.
    """

    __slots__ = ("_calls", "_count", "_entries", "_seen", "_waits", "cache", "convert", "messages", "prefix")

    def __init__(self, view: Shown, convert: Callable[[Message], Any], read_tools: ReadTools) -> None:
        shown = view.entries(read_tools)
        self.convert = convert
        self.messages = [convert(entry.message) for entry in shown]
        self.prefix = sum(entry.is_prefix for entry in shown)
        self.cache: PromptCache | None = None
        self._waits = _lacks_results(view, shown)
        self._entries = view.window.entries
        self._seen = self._state(view)
        self._count = len(view.window)
        self._calls: list[str | None] = []  # those of the last message that have no result yet

    def grows_to(self, view: Shown) -> bool:
        """Take in what the view shows by now. Return False if it has to be shown anew."""
        window = view.window
        entries, seen = window.entries, self._count
        if entries is not self._entries or self._seen != self._state(view):
            return False
        count = len(entries)
        if seen < count:
            messages = window.messages()[seen:]
            for message in messages:
                if not _follows(message, self._calls):
                    return False
            self.messages += map(self.convert, messages)
            self._count = count
        return not self._calls

    def takes(self, messages: Sequence[Message]) -> bool:
        """Whether these messages may stand behind the others as they are."""
        calls = list(self._calls)
        return all(_follows(message, calls) for message in messages) and not calls

    def _state(self, view: Shown) -> tuple[Any, ...]:
        """What the shown window depends on beside its messages. A call that isn't shown, as it has
        no result, may get one from the log: then other events count, too."""
        window = view.window
        others = len(window.asides) if self._waits else 0
        return window.contexts, window.files, view.pins, others


def _lacks_results(view: Shown, shown: list[HistoryEntry]) -> bool:
    """Whether there are calls that aren't shown."""
    whole = {id(entry.message) for entry in shown}
    return any(id(message) not in whole and calls_of(message) for message in view.window.messages())


def _follows(message: Message, calls: list[str | None]) -> bool:
    """Whether a message may stand as it is behind those before it. ``calls`` are the ids of calls without
    result yet, before the message and, when this returns, behind it."""
    role, content = message.get("role"), message.get("content")
    if role == "user" and type(content) is str:
        return not calls
    if role == "assistant":
        if calls:
            return False
        if type(content) is str and "tool_calls" not in message and content.strip():
            return True
        calls += [call.id for call in calls_of(message)]
        named = [id for id in calls if id is not None]
        return len(set(named)) == len(named) if calls else has_payload(message)
    answered = results_of(message)
    if answered is None:
        return role == "user" and not calls
    if calls[: len(answered)] != answered:
        return False
    del calls[: len(answered)]
    return True
