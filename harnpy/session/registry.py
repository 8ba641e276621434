"""The sessions of one VM: a registry that keeps the most recently used. Spec: 08 §1.1–1.7.

Each `agent_session_*` builtin is the method of the same name without the prefix, and an error reads as
the builtin's. Reads leave the order of use alone; everything else moves its session to the end.

Values that come in are copied and values that go out are copies, so that a Python caller can't change a
session by accident. Callers whose values never change, as a Harn program's, use the methods that share
them instead: `adopt` for `inject`, `snapshot_value` for `snapshot`.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from harnpy.session import events as kinds
from harnpy.session.effects import Effects
from harnpy.session.errors import InvalidArgument, SessionNotFound, unknown_key
from harnpy.session.log import Session
from harnpy.session.snapshot import Snapshot, snapshot_value
from harnpy.session.stack import SessionStack
from harnpy.session.transcript import lifecycle_event
from harnpy.session.values import detached
from harnpy.session.views import Window
from harnpy.session.workspace import DEFAULT_POLICY, read_anchor, read_policy
from harnpy.storage.memory import MemoryBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.session.binding import Binding

    Dict = dict[str, Any]
    Subscriber = Callable[[Dict], Any]

_OPEN_KEYS = ("store", "workspace_anchor", "workspace_policy")


class Resident:
    """A session in the registry, with what isn't in its log."""

    __slots__ = ("bindings", "child_ids", "closing", "session", "subscribers")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.child_ids: dict[str, None] = {}  # ordered and unique
        self.subscribers: list[Subscriber] = []
        self.bindings: list[Binding] = []
        self.closing = False


