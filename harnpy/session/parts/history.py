"""What is said: appending messages and context, and beginning anew. Spec: 10 §A1.4, §A2.2, §C3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harnpy.reading.dicts import detached
from harnpy.session import events as kinds
from harnpy.session.cuts import Cut
from harnpy.session.errors import InvalidArgument
from harnpy.session.events import EventDraft
from harnpy.session.parts.arguments import count
from harnpy.session.shown.message_parts import as_dict
from harnpy.session.window import Window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.events import Event
    from harnpy.session.views import View

    Message = dict[str, Any]
    Messages = Message | Iterable[Message]

#: As an expected version: at the end, whatever it is.
ANY = -1
_NO_MESSAGES: Final = "messages must be dicts with a string `role`"


class History:
    """The part of a `Session` that writes messages."""

    __slots__ = ()

    id: str
    version: int
    view: View

    def append(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        raise NotImplementedError

    def replace(self, reason: str, window: Window, branched_at: int | None = None) -> Event:
        raise NotImplementedError

    def shrink(self, strategy: str, window: Window) -> None:
        raise NotImplementedError

    @property
    def length(self) -> int:
        raise NotImplementedError

    def history_changed(self) -> None:
        raise NotImplementedError

    def append_user(self, text: str) -> Event:
        """Append what a user says."""
        return self.append_message({"role": "user", "content": text})

    def append_message(self, message: Message) -> Event:
        """Append one message; a role that isn't given is ``user``."""
        return self.append_prompt(message)[0]

    def append_prompt(self, messages: Messages) -> list[Event]:
        """Append messages, all or none. Raises `InvalidArgument` when there are none."""
        drafts = message_drafts(messages)
        if not drafts:
            raise InvalidArgument("a prompt must contain at least one message", self.id)
        events = self.append(*drafts, expected_version=ANY)
        self.history_changed()
        return events

    def append_context(self, content: str, kind: str = "generic", placement: str | None = None) -> Event:
        """Append what the model is to know and nobody has said. ``placement``: ``prefix`` or ``history``."""
        if placement not in (None, "prefix", "history"):
            raise InvalidArgument(f"`placement` must be `prefix` or `history`, not {placement!r}", self.id)
        data = {"kind": kind, "content": content}
        if placement is not None:
            data["placement"] = placement
        return self.append(EventDraft(kinds.CONTEXT_ADDED, data), expected_version=ANY)[0]

    def add_history(self, messages: Messages) -> None:
        """Append messages that are no turn's, one or several; a role that isn't given is ``user``."""
        self.append(*message_drafts(messages), expected_version=ANY)
        self.history_changed()

    def set_history(self, messages: Messages) -> None:
        """Restart the history with these messages. The log keeps what was; memo and registers stay."""
        drafts = message_drafts(messages)
        data: dict[str, Any] = {"messages": [], "reason": "set"}
        if drafts:
            data["messages"] = [[self.version + 1, self.version + len(drafts)]]
        if self.view.window.summary is not None:
            data["summary"] = None
        self.append(*drafts, EventDraft(kinds.HISTORY_REPLACED, Cut.restored(data)))
        self.history_changed()

    def reset(self) -> None:
        """Empty window and history; registers stay."""
        self.replace("reset", Window())
        self.history_changed()

    def clean_window(self) -> None:
        """Empty the window. The history stays."""
        self.shrink("clean_window", self.view.window.trimmed(0))
        self.history_changed()

    def trim(self, keep_last: int) -> int:
        """Keep the newest messages in the window. Return how many there are."""
        if count("keep_last", keep_last) < self.length:
            self.shrink("trim", self.view.window.trimmed(keep_last))
        return self.length


def message_drafts(messages: Messages) -> list[EventDraft]:
    """Return the drafts of copies of the messages: dicts, or objects that have a role and a content.

    Raises `InvalidArgument`, `EventRejected`.
    """
    one = as_dict(messages)
    drafts = []
    if not isinstance(one, dict) and not hasattr(messages, "__iter__"):
        raise InvalidArgument(_NO_MESSAGES)
    for message in map(as_dict, [one] if isinstance(one, dict) else messages):
        if not isinstance(message, dict) or not isinstance(message.get("role", ""), str):
            raise InvalidArgument(_NO_MESSAGES)
        draft = EventDraft(kinds.MESSAGE_ADDED, {"role": "user", **message})
        draft.check()
        draft.data = detached(draft.data)
        drafts.append(draft)
    return drafts
