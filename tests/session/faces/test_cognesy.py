"""Cognesy's rules on its face: versions, the runtime's order, controllers, values, files.

Spec: 10 §A3.1, §A3.2, §A3.3, §A3.4, §A3.5, §A3.6, §A3.7, §B2.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.faces import cognesy
from harnpy.faces.cognesy import (
    AgentDefinition,
    AgentSession,
    AgentSessionInfo,
    AgentSessionStage,
    ClearSession,
    EventDispatcher,
    FileSessionStore,
    ForkSession,
    HarnSessionStore,
    InMemorySessionStore,
    InvalidSessionFileException,
    PassThroughSessionController,
    SendMessage,
    SessionActionExecuted,
    SessionConflictException,
    SessionFactory,
    SessionHookStack,
    SessionId,
    SessionInfoList,
    SessionLoaded,
    SessionLoadFailed,
    SessionNotFoundException,
    SessionRepository,
    SessionRuntime,
    SessionSaved,
    SessionSaveFailed,
    SessionStatus,
    SuspendSession,
    UpdateTask,
    WriteMetadata,
)
from harnpy.faces.cognesy_sessions import not_new
from harnpy.session import hooks
from harnpy.session.errors import InvalidArgument, InvalidSessionId
from harnpy.session.events import EventDraft
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.formats import export
from harnpy.world import World
from tests.counts import COUNT

NAMES = """
AgentSession AgentSessionInfo SessionId SessionStatus SessionInfoList AgentDefinition DefinitionStateFactory
SessionFactory SessionRepository EventDispatcher SessionRuntime CanExecuteSessionAction SendMessage
SuspendSession ResumeSession ClearSession ForkSession ChangeSystemPrompt ChangeModel WriteMetadata UpdateTask
CanControlAgentSession SessionHookStack PassThroughSessionController SessionLoaded SessionActionExecuted
SessionSaved SessionLoadFailed SessionSaveFailed InMemorySessionStore FileSessionStore CanStoreSessions
SessionNotFoundException SessionConflictException InvalidSessionFileException CanManageAgentSessions
AgentSessionStage AgentCapabilityRegistry DefinitionLoopFactory UseBash
""".split()


def test_every_name_of_the_table_is_on_the_face() -> None:
    assert [name for name in NAMES if name not in cognesy.__all__ or not hasattr(cognesy, name)] == []
    methods = {
        AgentSession: "suspended resumed completed failed deleted with_state reconstitute",
        SessionRepository: "create load save exists delete list_headers",
        SessionRuntime: "execute get_session get_session_info list_sessions create",
        SessionInfoList: "all count is_empty first filter_by_status filter_by_agent_name to_array from_array",
    }
    missing = [
        (owner.__name__, name) for owner, names in methods.items() for name in names.split()
        if not callable(getattr(owner, name, None))
    ]  # fmt: skip
    assert missing == []


@pytest.fixture
def store() -> Iterator[HarnSessionStore]:
    with InMemorySessionStore() as store:
        yield store


@pytest.fixture
def repo(store: HarnSessionStore) -> SessionRepository:
    return SessionRepository(store)


class RedisSessionStore:
    """The document's store of one's own, on a dict."""

    def __init__(self) -> None:
        self._kept: dict[str, AgentSession] = {}

    def create(self, session: AgentSession) -> AgentSession:
        id = str(session.session_id)
        if id in self._kept:
            raise SessionConflictException(id, 0, self._kept[id].version)
        if session.version:
            raise not_new(id, session.version)
        return self._keep(session)

    def save(self, session: AgentSession) -> AgentSession:
        stored = self.load(session.session_id)
        if stored is None:
            raise SessionNotFoundException(str(session.session_id))
        if stored.version != session.version:
            raise SessionConflictException(str(session.session_id), session.version, stored.version)
        return self._keep(session)

    def load(self, session_id: str) -> AgentSession | None:
        return self._kept.get(str(session_id))

    def exists(self, session_id: str) -> bool:
        return str(session_id) in self._kept

    def delete(self, session_id: str) -> None:
        self._kept.pop(str(session_id), None)

    def list_headers(self) -> SessionInfoList:
        return SessionInfoList(session.info for session in self._kept.values())

    def _keep(self, session: AgentSession) -> AgentSession:
        kept = AgentSession.reconstitute(session, session.version + 1, datetime.now(UTC))
        self._kept[str(session.session_id)] = kept
        return kept


@pytest.fixture(params=["harnpy's", "own"])
def either(request: pytest.FixtureRequest, store: HarnSessionStore) -> SessionRepository:
    """A repository on a store of harnpy's, and on one that knows values only."""
    return SessionRepository(store if request.param == "harnpy's" else RedisSessionStore())


