"""Session operations equal a simple list model, over long random runs.

The model is written from reference 08 §1 and knows nothing of logs: a session is a list of entries,
``("message", text)`` and lifecycle ``("aside", text)``, in the order in which a transcript shows them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from harnpy.session import SessionError, SessionStore
from harnpy.session.views import replay

CAP = 4
IDS = st.sampled_from(["a", "b", "c", "d", "e", "f", "g"])
COUNTS = st.integers(0, 6)

Entry = tuple[str, str]


@dataclass
class ModelSession:
    entries: list[Entry] = field(default_factory=list)
    parent: str | None = None
    children: list[str] = field(default_factory=list)
    branched_at: int | None = None
    shows_parent: bool = False
    ever: list[str] = field(default_factory=list)
    """Every message that the log must still hold, in order."""

    @property
    def messages(self) -> list[str]:
        return [text for kind, text in self.entries if kind == "message"]


class Model:
    """Sessions in order of use, least recent first."""

    def __init__(self) -> None:
        self.sessions: dict[str, ModelSession] = {}
        self.running: list[str] = []
        self.closed: list[tuple[str, str | None]] = []

    def touch(self, id: str) -> ModelSession:
        session = self.sessions.pop(id)
        self.sessions[id] = session
        return session

    def make_room(self) -> None:
        if len(self.sessions) >= CAP:
            victims = [id for id in self.sessions if id not in self.running]
            if victims:
                self.close(victims[0], "lru_evicted")

    def open(self, id: str) -> None:
        if id in self.sessions:
            self.touch(id)
        else:
            self.make_room()
            self.sessions[id] = ModelSession()

    def close(self, id: str, reason: str | None) -> None:
        del self.sessions[id]
        self.closed.append((id, reason))

    def trim(self, id: str, keep_last: int) -> int:
        session = self.touch(id)
        excess = max(0, len(session.messages) - keep_last)
        kept = []
        for entry in session.entries:
            if entry[0] == "message" and excess:
                excess -= 1
            else:
                kept.append(entry)
        session.entries = kept
        return len(session.messages)

    def fork(self, src: str, dst: str) -> ModelSession:
        source = self.touch(src)
        if dst not in self.sessions:
            self.make_room()
            self.sessions[dst] = ModelSession(ever=list(source.ever))
        child = self.sessions[dst]
        former = self.sessions.get(child.parent or "")
        if former is not None and dst in former.children:
            former.children.remove(dst)
        child.entries = list(source.entries)
        child.parent, child.branched_at, child.shows_parent = src, None, True
        if src in self.sessions:
            parent = self.touch(src)
            if dst not in parent.children:
                parent.children.append(dst)
        return self.touch(dst)

    def fork_at(self, src: str, keep_first: int, dst: str) -> None:
        index = self.branch_index(self.sessions[src].entries, keep_first)
        child = self.fork(src, dst)
        child.entries = child.entries[:index]
        child.branched_at = index

    @staticmethod
    def branch_index(entries: list[Entry], keep_first: int) -> int:
        seen = 0
        for position, (kind, _) in enumerate(entries):
            if seen == keep_first:
                return 0
            seen += kind == "message"
            if seen == keep_first:
                return position + 1
        return len(entries) if keep_first else 0

    def root(self, id: str) -> str:
        seen = [id]
        while id in self.sessions and (parent := self.sessions[id].parent) and parent not in seen:
            id = parent
            seen.append(id)
        return id


class Sessions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = SessionStore(cap=CAP)
        self.model = Model()
        self.closed: list[tuple[str, str | None]] = []
        self.driven: list[tuple[str, AbstractContextManager[None]]] = []
        self.written = 0

    def opened(self, id: str) -> None:
        """Open in both, and listen for the end."""
        fresh = not self.store.exists(id)
        self.store.open(id)
        self.model.open(id)
        if fresh:
            self.listen(id)

    def listen(self, id: str) -> None:
        self.store.subscribe(id, lambda event: self.closed.append((event["session_id"], event["reason"])))

    def known(self, verb: str, id: str) -> bool:
        """Whether the verb may work; if not, that it says so and changes nothing."""
        if id in self.model.sessions:
            return True
        call: dict[str, Any] = {
            "inject": lambda: self.store.inject(id, {"role": "user"}),
            "append_event": lambda: self.store.append_event(id, {"kind": "x"}),
            "trim": lambda: self.store.trim(id, 1),
            "reset": lambda: self.store.reset(id),
            "close": lambda: self.store.close(id),
            "fork": lambda: self.store.fork(id),
            "fork_at": lambda: self.store.fork_at(id, 1),
        }
        with pytest.raises(SessionError, match=f"^agent_session_{verb}: unknown session id '{id}'$"):
            call[verb]()
        return False

    @rule(id=IDS)
    def open(self, id: str) -> None:
        self.opened(id)

    @rule(id=IDS, kinds=st.lists(st.sampled_from(["message", "aside"]), min_size=1, max_size=5))
    def write(self, id: str, kinds: list[str]) -> None:
        if not (self.known("inject", id) and self.known("append_event", id)):
            return
        for kind in kinds:
            self.written += 1
            text = f"{kind} {self.written}"
            session = self.model.touch(id)
            session.entries.append((kind, text))
            if kind == "message":
                self.store.inject(id, {"role": "user", "content": text})
                session.ever.append(text)
            else:
                self.store.append_event(id, {"kind": "note", "text": text})

    @rule(id=IDS, keep=COUNTS)
    def trim(self, id: str, keep: int) -> None:
        if self.known("trim", id):
            assert self.store.trim(id, keep) == self.model.trim(id, keep)

    @rule(id=IDS)
    def reset(self, id: str) -> None:
        if self.known("reset", id):
            self.store.reset(id)
            session = self.model.touch(id)
            session.entries, session.shows_parent = [], False

    @rule(src=IDS, dst=IDS)
    def fork(self, src: str, dst: str) -> None:
        if self.known("fork", src) and src != dst:
            fresh = not self.store.exists(dst)
            assert self.store.fork(src, dst) == dst
            self.model.fork(src, dst)
            if fresh:
                self.listen(dst)

    @rule(src=IDS, dst=IDS, keep=COUNTS)
    def fork_at(self, src: str, dst: str, keep: int) -> None:
        if self.known("fork_at", src) and src != dst:
            fresh = not self.store.exists(dst)
            assert self.store.fork_at(src, keep, dst) == dst
            self.model.fork_at(src, keep, dst)
            if fresh:
                self.listen(dst)

    @rule(id=IDS, reason=st.sampled_from([None, "timeout"]))
    def close(self, id: str, reason: str | None) -> None:
        if self.known("close", id):
            self.store.close(id, reason)
            self.model.close(id, reason)

    @rule(id=IDS)
    def drive(self, id: str) -> None:
        context = self.store.enter(id)
        context.__enter__()
        self.driven.append((id, context))
        self.model.running.append(id)

    @precondition(lambda self: self.driven)
    @rule()
    def leave(self) -> None:
        _, context = self.driven.pop()
        context.__exit__(None, None, None)
        self.model.running.pop()

    @rule(id=IDS, call=st.sampled_from(["role", "negative", "blank", "option", "status", "self"]))
    def call_wrongly(self, id: str, call: str) -> None:
        versions = self.versions()
        calls: dict[str, Any] = {
            "role": lambda: self.store.inject(id, {"content": "x"}),
            "negative": lambda: self.store.trim(id, -1),
            "blank": lambda: self.store.fork_at(id, 1, " "),
            "option": lambda: self.store.open(id, {"workspace_policy": {"default_mount_mode": "x"}}),
            "status": lambda: self.store.close(id, {"reason": 1}),
            "self": lambda: self.store.fork(id, id),
        }
        with pytest.raises(SessionError):
            calls[call]()
        assert self.versions() == versions

    def versions(self) -> list[tuple[str, int]]:
        sessions = [self.store.session(id) for id in self.store.ids()]
        return [(session.id, session.version) for session in sessions if session]

    @invariant()
    def the_registry_is_the_models(self) -> None:
        assert self.store.ids() == list(self.model.sessions)
        assert self.store.current_id() == (self.model.running[-1] if self.model.running else None)
        assert self.closed == self.model.closed

    @invariant()
    def every_transcript_is_the_models(self) -> None:
        for id, model in self.model.sessions.items():
            snapshot = self.store.snapshot_value(id)
            assert snapshot
            shown = [
                ("message" if event["kind"] == "message" else "aside", event["text"])
                for event in snapshot["events"]
            ]
            assert shown == model.entries
            assert [message["content"] for message in snapshot["messages"]] == model.messages
            assert snapshot["length"] == self.store.length(id) == len(model.messages)
            assert snapshot.get("metadata") == (
                {"parent_session_id": model.parent} if model.shows_parent else None
            )
            assert snapshot["branched_at_event_index"] == model.branched_at
            assert self.store.ancestry(id) == {
                "parent_id": model.parent,
                "child_ids": model.children,
                "root_id": self.model.root(id),
            }
            assert len({event["id"] for event in snapshot["events"]}) == len(shown)

    @invariant()
    def every_view_follows_from_its_log(self) -> None:
        for id, model in self.model.sessions.items():
            session = self.store.session(id)
            assert session
            events = session.events()
            assert [event.seq for event in events] == list(range(1, session.version + 1))
            assert {event.session_id for event in events} == {id}
            live, again = session.view, replay(events)
            assert again.transcript(id) == live.transcript(id)
            for name in ("registers", "created", "parent_id", "linked_at", "cleared_at", "branched_at"):
                assert getattr(again, name) == getattr(live, name)
            logged = [event.data["content"] for event in events if event.type == "message_added"]
            assert logged == model.ever

    def teardown(self) -> None:
        while self.driven:
            self.leave()


TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=60, stateful_step_count=120, deadline=None)
