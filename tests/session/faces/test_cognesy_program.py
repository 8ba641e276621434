"""The program of Cognesy's document of its session runtime, translated line by line. Spec: 10 §A3, §B2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harnpy.faces.cognesy import (
    AgentCapabilityRegistry,
    AgentDefinition,
    AgentSession,
    AgentSessionStage,
    ChangeModel,
    ChangeSystemPrompt,
    ClearSession,
    DefinitionLoopFactory,
    DefinitionStateFactory,
    EventDispatcher,
    FileSessionStore,
    ForkSession,
    HarnSessionStore,
    InMemorySessionStore,
    LLMConfig,
    ResumeSession,
    SendMessage,
    SessionActionExecuted,
    SessionConflictException,
    SessionFactory,
    SessionHookStack,
    SessionRepository,
    SessionRuntime,
    SessionSaveFailed,
    SessionStatus,
    SuspendSession,
    UpdateTask,
    UseBash,
    WriteMetadata,
)


class ArchiveSession:
    """The document's own action."""

    def __init__(self, archive_reason: str) -> None:
        self._archive_reason = archive_reason

    def execute_on(self, session: AgentSession) -> AgentSession:
        state = session.state.with_metadata("archive_reason", self._archive_reason)
        return session.with_state(state).completed()


class AutoSuspend:
    """The document's own controller."""

    def on_stage(self, stage: AgentSessionStage, session: AgentSession) -> AgentSession:
        match stage:
            case AgentSessionStage.BEFORE_SAVE:
                return session.suspended()
            case _:
                return session


DEFINITION = AgentDefinition(
    name="assistant",
    description="A helpful general assistant",
    system_prompt="You are a helpful assistant. Be concise and accurate.",
    llm_config="mock",
)


@pytest.fixture(params=["memory", "file", "sqlite"])
def sessions(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HarnSessionStore]:
    """The stores of the document, and one of harnpy's."""
    directory = tmp_path / "data" / "sessions"
    stores: dict[str, Any] = {
        "memory": InMemorySessionStore,
        "file": lambda: FileSessionStore(str(directory)),
        "sqlite": lambda: HarnSessionStore(f"sqlite:{tmp_path / 'sessions.db'}"),
    }
    with stores[request.param]() as store:
        yield store