def new(id: str = "s", **more: Any) -> AgentSession:
    """A session of version 0."""
    session = SessionFactory().create(AgentDefinition("helper", **more))
    return replace(session, info=replace(session.info, session_id=SessionId(id)))


def test_versions_are_the_stores(repo: SessionRepository) -> None:
    """10 §A3.2: the table, with its texts."""
    first = repo.create(new())
    assert first.version == 1
    with pytest.raises(SessionConflictException, match=r"^Session already exists: 's'$"):
        repo.create(replace(first, info=first.info.with_(version=7)))
    with pytest.raises(SessionConflictException, match=r"^Cannot create session 't' with non-zero version"):
        repo.create(replace(new("t"), info=new("t").info.with_(version=7)))
    assert repo.save(first).version == 2, "a save counts even when nothing has changed"
    with pytest.raises(SessionConflictException, match=r"^Version conflict for session 's'"):
        repo.save(first.suspended())
    assert repo.load("s").status is SessionStatus.ACTIVE
    with pytest.raises(SessionNotFoundException, match=r"^Session not found: 't'$"):
        repo.save(new("t"))
    with pytest.raises(SessionNotFoundException):
        repo.load("t")
    repo.delete("s")
    repo.delete("s")
    assert (repo.exists("s"), repo.store.load("s")) == (False, None)


def test_values(either: SessionRepository) -> None:
    session = new()
    suspended = session.suspended()
    assert (session.status, suspended.status, suspended.version) == ("active", "suspended", 0)
    changed = session.with_state(session.state.with_message({"role": "user", "content": "hi"}))
    assert (session.state.messages, changed.status) == ((), session.status)
    stored = either.create(changed.failed())
    assert (stored.status, stored.state.messages) == ("failed", changed.state.messages)
    assert AgentSessionInfo.from_array(stored.info.to_array()).to_array() == stored.info.to_array()
    listed = either.list_headers()
    assert (listed.first(), listed.is_empty(), len(listed)) == (stored.info, False, 1)
    assert listed.filter_by_status(SessionStatus.ACTIVE).is_empty()
    assert SessionInfoList.from_array(listed.to_array()).filter_by_agent_name("helper").first() is not None
    with pytest.raises(InvalidSessionId, match=r"^Invalid session ID: a/b$"):
        SessionId("a/b")
    assert SessionId.generate() != SessionId.generate()


def test_what_a_definition_gives_wins_over_the_seed(repo: SessionRepository) -> None:
    seed = replace(new().state, system_prompt="seed", metadata={"a": 1, "b": 1})
    plain = SessionFactory().create(AgentDefinition("x", system_prompt=" "), seed)
    rich = SessionFactory().create(
        AgentDefinition("x", system_prompt="own", llm_config={"model": "m"}, metadata={"b": 2}), seed
    )
    assert (plain.state.system_prompt, plain.version) == ("seed", 0)
    assert (rich.state.system_prompt, rich.state.metadata) == ("own", {"a": 1, "b": 2})
    stored = repo.create(rich)
    assert (stored.definition, stored.state.metadata) == (rich.definition, {"a": 1, "b": 2})
    assert stored.state.llm_config == {"model": "m"}


# The runtime.


EVENTS = (SessionLoaded, SessionActionExecuted, SessionSaved, SessionLoadFailed, SessionSaveFailed)


class Recorder:
    """A controller, an action and a listener that write down when they were asked; at ``fails`` it raises."""

    def __init__(self, fails: str = "") -> None:
        self.seen: list[str] = []
        self.fails = fails
        self.events = EventDispatcher()
        for event in EVENTS:
            self.events.add_listener(event, lambda told: self.seen.append(type(told).__name__))

    def _at(self, place: str) -> None:
        self.seen.append(place)
        if place == self.fails:
            raise KeyError(place)

    def on_stage(self, stage: AgentSessionStage, session: AgentSession) -> AgentSession:
        self._at(stage)
        return session

    def execute_on(self, session: AgentSession) -> AgentSession:
        self._at("action")
        return session


