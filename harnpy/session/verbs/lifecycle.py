"""The verbs of a session's life: open, write, branch, cut back, close. Spec: 08 §1.2–1.6.

Values that come in are copied and values that go out are copies, so that a Python caller can't change a
session by accident. Callers whose values never change, as a Harn program's, use the methods that share
them instead: `adopt` for `inject`, `snapshot_value` for `snapshot`, `history_value` for `history`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from harnpy.session import events as kinds
from harnpy.session.errors import InvalidArgument, SessionNotFound
from harnpy.session.registry import Registry
from harnpy.session.snapshot import Snapshot, snapshot_value
from harnpy.session.values import detached
from harnpy.session.verbs.options import boolean, check, count, not_blank, read_options
from harnpy.session.views import Window

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.session.log import Session
    from harnpy.session.registry import Resident, Subscriber
    from harnpy.session.views import View


class Lifecycle(Registry):
    """`exists` … `close`, with what reads a session, and `subscribe`."""

    def exists(self, id: str) -> bool:
        return id in self._residents

    def length(self, id: str) -> int:
        """The number of messages."""
        return self._known("agent_session_length", id).session.length

    def messages(self, id: str) -> list[Dict]:
        messages: list[Dict] = detached(self._known("agent_session_messages", id).session.messages())
        return messages

    def history(self, id: str, opts: Dict | None = None) -> list[Dict]:
        """The messages behind the window, those too that were trimmed away or summarised.

        They begin with the last reset; ``include_reset``: with the session. Our own verb.
        """
        messages: list[Dict] = detached(self.history_value(id, opts))
        return messages

    def history_value(self, id: str, opts: Dict | None = None) -> list[Dict]:
        """`history` with the session's own messages, for readers that change none."""
        verb = "agent_session_history"
        session = self._known(verb, id).session
        options = read_options(verb, opts, {"include_reset": boolean})
        return session.every_message() if options.get("include_reset") else session.history()

    def snapshot(self, id: str) -> Snapshot | None:
        """The session as it stands, None when there is none."""
        resident = self._residents.get(id)
        if resident is None:
            return None
        return Snapshot(id, resident.session.view, resident.child_ids)

    def snapshot_value(self, id: str) -> Dict | None:
        """`snapshot` as a dict that shares the session's values."""
        resident = self._residents.get(id)
        if resident is None:
            return None
        return snapshot_value(id, resident.session.view, resident.child_ids)

    def ancestry(self, id: str) -> Dict | None:
        """``{parent_id, child_ids, root_id}``, None when there is no such session."""
        resident = self._residents.get(id)
        if resident is None:
            return None
        root, seen = id, {id}
        while (parent := self._parent_id(root)) is not None and parent not in seen:
            root = parent
            seen.add(root)
        child_ids = list(resident.child_ids)
        return {"parent_id": resident.session.view.parent_id, "child_ids": child_ids, "root_id": root}

    def reset(self, id: str) -> None:
        """Start the transcript afresh; id, subscribers, lineage, clients and registers stay."""
        self._touched("agent_session_reset", id).session.replace("reset", Window())

    def fork(self, src: str, dst: str | None = None) -> str:
        """Copy a session's transcript under a new id; that id."""
        verb = "agent_session_fork"
        not_blank(verb, "dst", dst)
        return self._fork(verb, src, dst).session.id

    def fork_at(self, src: str, keep_first: int, dst: str | None = None) -> str:
        """Fork, and keep only the first messages on the child; its id."""
        verb = "agent_session_fork_at"
        check(verb, "keep_first", keep_first, count)
        not_blank(verb, "dst", dst)
        window = self._known(verb, src).session.view.window
        index, head = window.branch_index(keep_first), window.head(keep_first)
        child = self._fork(verb, src, dst).session
        child.replace("fork_at", head, branched_at=index)
        return child.id

    def trim(self, id: str, keep_last: int) -> int:
        """Keep the newest messages; how many there are."""
        verb = "agent_session_trim"
        check(verb, "keep_last", keep_last, count)
        session = self._touched(verb, id).session
        if keep_last < session.length:
            session.shrink("trim", session.view.window.trimmed(keep_last))
        return session.length

    def inject(self, id: str, message: Dict) -> None:
        """Append a message."""
        self.adopt(id, detached(message))

    def adopt(self, id: str, message: Dict) -> None:
        """`inject` for a message that nobody changes any more."""
        resident = self._residents.get(id)
        if resident is None:
            raise SessionNotFound(id, "agent_session_inject")
        if type(message) is not dict or type(message.get("role")) is not str:
            _refuse_message(message)
        self._residents.move_to_end(id)  # `touch`, without a call: this is the hot path
        resident.session.record(kinds.MESSAGE_ADDED, message)
        for binding in resident.bindings:
            binding.arrive(message)

    def append_event(self, id: str, event: Dict) -> None:
        """Append a lifecycle event to the transcript: a dict with a string ``kind``."""
        verb = "agent_session_append_event"
        if not isinstance(event, dict):
            raise InvalidArgument(verb, "event must be a dict")
        resident = self._known(verb, id)
        if not isinstance(event.get("kind"), str):
            raise InvalidArgument(verb, "event must have a string `kind`")
        self.touch(id)
        resident.session.record(kinds.TRANSCRIPT_EVENT, detached(event))

    def close(self, id: str, status: str | Dict | None = None) -> None:
        """Remove a session, telling its subscribers why first."""
        verb = "agent_session_close"
        if status is not None and not isinstance(status, str | dict):
            raise InvalidArgument(verb, "`status` must be a string, dict, or nil")
        given = {"reason": status} if isinstance(status, str) else detached(status)
        reason = None if given is None else given.get("reason")
        if reason is not None and not isinstance(reason, str):
            raise InvalidArgument(verb, "`status.reason` must be a string")
        self._close(self._known(verb, id), reason, given)

    def discard(self, id: str) -> None:
        """Remove a session, if there is one, telling nobody."""
        resident = self._residents.get(id)
        if resident is None:
            return
        if not resident.closing:
            resident.closing = True
            self._closing += 1
        self._forget(resident)

    def subscribe(self, id: str, callback: Subscriber) -> None:
        """Call ``callback`` with each agent event of the session, which is opened if need be."""
        not_blank("agent_subscribe", "session_id", id)
        self._opened(id).subscribers.append(callback)

    def subscriber_count(self, id: str) -> int:
        resident = self._residents.get(id)
        return len(resident.subscribers) if resident else 0

    def _fork(self, verb: str, src: str, dst: str | None) -> Resident:
        source = self._known(verb, src)
        if dst == src:
            raise InvalidArgument(verb, "`dst` must differ from `src`", src)
        self.touch(src)
        if dst is None:
            dst = self.effects.new_id()
        child, view = self._residents.get(dst), source.session.view
        if child is None:
            made = self._forked(source.session, dst)
            child, view = self._residents.get(dst), made.view
            if child is None:
                child = self._admit(made)
        if child.session.view is not view:  # it was there before, or who heard of an eviction opened it
            self._refork(child.session, src, view)
        self._link(src, dst)
        return child

    def _forked(self, source: Session, dst: str) -> Session:
        """A fork for which there is room. It is made first: the source may be the one to make room, and then
        hears of its end."""
        made = source.fork(dst, self._backend)
        try:
            self._make_room(dst)
        except BaseException:  # who heard of an eviction was interrupted: there will be no such session
            if dst not in self._residents:
                self._backend.delete(dst)
            raise
        return made

    def _refork(self, child: Session, src: str, view: View) -> None:
        """Let an existing session become a fork of ``src``, which looks like ``view``."""
        former = child.view.parent_id
        if former is not None and former != src and former in self._residents:
            self._residents[former].child_ids.pop(child.id, None)
        child.replace("fork", view.window.branch(), parent_id=src, registers=dict(view.registers))

    def _link(self, parent_id: str, child_id: str) -> None:
        self.touch(parent_id)
        self.touch(child_id)
        parent = self._residents.get(parent_id)
        if parent is not None:
            parent.child_ids[child_id] = None

    def _parent_id(self, id: str) -> str | None:
        resident = self._residents.get(id)
        return None if resident is None else resident.session.view.parent_id


def _refuse_message(message: Any) -> NoReturn:
    verb = "agent_session_inject"
    if message is None:
        raise InvalidArgument(verb, "`message` required")
    if type(message) is not dict:
        raise InvalidArgument(verb, "message must be a dict")
    raise InvalidArgument(verb, "message must have a string `role` (user|assistant|tool_result|system)")