def test_the_document(sessions: HarnSessionStore) -> None:
    # Quick start.
    state_factory = DefinitionStateFactory()
    session_factory = SessionFactory(state_factory)
    repo = SessionRepository(sessions)
    events = EventDispatcher("session-runtime")
    runtime = SessionRuntime(repo, events)
    session = repo.create(session_factory.create(DEFINITION))
    assert session.version == 1

    log: list[str] = []
    events.add_listener(
        SessionActionExecuted,
        lambda e: log.append(
            f"Session {e.session_id}: {e.action} executed, version {e.before_version} -> {e.after_version}"
        ),
    )
    events.add_listener(
        SessionSaveFailed, lambda e: log.append(f"Session {e.session_id}: save failed - {e.error}")
    )

    capabilities = AgentCapabilityRegistry()
    capabilities.register("use_bash", UseBash())
    loop_factory = DefinitionLoopFactory(capabilities, events=events)
    loop_factory.mock.add({"text": "4"})
    loop_factory.mock.add({"text": "It is handed what it needs."})
    seen: list[str] = []
    events.add_agent_listener(lambda event: seen.append(event["type"]))
    updated = runtime.execute(session.session_id, SendMessage("What is 2 + 2?", loop_factory))
    assert loop_factory.mock.calls()[0]["system"] == DEFINITION.system_prompt
    assert seen == ["turn_start", "iteration_start", "iteration_end"]
    said = [message["content"] for message in updated.state.messages]
    assert (said, updated.version) == (["What is 2 + 2?", "4"], 2)
    assert (updated.state.execution_status, updated.status) == ("completed", SessionStatus.ACTIVE)

    # Built-in actions.
    session_id = session.session_id
    runtime.execute(
        session_id, SendMessage(message="Explain how dependency injection works.", loop_factory=loop_factory)
    )
    assert runtime.execute(session_id, SuspendSession()).status is SessionStatus.SUSPENDED
    assert runtime.execute(session_id, ResumeSession()).status is SessionStatus.ACTIVE
    cleared = runtime.execute(session_id, ClearSession())
    assert (cleared.state.messages, cleared.state.execution_status) == ((), "pending")
    assert (cleared.definition, cleared.session_id) == (DEFINITION, session_id)

    source = runtime.get_session(session_id)
    forked = ForkSession().execute_on(source)
    assert (forked.version, repo.exists(forked.session_id)) == (0, False)
    forked = repo.create(forked)
    assert (forked.info.parent_id, forked.version, forked.definition) == (session_id, 1, DEFINITION)

    prompt = "You are concise and direct. Respond in bullet points."
    assert runtime.execute(session_id, ChangeSystemPrompt(prompt)).state.system_prompt == prompt
    config = LLMConfig.from_array({"driver": "openai", "model": "gpt-4o"})
    model = runtime.execute(session_id, ChangeModel(config)).state.llm_config
    assert model == {"provider": "openai", "model": "gpt-4o"}
    runtime.execute(session_id, WriteMetadata("ticket_id", "OPS-142"))
    runtime.execute(session_id, WriteMetadata("priority", "high"))
    task = "Refactor the authentication module"
    final = runtime.execute(session_id, UpdateTask(task)).state.metadata
    assert final == {"ticket_id": "OPS-142", "priority": "high", "task": task}

    # Conflicts.
    stale = repo.load(session_id)
    runtime.execute(session_id, WriteMetadata("priority", "low"))
    with pytest.raises(SessionConflictException, match=f"Version conflict for session '{session_id}'"):
        repo.save(stale)
    fresh = runtime.get_session(session_id)
    assert (fresh.version, fresh.state.metadata["priority"]) == (stale.version + 1, "low")

    # Controllers.
    hooks = SessionHookStack.empty().with_(AutoSuspend(), priority=100)
    guarded = SessionRuntime(repo, events, hooks)
    assert guarded.execute(session_id, WriteMetadata("a", 1)).status is SessionStatus.SUSPENDED

    # Custom actions.
    archived = guarded.execute(session_id, ResumeSession())
    assert archived.status is SessionStatus.SUSPENDED  # the controller has the last word
    archived = runtime.execute(session_id, ArchiveSession("Ticket resolved"))
    assert archived.status is SessionStatus.COMPLETED
    assert archived.state.metadata["archive_reason"] == "Ticket resolved"

    assert log[:3] == [
        f"Session {session_id}: SendMessage executed, version 1 -> 2",
        f"Session {session_id}: SendMessage executed, version 2 -> 3",
        f"Session {session_id}: SuspendSession executed, version 3 -> 4",
    ]
    assert len(log) == archived.version - 1, "each save was told of"
    assert repo.load(session_id) == archived
    headers = {info.session_id: (info.status, info.version) for info in runtime.list_sessions()}
    assert headers == {session_id: ("completed", archived.version), forked.session_id: ("active", 1)}
    runtime.close()
    guarded.close()


def test_a_definition_with_a_capability() -> None:
    """The tool that `UseBash` brings is the definition's, its calls are in the log."""
    with InMemorySessionStore() as store, SessionRuntime(SessionRepository(store)) as runtime:
        shell = AgentDefinition("shell", llm_config="mock", capabilities=("use_bash",), tools=("bash",))
        session = runtime.create(shell)
        loops = DefinitionLoopFactory(AgentCapabilityRegistry().register("use_bash", UseBash()))
        loops.mock.add({"tool_calls": [{"name": "bash", "arguments": {"command": "echo $((40 + 2))"}}]})
        loops.mock.add({"text": "It is 42."})
        state = runtime.execute(session.session_id, SendMessage("Compute it.", loops)).state
        assert [message["role"] for message in state.messages] == ["user", "assistant", "tool", "assistant"]
        assert "42" in state.messages[2]["content"]
        assert (state.execution_count, state.execution_status) == (1, "completed")
        assert runtime.get_session(session.session_id).definition == shell
        types = [event.type for event in store.runtime.get(session.session_id).events()]
        assert types.count("tool_completed") == 1