ORDER = [
    "after_load", "SessionLoaded", "action", "after_action", "before_save", "SessionActionExecuted",
    "after_save", "SessionSaved",
]  # fmt: skip
TOLD = {"after_load": ["SessionLoadFailed"], "after_save": ["SessionSaveFailed"]}


@pytest.mark.parametrize("fails", ["", "after_load", "action", "after_action", "before_save", "after_save"])
def test_the_order_of_an_execution(either: SessionRepository, fails: str) -> None:
    either.create(new())
    recorder = Recorder(fails)
    with SessionRuntime(either, recorder.events, recorder) as runtime:
        if not fails:
            assert runtime.execute("s", recorder).version == 2
            assert recorder.seen == ORDER
            return
        with pytest.raises(KeyError, match=fails):
            runtime.execute("s", recorder)
    assert recorder.seen == ORDER[: ORDER.index(fails) + 1] + TOLD.get(fails, [])
    assert either.load("s").version == (2 if fails == "after_save" else 1)


def save_elsewhere(repo: SessionRepository, session: AgentSession) -> None:
    """Save a session as another process does."""
    if not isinstance(repo.store, HarnSessionStore):
        repo.save(session)
        return
    theirs = StoredSession.load(str(session.session_id), repo.store.runtime.store, World())
    assert theirs is not None
    facts = {"action": "save", "before_revision": 1, "duration_ms": 0}
    theirs.write(
        EventDraft("action_executed", {**facts, "before_status": "active", "after_status": "active"})
    )


def test_what_is_unknown_or_stale(either: SessionRepository) -> None:
    recorder = Recorder()
    with SessionRuntime(either, recorder.events) as runtime:
        with pytest.raises(SessionNotFoundException):
            runtime.execute("s", SuspendSession())
        with pytest.raises(SessionNotFoundException):
            runtime.get_session("s")
        assert recorder.seen == ["SessionLoadFailed", "SessionLoadFailed"]
        created = runtime.create(AgentDefinition("helper"))
        assert (created.version, recorder.seen[2:]) == (1, ["SessionSaved"])

        class Overtaken(Recorder):
            def execute_on(self, session: AgentSession) -> AgentSession:
                save_elsewhere(either, session)
                return session.suspended()

        with pytest.raises(SessionConflictException):
            runtime.execute(created.session_id, Overtaken())
    assert recorder.seen[-1] == "SessionSaveFailed"
    assert (either.load(created.session_id).version, either.load(created.session_id).status) == (2, "active")


class Stamps:
    """A controller that writes its name into the metadata at some stages."""

    def __init__(self, name: str, *stages: str) -> None:
        self._name, self._stages = name, stages

    def on_stage(self, stage: AgentSessionStage, session: AgentSession) -> AgentSession:
        if stage not in self._stages:
            return session
        seen = session.state.metadata.get("seen", "")
        return session.with_state(session.state.with_metadata("seen", f"{seen}{self._name}"))


def test_what_controllers_change(either: SessionRepository) -> None:
    """10 §A3.3, §A3.4: higher priority first; before the save it is stored, behind it only handed back."""
    either.create(new())
    stack = SessionHookStack.empty().with_(Stamps("a", "after_load", "before_save"))
    stack = stack.with_(Stamps("b", "before_save", "after_save")).with_(
        Stamps("c", "before_save"), priority=5
    )
    assert stack.names == ("Stamps", "Stamps", "Stamps")
    with SessionRuntime(either, controller=stack) as runtime:
        assert runtime.get_session("s").state.metadata == {"seen": "a"}
        assert either.load("s").state.metadata == {}
        assert runtime.execute("s", SuspendSession()).state.metadata == {"seen": "acabb"}
    assert either.load("s").state.metadata == {"seen": "acab"}
    passing = PassThroughSessionController()
    assert passing.on_stage(AgentSessionStage.AFTER_LOAD, new()).status is SessionStatus.ACTIVE