class SessionStore:
    """At most ``cap`` sessions, the least recently used first."""

    def __init__(
        self,
        cap: int = 128,
        *,
        effects: Effects | None = None,
        stack: Callable[[], SessionStack] | None = None,
    ) -> None:
        """``stack`` gives the running task's stack; without it there is one for all."""
        self.effects = effects or Effects()
        self.set_cap(cap)
        only = SessionStack()
        self._stack = stack or (lambda: only)
        self._backend = MemoryBackend()
        self._residents: OrderedDict[str, Resident] = OrderedDict()
        self._running: dict[str, int] = {}
        self._feedback: dict[str, list[tuple[str, str]]] = {}

    # The verbs.

    def open(self, id: str | None = None, opts: Dict | None = None) -> str:
        """Open or create a session; its id. None mints one."""
        verb = "agent_session_open"
        _not_blank(verb, "id", id)
        opts = detached(opts) or {}
        for key in sorted(opts):
            if key not in _OPEN_KEYS:
                raise unknown_key(verb, "option key", key, _OPEN_KEYS)
        if opts.get("store"):
            raise InvalidArgument(verb, "durable sessions (`store`) are not part of this release")
        given = opts.get("workspace_policy")
        policy = None if given is None else read_policy(verb, given)
        known = self._residents.get(id) if id is not None else None
        current = DEFAULT_POLICY if known is None else _policy(known.session)
        anchor = read_anchor(verb, opts.get("workspace_anchor"), policy or current, self.effects)

        session = self._opened(id).session
        if policy is not None:
            self._set_policy(session, policy)
        if "workspace_anchor" in opts:
            self._set_anchor(session, anchor)
        return session.id

    def exists(self, id: str) -> bool:
        return id in self._residents

    def length(self, id: str) -> int:
        """The number of messages."""
        return self._known("agent_session_length", id).session.length

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
        """Start the transcript afresh; id, subscribers, lineage and registers stay."""
        self._touched("agent_session_reset", id).session.replace("reset", Window())

    def fork(self, src: str, dst: str | None = None) -> str:
        """Copy a session's transcript under a new id; that id."""
        verb = "agent_session_fork"
        _not_blank(verb, "dst", dst)
        return self._fork(verb, src, dst).session.id

    def fork_at(self, src: str, keep_first: int, dst: str | None = None) -> str:
        """Fork, and keep only the first messages on the child; its id."""
        verb = "agent_session_fork_at"
        _not_negative(verb, "keep_first", keep_first)
        _not_blank(verb, "dst", dst)
        window = self._known(verb, src).session.view.window
        index, head = window.branch_index(keep_first), window.head(keep_first)
        child = self._fork(verb, src, dst).session
        child.replace("fork_at", head, branched_at=index)
        return child.id

    def trim(self, id: str, keep_last: int) -> int:
        """Keep the newest messages; how many there are."""
        verb = "agent_session_trim"
        _not_negative(verb, "keep_last", keep_last)
        session = self._touched(verb, id).session
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
        self._residents.move_to_end(id)
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
        self._residents.move_to_end(id)
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

    def subscribe(self, id: str, callback: Subscriber) -> None:
        """Call ``callback`` with each agent event of the session, which is opened if need be."""
        _not_blank("agent_subscribe", "session_id", id)
        self._opened(id).subscribers.append(callback)

    def subscriber_count(self, id: str) -> int:
        resident = self._residents.get(id)
        return len(resident.subscribers) if resident else 0

    # The registry.

    @property
    def cap(self) -> int:
        return self._cap

    def set_cap(self, cap: int) -> None:
        """Sessions over a lower cap go one by one, as new ones come."""
        self._cap = max(1, cap)

    def ids(self) -> list[str]:
        """Least recently used first."""
        return list(self._residents)

    def clear(self) -> None:
        """Forget all sessions, telling nobody."""
        for id in self.ids():
            self._backend.delete(id)
        self._residents.clear()
        self._feedback.clear()

    def session(self, id: str) -> Session | None:
        """The live session, for readers of its log."""
        resident = self._residents.get(id)
        return None if resident is None else resident.session

    def messages(self, id: str) -> list[Dict]:
        messages: list[Dict] = detached(self._known("agent_session_messages", id).session.messages())
        return messages

    def current_id(self) -> str | None:
        """The innermost id being driven in this task."""
        return self._stack().current()

    @contextmanager
    def enter(self, id: str) -> Iterator[None]:
        """Drive ``id`` inside the block. A driven session is never evicted."""
        self._running[id] = self._running.get(id, 0) + 1
        try:
            with self._stack().enter(id):
                yield
        finally:
            self._running[id] -= 1
            if not self._running[id]:
                del self._running[id]

    def emit(self, id: str, event: Dict) -> None:
        """Give an agent event to the session's subscribers, in order; what they raise is a warning."""
        resident = self._residents.get(id)
        for callback in list(resident.subscribers) if resident else ():
            try:
                callback(event)
            except Exception as error:
                self.effects.warn("agent.subscriber", str(error))

    # What running loops need.

    def prompt_state(self, id: str) -> tuple[list[Dict], str | None]:
        """What a loop starts from: the messages, led by the summary, and the summary."""
        messages, summary = self._known("agent_session_prompt_state", id).session.prompt_state()
        return detached(messages), summary

    def store_transcript(self, id: str, transcript: Dict) -> None:
        """Let the session hold what ``transcript`` holds. Unknown ids are ignored."""
        resident = self._residents.get(id)
        if resident is None:
            return
        self._residents.move_to_end(id)
        resident.session.restore(detached(transcript))

    def bind(self, binding: Binding) -> Session:
        """Open the binding's session, and let it hear of injected messages."""
        resident = self._opened(binding.id)
        resident.bindings.append(binding)
        return resident.session

    def bound(self, binding: Binding) -> Session | None:
        """The binding's session, now used again; None once it was closed."""
        resident = self._residents.get(binding.id)
        if resident is None:
            return None
        self._residents.move_to_end(binding.id)
        return resident.session

    def unbind(self, binding: Binding) -> None:
        resident = self._residents.get(binding.id)
        if resident is not None and binding in resident.bindings:
            resident.bindings.remove(binding)

    def inject_feedback(self, id: str, kind: str, content: str) -> None:
        """Queue a note for the loop that runs under ``id`` now or next."""
        self._feedback.setdefault(id, []).append((kind, content))

    def take_feedback(self, id: str) -> list[tuple[str, str]]:
        """The queued (kind, content) pairs, which leave the queue."""
        return self._feedback.pop(id, [])

    # Finding, making and removing.

    def _known(self, verb: str, id: str) -> Resident:
        resident = self._residents.get(id)
        if resident is None:
            raise SessionNotFound(id, verb)
        return resident

    def _touched(self, verb: str, id: str) -> Resident:
        resident = self._known(verb, id)
        self._residents.move_to_end(id)
        return resident

    def _opened(self, id: str | None) -> Resident:
        if id is None:
            id = self.effects.new_id()
        resident = self._residents.get(id)
        if resident is None:
            return self._admit(Session.create(id, self._backend, self.effects))
        self._residents.move_to_end(id)
        return resident

    def _admit(self, session: Session) -> Resident:
        """Take a new session in; the least recently used one goes, if the registry was full.

        It goes last, for its subscribers hear of it and may do anything: also use the new one.
        """
        victim = self._victim()
        resident = self._residents[session.id] = Resident(session)
        if victim is not None:
            self._close(victim, "lru_evicted", {"reason": "lru_evicted"})
        return resident

    def _victim(self) -> Resident | None:
        """Who has to make room: the least recently used session that nobody drives."""
        if len(self._residents) < self._cap:
            return None
        for id, resident in self._residents.items():
            if id not in self._running and not resident.closing:
                return resident
        return None

    def _close(self, resident: Resident, reason: str | None, status: Dict | None) -> None:
        id = resident.session.id
        if not resident.closing:  # a subscriber that hears of it may close it too
            resident.closing = True
            why = {"reason": reason, "status": status}
            closed = lifecycle_event("agent_session_closed", text=reason or "", metadata=why)
            resident.session.record(kinds.TRANSCRIPT_EVENT, closed)
            self.emit(id, {"type": "agent_session_closed", "session_id": id, **why})
        if self._residents.get(id) is resident:
            del self._residents[id]
            self._backend.delete(id)
            self._feedback.pop(id, None)

    def _fork(self, verb: str, src: str, dst: str | None) -> Resident:
        source = self._known(verb, src)
        if dst == src:
            raise InvalidArgument(verb, "`dst` must differ from `src`", src)
        self._residents.move_to_end(src)
        if dst is None:
            dst = self.effects.new_id()
        child = self._residents.get(dst)
        if child is None:
            child = self._admit(source.session.fork(dst, self._backend))
        else:
            self._refork(child.session, source.session)
        self._link(src, dst)
        return child

    def _refork(self, child: Session, source: Session) -> None:
        """Let an existing session become a fork of ``source``."""
        former = self._residents.get(child.view.parent_id or "")
        if former is not None:
            former.child_ids.pop(child.id, None)
        registers = dict(source.view.registers)
        child.replace("fork", source.view.window.branch(), parent_id=source.id, registers=registers)

    def _link(self, parent_id: str, child_id: str) -> None:
        for id in (parent_id, child_id):
            if id in self._residents:
                self._residents.move_to_end(id)
        parent = self._residents.get(parent_id)
        if parent is not None:
            parent.child_ids[child_id] = None

    def _parent_id(self, id: str) -> str | None:
        resident = self._residents.get(id)
        return None if resident is None else resident.session.view.parent_id

    def _set_policy(self, session: Session, policy: Dict) -> None:
        session.set("settings.workspace_policy", policy)
        _note_workspace(session, "policy_set", **policy)

    def _set_anchor(self, session: Session, anchor: Dict | None) -> None:
        session.set("settings.workspace_anchor", anchor)
        if anchor is None:
            _note_workspace(session, "anchor_cleared")
        else:
            _note_workspace(session, "anchor_set", primary=anchor["primary"])


def _policy(session: Session) -> Dict:
    policy: Dict = session.view.register("settings.workspace_policy", DEFAULT_POLICY)
    return policy


def _note_workspace(session: Session, action: str, **details: Any) -> None:
    event = lifecycle_event("session_workspace", text=action, metadata={"action": action, **details})
    session.record(kinds.TRANSCRIPT_EVENT, event)


def _not_blank(verb: str, name: str, id: str | None) -> None:
    if id is not None and not id.strip():
        raise InvalidArgument(verb, f"`{name}` must not be empty")


def _not_negative(verb: str, name: str, count: int) -> None:
    if count < 0:
        raise InvalidArgument(verb, f"`{name}` must be >= 0")


def _refuse_message(message: Any) -> NoReturn:
    verb = "agent_session_inject"
    if message is None:
        raise InvalidArgument(verb, "`message` required")
    if type(message) is not dict:
        raise InvalidArgument(verb, "message must be a dict")
    raise InvalidArgument(verb, "message must have a string `role` (user|assistant|tool_result|system)")
