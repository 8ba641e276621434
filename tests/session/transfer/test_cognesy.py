"""Cognesy's files of a session, in and out. Spec: 10 §A3, §C17."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from harnpy.session.errors import InvalidArgument, TransferError
from harnpy.session.log import Session
from harnpy.session.stored import StoredSession
from harnpy.session.transfer import cognesy
from harnpy.session.transfer.blocks import shape_of
from harnpy.storage import open_store
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.session.transfer.conversations import EXAMPLES, STEPS, play

#: What C17 says is lost.
LOST = {"artifacts", "branches", "children", "cuts", "log", "memo", "messages before the history", "name",
        "pins", "registers", "settings", "tools"}  # fmt: skip


def load(file: Any, id: str | None = None) -> StoredSession:
    return cognesy.load_file(file, MemoryStore(), World(), id)


@settings(max_examples=EXAMPLES, deadline=None)
@given(STEPS)
def test_what_goes_out_comes_in(steps: list[tuple[Any, ...]]) -> None:
    session = play(steps)
    out = json.loads(cognesy.dumps(session))
    found = load(out)
    again = cognesy.dump_file(found)
    assert (again["header"], again["definition"]) == (out["header"], out["definition"])
    assert (found.id, found.history()) == (session.id, session.history())
    assert (found.metadata, found.task) == (session.metadata, session.task)
    assert (found.revision, found.status) == (session.revision, session.status)
    ours, theirs = found.info, session.info
    assert (ours.definition, ours.agent_name) == (theirs.definition, theirs.agent_name)
    assert {loss.kind for loss in cognesy.lost(session)} <= LOST
    assert {loss.kind for loss in cognesy.lost(found)} == {"name"}


def message(seconds: int, id: str, role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "createdAt": f"2026-01-05T09:30:{seconds}+00:00",
        "role": role,
        "content": content,
        **more,
    }


CALL = {"id": "c", "name": "ls", "arguments": {"p": "."}}
RESULT = {"content": "f", "call_id": "c", "tool_name": "ls", "is_error": True}
MESSAGES = [
    message(10, "m1", "user", "Go"),
    message(20, "m2", "assistant", "", tool_calls=[CALL]),
    message(30, "m3", "tool", "f", _metadata={"tool_result": RESULT}),
    {
        "id": "m3",
        "role": "assistant",
        "content": [{"type": "text", "text": "Done."}],
        "_metadata": {"score": 1},
    },
]
#: As Cognesy writes it.
FILE: dict[str, Any] = {
    "header": {
        "sessionId": "0b6b1c1e-1111-4222-8333-444455556666",
        "parentId": "parent-1",
        "status": "suspended",
        "version": 5,
        "agentName": "reviewer",
        "agentLabel": "Reviewer",
        "createdAt": "2026-01-05T09:30:00+00:00",
        "updatedAt": "2026-01-05T10:31:05+01:00",
    },
    "definition": {
        "name": "reviewer",
        "description": "Reviews code",
        "systemPrompt": "Review.",
        "label": "Reviewer",
        "llmConfig": "openai/gpt",
        "capabilities": ["bash"],
        "tools": None,
        "toolsDeny": ["rm"],
        "skills": None,
        "budget": {"maxSteps": 5, "maxTokens": None, "deadline": None},
        "metadata": {"team": "a"},
    },
    "state": {
        "agentId": "a",
        "parentAgentId": None,
        "createdAt": "2026-01-05T09:30:00+00:00",
        "updatedAt": "2026-01-05T09:31:05+00:00",
        "context": {
            "metadata": {"project": "x", "tasks": [{"content": "Write", "status": "in_progress"}]},
            "systemPrompt": "Be brief.",
            "responseFormat": None,
            "messageStore": {
                "sections": [
                    {
                        "name": "messages",
                        "messages": MESSAGES,
                    }
                ],
                "parameters": {},
            },
        },
        "llmConfig": {"model": "small"},
        "executionCount": 1,
        "execution": None,
    },
}  # fmt: skip


HEADER, STATE = "Missing or invalid header", "Missing or invalid state"


def changed(path: str, value: Any) -> dict[str, Any]:
    """The file with another value at a dot path; None takes it out."""
    file: dict[str, Any] = json.loads(json.dumps(FILE))
    *keys, last = path.split(".")
    part = file
    for key in keys:
        part = part[key]
    if value is None:
        part.pop(last)
    else:
        part[last] = value
    return file


def test_a_file_of_cognesy() -> None:
    session = load(FILE)
    info = session.info
    assert (session.id, info.parent_id, info.status, info.revision) == (
        FILE["header"]["sessionId"], "parent-1", "suspended", 5,
    )  # fmt: skip
    assert (info.agent_name, info.agent_label) == ("reviewer", "Reviewer")
    assert (info.created_at, info.updated_at) == (
        "2026-01-05T09:30:00.000000Z",
        "2026-01-05T09:31:05.000000Z",
    )
    assert info.definition == {
        "name": "reviewer", "description": "Reviews code", "system_prompt": "Review.", "label": "Reviewer",
        "model": "openai/gpt", "capabilities": ["bash"], "denied_tools": ["rm"], "budget": {"max_steps": 5},
        "metadata": {"team": "a"},
    }  # fmt: skip
    assert session.messages() == [
        {"role": "user", "content": "Go"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "name": "ls", "arguments": {"p": "."}}],
        },
        {"role": "tool", "content": "f", "tool_call_id": "c", "name": "ls", "is_error": True},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "metadata": {"score": 1}},
    ]
    assert session.window() == session.messages()
    assert (session.get("system_prompt"), session.get("model")) == ("Be brief.", {"model": "small"})
    assert session.metadata == {"project": "x"}
    assert session.tasks.render() == "1. ◐ Write"
    ids = [event.id for event in session.events() if event.type == "message_added"]
    assert ids[:3] == ["m1", "m2", "m3"]
    assert ids[3] != "m3"


def test_the_next_save_is_the_next_version() -> None:
    session = load(FILE)
    session.set("memo", 1)
    assert session.revision == 6
    assert cognesy.dump_file(session)["header"]["version"] == 6


@pytest.mark.parametrize("store", [{"parameters": {}}, MESSAGES[:1]])
def test_older_forms(store: Any) -> None:
    file = changed("state.context.messageStore", store)
    file["definition"] = {"title": "Reviewer", "name": "reviewer"}
    session = load(file)
    assert session.messages() == ([] if isinstance(store, dict) else [{"role": "user", "content": "Go"}])
    assert session.info.definition is None
    assert session.info.agent_label == "Reviewer"


@pytest.mark.parametrize("without", [False, True])
def test_a_running_execution_is_an_open_turn(without: bool) -> None:
    file = changed("state.execution", {"status": "in_progress"})
    if without:
        file["state"]["context"]["messageStore"] = []
    session = load(file)
    assert session.execution_status == "in_progress"
    assert len(session.view.open_turns) == 1
    assert len(session.messages()) == (0 if without else 4)


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("header", None, "Missing or invalid header"),
        ("definition", [], "Missing or invalid definition"),
        ("state", 1, "Missing or invalid state"),
        ("header.sessionId", None, f"{HEADER}: there is no 'sessionId'"),
        ("header.version", "5", f"{HEADER}: 'version' is '5'"),
        (
            "header.createdAt",
            "x",
            "Missing or invalid header: 'createdAt': 'x' is no RFC 3339 time stamp",
        ),
        ("header.status", "gone", 'unknown status "gone"'),
        (
            "state.context.messageStore",
            "x",
            f"{STATE}: 'messageStore' is no list of messages",
        ),
        ("state.context.messageStore", [{"content": "x"}], "message 1 can't be read: it has no role"),
        ("state.context.metadata", {"tasks": [{}]}, "'content' is required"),
    ],
)
def test_what_is_no_session(path: str, value: Any, text: str) -> None:
    store = open_store("memory:")
    with pytest.raises((TransferError, InvalidArgument)) as caught:
        cognesy.load_file(changed(path, value), store, World(), "s" if path != "header.sessionId" else None)
    assert str(caught.value) == text
    assert store.head("session", "s") is None


@pytest.mark.parametrize(
    ("id", "name"),
    [("a-B_1", "a-B_1"), ("a b", "a-b-c8687a08"), ("../x", "x-"), ("-a", "a-"), ("ä", "session-")],
)
def test_ids_that_cognesy_refuses(id: str, name: str) -> None:
    session = Session.create(id, MemoryStore(), World())
    assert cognesy.cognesy_id(id).startswith(name)
    file = cognesy.dump_file(session)
    assert file["header"]["sessionId"] == cognesy.cognesy_id(id)
    assert load(file).id == id
    assert [loss.kind for loss in cognesy.lost(session)] == (["name"] if id != name else [])


def test_an_image_in_a_tools_result_is_told() -> None:
    image = {"type": "image", "base64": "iVBORw==", "media_type": "image/png"}
    content = [{"type": "text", "text": "seen:"}, image]
    for result in (
        {"role": "tool", "tool_call_id": "a", "content": content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": content}]},
    ):
        assert shape_of(result).results[0].text == "seen:\n[image: image/png, 4 bytes, left out]"