def test_what_an_action_may_give_back(repo: SessionRepository, store: HarnSessionStore) -> None:
    session = repo.create(new())

    class Gives:
        def __init__(self, given: Any) -> None:
            self.given = given

        def execute_on(self, session: AgentSession) -> Any:
            return self.given

    with SessionRuntime(repo) as runtime:
        with pytest.raises(TypeError, match="session 's': expected an AgentSession back, got NoneType"):
            runtime.execute("s", Gives(None))
        with pytest.raises(SessionNotFoundException, match="'other'"):
            runtime.execute("s", ForkSession("other"))
        with pytest.raises(TypeError, match="an action needs a method `execute_on`, str has none"):
            runtime.execute("s", "suspend")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="Only 1 task can be in_progress"):
            UpdateTask([{"content": "x", "status": "in_progress"}] * 2)
        tasks = [{"content": "Write", "activeForm": "Writing"}]
        found = runtime.execute("s", UpdateTask(tasks)).state.metadata["tasks"]
        assert found == [{"content": "Write", "status": "pending", "activeForm": "Writing"}]
        rewritten = session.state.with_messages([{"role": "user", "content": "b"}])
        runtime.execute("s", Gives(session.with_state(session.state.with_message({"content": "a"}))))
        assert runtime.execute("s", Gives(session.with_state(rewritten))).state.messages == rewritten.messages
        assert runtime.execute("s", Gives(session.with_state(session.state))).state.metadata == {}
    assert [event.type for event in store.runtime.get("s").events()].count("history_replaced") == 2


def test_messages_are_sent_outside_a_runtime_too(either: SessionRepository) -> None:
    """An action may be made of others: `SendMessage` on a value needs no runtime."""

    class Greets:
        def execute_on(self, session: AgentSession) -> AgentSession:
            said = SendMessage("Hello", lambda messages: f"{len(messages)} so far").execute_on(session)
            return said.completed()

    either.create(new(system_prompt="Be kind."))
    with SessionRuntime(either) as runtime:
        found = runtime.execute("s", Greets())
        assert [message["content"] for message in found.state.messages] == ["Hello", "1 so far"]
        assert (found.status, found.state.system_prompt) == ("completed", "Be kind.")
        again = runtime.execute("s", ClearSession()).state
        assert (again.messages, again.system_prompt) == ((), "Be kind.")


def test_a_run_that_fails_leaves_the_session_active(repo: SessionRepository) -> None:
    """10 §A3.6: two lifecycles. Whoever sent hears of it, and the next run begins anew."""

    def fails(messages: list[dict[str, Any]]) -> str:
        raise ConnectionError("no model")

    repo.create(new())
    with SessionRuntime(repo) as runtime:
        with pytest.raises(ConnectionError):
            runtime.execute("s", SendMessage("Hello", fails))
        session = runtime.get_session("s")
        assert (session.status, session.state.execution_status) == (SessionStatus.ACTIVE, "failed")
        again = runtime.execute("s", SendMessage("Hello?", lambda messages: f"{len(messages)} seen"))
        assert again.state.messages[-1]["content"] == "2 seen"
        assert (again.state.execution_status, again.state.execution_count) == ("completed", 2)
        assert again.version == session.version + 1


def test_forks_have_their_parents_log(repo: SessionRepository, store: HarnSessionStore) -> None:
    """A fork of a value that was read is made where it was read, whatever its source has become."""
    with SessionRuntime(repo) as runtime:
        repo.create(new())
        source = runtime.execute("s", WriteMetadata("n", 1))
        runtime.execute("s", WriteMetadata("n", 2))
        fork = repo.create(ForkSession("f").execute_on(source.suspended()))
        assert (fork.state.metadata, fork.status, fork.version) == ({"n": 1}, "active", 1)
        info = store.runtime.info("f")
        assert (info.parent_id, info.fork_seq, info.depth) == ("s", source.seq, 1)
        lone = repo.create(ForkSession("g").execute_on(new("elsewhere")))
        assert (lone.info.parent_id, lone.version) == ("elsewhere", 1)


# Processes and files.

STALE = """
import sys
from harnpy.faces.cognesy import HarnSessionStore, SessionConflictException, SessionRepository
repo = SessionRepository(HarnSessionStore(sys.argv[1]))
session = repo.load("s")
print(session.version, flush=True)
sys.stdin.readline()
try:
    print("saved", repo.save(session.suspended()).version)
except SessionConflictException as conflict:
    print(conflict)
"""


@pytest.mark.parametrize("scheme", ["jsonl:{}/sessions", "sqlite:{}/sessions.db"])
def test_of_two_processes_that_loaded_version_5_one_saves_6(scheme: str, tmp_path: Path) -> None:
    url = scheme.format(tmp_path)
    with HarnSessionStore(url) as store:
        session = store.create(new())
        while session.version < 5:
            session = store.save(session)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", STALE, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for each in both:
        assert each.stdout is not None
        assert each.stdout.readline() == "5\n"
    found = sorted(each.communicate("go\n")[0].strip() for each in both)
    assert found == ["Version conflict for session 's': expected revision 5, found 6", "saved 6"]


