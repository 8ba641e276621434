"""Agently's files of a session, in and out. Spec: 10 §A2.7, §C17."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as sized

from harnpy.session.errors import EventRejected, SessionExists, TransferError, TransferTypeError
from harnpy.session.log import Session
from harnpy.session.transfer import agently
from harnpy.storage import open_store
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.session.rules.provider_rules import assert_accepted
from tests.session.transfer.conversations import EXAMPLES, STEPS, play

HELLO = {"role": "user", "content": "hello"}
HI = {"role": "assistant", "content": "hi"}
#: What C17 says is lost.
LOST = {"artifacts", "branches", "children", "log", "messages before the history", "pins", "tools"}


def load(state: Any, id: str | None = None) -> Any:
    return agently.load_state(state, MemoryStore(), World(), id)


@pytest.mark.parametrize("language", [agently.JSON, agently.YAML])
def test_what_goes_out_comes_in(language: str) -> None:
    @sized(max_examples=EXAMPLES, deadline=None)
    @given(STEPS)
    def check(steps: list[tuple[Any, ...]]) -> None:
        session = play(steps)
        text = agently.dumps(session, language)
        found = load(agently.read_text(text, language))
        assert agently.dump_state(found) == agently.dump_state(session)
        assert (found.messages(), found.history()) == (session.messages(), session.history())
        assert (found.memo, found.status, found.metadata) == (session.memo, session.status, session.metadata)
        kinds = {loss.kind for loss in agently.lost(session)}
        assert kinds <= {
            "artifacts",
            "branches",
            "children",
            "log",
            "messages before the history",
            "pins",
            "tools",
        }
        assert agently.lost(found) == []

    check()


@sized(max_examples=EXAMPLES, deadline=None)
@given(STEPS)
def test_law_agently_itself_reads_what_goes_out(steps: list[tuple[Any, ...]]) -> None:
    from agently.core import Session as Theirs

    session = play(steps)
    for plain in (False, True):
        theirs = Theirs()
        theirs.load_json_session(agently.dumps(session, plain=plain))
        said = [(message.role, message.content) for message in theirs.full_context]
        assert [role for role, _ in said] == [message["role"] for message in session.history()]
        for (_, content), message in zip(said, session.history(), strict=True):
            assert content == (message.get("content") or "")


def test_what_agently_writes() -> None:
    session = load({"id": "a", "full_context": [HELLO], "session_settings": {"max_length": 12}})
    assert agently.dump_state(session, plain=True) == {
        "id": "a",
        "auto_resize": True,
        "full_context": [HELLO],
        "context_window": [HELLO],
        "memo": None,
        "session_settings": {"max_length": 12},
    }
    text = agently.dumps(session, plain=True)
    assert text.startswith('{\n  "id": "a",\n  "auto_resize": true,\n  "full_context": [\n    {\n')
    assert agently.dumps(session, agently.YAML, plain=True).startswith(
        "id: a\nauto_resize: true\nfull_context:\n"
    )


@pytest.mark.parametrize(
    ("state", "full", "window"),
    [
        ({}, [], []),
        ({"full_context": [HELLO, HI]}, [HELLO, HI], [HELLO, HI]),
        ({"full_context": [HELLO, HI], "window_context": [HI]}, [HELLO, HI], [HI]),
        ({"full_context": [HELLO], "window_context": [HI], "context_window": []}, [HELLO], []),
        ({"full_context": [HELLO], "context_window": [HI, HELLO]}, [HELLO], [HI, HELLO]),
        ({"full_context": [HELLO, HI], "context_window": [HELLO]}, [HELLO, HI], [HELLO]),
        ({"context_window": [{"content": "x", "n": 1}]}, [], [{"role": "user", "content": "x", "n": 1}]),
    ],
)
def test_the_two_lists(state: dict[str, Any], full: list[Any], window: list[Any]) -> None:
    session = load(state)
    assert (session.history(), session.messages()) == (full, window)
    assert load(agently.dump_state(session)).messages() == window


def test_keys() -> None:
    settings = {"session.max_length": 5, "settings.input_keys": ["x"], "n": None}
    state = {"id": 7, "auto_resize": False, "memo": {"a": [1]}, "unknown": 1, "session_settings": settings}
    session = load(state)
    assert session.id == "7"
    assert session.memo == {"a": [1]}
    assert agently.dump_state(session)["session_settings"] == {"max_length": 5, "input_keys": ["x"]}
    assert session.get("settings.auto_resize") is False
    assert load(state, "other").id == "other"


def test_a_call_that_only_the_window_has_is_repaired() -> None:
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "f"}}]}
    session = load({"full_context": [HELLO], "context_window": [call, HI]})
    assert session.messages() == [call, HI]
    assert session.window() == [HI]
    assert_accepted(session.window(), "openai")


def test_into_a_session() -> None:
    session = Session.create("s", MemoryStore(), World())
    session.add_history([HELLO, HI])
    session.set("memo", 1)
    agently.load_into(session, {"id": "x", "full_context": [HI, HELLO], "context_window": [HELLO], "memo": 2})
    assert (session.id, session.history(), session.messages()) == ("s", [HI, HELLO], [HELLO])
    assert (session.memo, session.view.registers["memo"].version) == (2, 2)
    assert session.every_message() == [HELLO, HI, HI, HELLO]


@pytest.mark.parametrize(
    ("state", "error", "text"),
    [
        ([], TransferTypeError, "Cannot load JSON Session data, expect dictionary data but got: list"),
        ({"full_context": 1}, TransferTypeError,
         "Cannot load Session data, expect key 'full_context' as a sequence of chat messages."),
        ({"context_window": ["x"]}, TransferTypeError,
         "Cannot load Session data, expect key 'context_window' as a sequence of chat messages."),
        ({"session_settings": []}, TransferTypeError,
         "Cannot load Session data, expect key 'session_settings' as a dictionary."),
        ({"full_context": [{"role": 1}]}, TransferError,
         "message 1 of 'full_context' has a role that is no text"),
        ({"memo": float("nan")}, EventRejected, "session append: data is not JSON: NaN at /value"),
        ({"context_window": [{"content": float("inf")}]}, EventRejected,
         "session append: data is not JSON: Infinity at /content"),
    ],
)  # fmt: skip
def test_what_is_no_session(state: Any, error: type[Exception], text: str) -> None:
    store = open_store("memory:")
    with pytest.raises(error) as caught:
        agently.load_state(state, store, World(), "s")
    assert str(caught.value) == text
    assert store.head("session", "s") is None


def test_an_id_that_is_taken() -> None:
    store = MemoryStore()
    agently.load_state({"id": "s"}, store, World())
    with pytest.raises(SessionExists, match="Session already exists: 's'"):
        agently.load_state({"id": "s"}, store, World())


def test_json5() -> None:
    text = "{id: 'a', // Agently's own\n full_context: [{role: 'user', content: 'x',},],}"
    assert load(agently.read_text(text, agently.JSON)).messages() == [{"role": "user", "content": "x"}]
