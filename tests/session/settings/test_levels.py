"""Settings: a session's own, its agent's, the runtime's, the default. Spec: 10 §C8.1."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.session import AgentDef, InvalidArgument, Session, SessionRuntime
from harnpy.session.registers import Level
from harnpy.session.resize import Resizing
from harnpy.session.resize_policy import ResizePolicy
from harnpy.session.transfer import agently
from harnpy.storage import Store
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.session.shapes import said

TALK = [said("user", f"message {number}") for number in range(4)]


def inheriting(agent: Level, runtime: Level, policy: ResizePolicy | None = None) -> Session:
    session = Session()
    session.resizing = Resizing(policy or ResizePolicy(), (runtime,), agent=agent)
    return session


def test_a_change_at_any_level_reaches_the_sessions_that_live() -> None:
    agent, runtime = Level(), Level()
    policy = ResizePolicy(max_length=160)
    one, other = inheriting(agent, runtime, policy), inheriting(Level(), runtime, policy)

    def lengths() -> list[int]:
        for session in (one, other):
            session.add_history(TALK)
        return [session.length for session in (one, other)]

    written = one.seq
    assert lengths() == [4, 4], "the default"
    runtime["max_length"] = 120
    assert lengths() == [3, 3]
    agent["session.max_length"] = 80
    assert lengths() == [2, 3]
    one.set("settings.max_length", 40)
    assert lengths() == [1, 3]
    agent["max_length"] = None
    assert lengths() == [1, 3], "the session's own counts first"
    one.set("settings.max_length", None)
    assert lengths() == [3, 3]
    del runtime["settings.max_length"]
    assert lengths() == [4, 4]
    registers = [event for event in one.events(written) if event.type == "register_set"]
    assert len(registers) == 2, "the levels write nothing into the log"


def test_a_definition_has_settings_as_they_were_when_the_session_was_created() -> None:
    """They stand between the agent's extension and the runtime."""
    definition = {"name": "clerk", "settings": {"session.max_length": 80, "own": [1]}}
    state = {"id": "s", "harn": {"agent_name": "clerk", "definition": definition}}
    session = agently.load_state(state, MemoryStore(), World())
    agent, runtime = Level(), Level({"max_length": 10, "n": 1})
    session.resizing = Resizing(ResizePolicy(max_length=20), (runtime,), agent=agent)
    assert dict(session.settings) == {"max_length": 80, "own": [1], "n": 1}
    assert session.fork("f").settings["settings.max_length"] == 80
    agent["max_length"] = 40
    assert session.settings["max_length"] == 40
    session.set("settings.max_length", 30)
    assert session.settings["max_length"] == 30


@pytest.mark.parametrize("definition", [None, {"name": "x"}, {"settings": None}, {"settings": [1]}])
def test_a_definition_without_settings_has_none(definition: Any) -> None:
    state = {"id": "s", "harn": {"agent_name": "clerk", "definition": definition}}
    assert dict(agently.load_state(state, MemoryStore(), World()).settings) == {}


def test_actions_go_by_the_settings_of_the_sessions_definition(store: Store) -> None:
    with SessionRuntime(store, settings={"max_length": 10}) as runtime:
        id = runtime.create(AgentDef("clerk", settings={"session.max_length": 80})).id
        session = runtime.execute(id, lambda txn: txn.add_history(TALK))
        assert (session.length, len(session.history())) == (2, 4)
    with SessionRuntime(store) as runtime:
        assert runtime.get(id).settings["max_length"] == 80


def test_whether_it_is_resized_by_itself_is_a_setting_too() -> None:
    agent, runtime = Level(), Level({"max_length": 40})
    session = inheriting(agent, runtime)
    for key, value, length in (("agent", False, 4), ("runtime", True, 4), ("agent", None, 1)):
        (agent if key == "agent" else runtime)["auto_resize"] = value
        session.set_history(TALK)
        assert session.length == length
    session.set("settings.auto_resize", False)
    session.set_history(TALK)
    assert session.length == 4
    by_hand = Session(auto_resize=False, settings={"max_length": 40})
    by_hand.add_history(TALK)
    assert by_hand.length == 4
    assert by_hand.resize() is not None
    assert by_hand.length == 1
    by_hand.set("settings.auto_resize", True)
    by_hand.add_history(TALK)
    assert by_hand.length == 1


def test_three_ways_to_write_a_key() -> None:
    level = Level({"session.max_length": 3, "settings.mine": [1]})
    assert dict(level) == {"max_length": 3, "mine": [1]}
    session = Session(settings={"session.max_length": 5, "own": {"a": 1}})
    session.resizing = Resizing(ResizePolicy(), (level,))
    for key in ("max_length", "settings.max_length", "session.max_length"):
        assert session.settings[key] == 5
        assert level[key] == 3
    assert dict(session.settings) == {"max_length": 5, "own": {"a": 1}, "mine": [1]}
    assert len(session.settings) == 3
    assert session.settings.get("nothing") is None
    session.settings["own"]["a"] = 2
    assert session.settings["own"] == {"a": 1}, "values are copies"


def test_a_fork_inherits_what_the_session_does() -> None:
    runtime = Level()
    session = inheriting(Level(), runtime)
    fork = session.fork()
    runtime["max_length"] = 40
    fork.add_history(TALK)
    assert fork.length == 1


def test_a_limit_that_is_no_number_limits_nothing() -> None:
    """An import takes settings over as they are."""
    session = Session()
    agently.load_into(session, {"full_context": TALK, "session_settings": {"max_length": "40"}})
    assert session.settings["max_length"] == "40"
    session.add_history(TALK)
    assert session.length == 8


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("max_length", -1, "setting 'max_length' must be an int >= 0 or none, got -1"),
        ("max_length", "9", "setting 'max_length' must be an int >= 0 or none, got '9'"),
        ("max_length", True, "setting 'max_length' must be an int >= 0 or none, got True"),
        ("auto_resize", 1, "setting 'auto_resize' must be a bool or none, got 1"),
        ("input_keys", 3, "setting 'input_keys' must be a string, a list or none, got 3"),
        ("reply_keys", {}, "setting 'reply_keys' must be a string, a list or none, got {}"),
    ],
)
def test_known_settings_are_checked(key: str, value: Any, text: str) -> None:
    session, level = Session(), Level()
    for call in (
        lambda: session.set(f"settings.{key}", value),
        lambda: level.update({f"session.{key}": value}),
        lambda: Session(settings={key: value}),
    ):
        with pytest.raises(InvalidArgument) as caught:
            call()
        assert str(caught.value) == f"set: {text}"
    assert session.get(f"settings.{key}") is None
    assert not level
    session.set(f"settings.{key}", None)