def test_cognesys_own_files_are_taken_in(
    tmp_path: Path, repo: SessionRepository, store: HarnSessionStore
) -> None:
    """10 §A3.7: `<id>.json`; harnpy's log beside it goes on from its version."""
    with SessionRuntime(repo) as runtime:
        repo.create(new())
        said = runtime.execute("s", SendMessage("Hello", lambda messages: "Hi."))
    (tmp_path / "s.json").write_text(export(store.runtime.get("s"), "cognesy"))
    (tmp_path / "bad.json").write_text('{"header": {')
    with FileSessionStore(str(tmp_path)) as files:
        found = files.load("s")
        assert found is not None
        assert (found.version, found.state.messages) == (said.version, said.state.messages)
        assert files.save(found.completed()).version == said.version + 1
        with pytest.raises(
            InvalidSessionFileException, match=r"^Invalid session file \[.*bad.json\]: Invalid"
        ):
            files.list_headers()
        for text, reason in (
            ("[]", "Missing or invalid header"),
            (json.dumps({"header": {}, "definition": {}}), "Missing or invalid state"),
            (
                json.dumps({"header": {"status": "odd"}, "definition": {}, "state": {}}),
                "Deserialization failed",
            ),
        ):
            (tmp_path / "bad.json").write_text(text)
            with pytest.raises(InvalidSessionFileException, match=reason):
                files.load("bad")
        files.delete("bad")
        assert [info.session_id for info in files.list_headers()] == ["s"]
        files.delete("s")
        assert files.list_headers().is_empty()
    with pytest.raises(TypeError, match="a store of sessions needs a method `create`, object has none"):
        SessionRepository(object())  # type: ignore[arg-type]
    assert set(AgentSessionStage) == set(hooks.STAGES)


# What an action gives back is what is stored.

MESSAGE = st.sampled_from(["user", "assistant"]).flatmap(
    lambda role: (
        st.text(min_size=1, max_size=5).filter(str.strip).map(lambda text: {"role": role, "content": text})
    )
)
CHANGE = st.one_of(
    st.tuples(st.just("say"), MESSAGE),
    st.tuples(st.just("rewrite"), st.lists(MESSAGE, max_size=3)),
    st.tuples(st.just("metadata"), st.sampled_from(["a", "b c", "task"]), st.sampled_from([None, "x", "y"])),
    st.tuples(st.just("prompt"), st.sampled_from(["", "Be kind."])),
    st.tuples(st.just("model"), st.sampled_from([None, "mock", {"model": "m"}])),
    st.tuples(st.just("status"), st.sampled_from([SessionStatus.ACTIVE, SessionStatus.SUSPENDED])),
)


def changed(session: AgentSession, verb: str, *given: Any) -> AgentSession:
    state = session.state
    if verb == "status":
        return session.with_status(given[0])
    return session.with_state({
        "say": state.with_message,
        "rewrite": state.with_messages,
        "metadata": state.with_metadata,
        "prompt": state.with_system_prompt,
        "model": state.with_llm_config,
    }[verb](*given))  # fmt: skip


@settings(max_examples=COUNT.examples(20), deadline=None)
@given(st.lists(st.lists(CHANGE, max_size=4), max_size=4))
def test_what_is_given_back_is_what_is_stored(actions: list[list[tuple[Any, ...]]]) -> None:
    class Does:
        def __init__(self, changes: list[tuple[Any, ...]]) -> None:
            self.changes = changes

        def execute_on(self, session: AgentSession) -> AgentSession:
            for change in self.changes:
                session = changed(session, *change)
            return session

    with InMemorySessionStore() as store, SessionRuntime(SessionRepository(store)) as runtime:
        expected = store.create(new())
        for number, changes in enumerate(actions, 2):
            expected = Does(changes).execute_on(expected)
            known = {key: value for key, value in expected.state.metadata.items() if value is not None}
            expected = expected.with_state(replace(expected.state, metadata=known))
            found = runtime.execute("s", Does(changes))
            assert found == store.load("s")
            assert found.state == replace(expected.state, updated_at=found.state.updated_at)
            assert (found.status, found.version) == (expected.status, number)
