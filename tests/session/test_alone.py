"""A session by itself: no runtime, no file, no event loop (10 §C3.2)."""

from __future__ import annotations

import pytest

from harnpy.session import EventNotFound, InvalidArgument, Session, SessionExists
from harnpy.session.errors import InvalidSessionId


def test_it_has_an_id_and_settings_and_nobody_saved_it() -> None:
    session = Session(settings={"max_length": 100})
    session.add_history([{"content": "a"}, {"role": "assistant", "content": "b"}])
    session.set_memo({"n": 1})
    assert session.id != Session().id
    assert session.get("settings.max_length") == 100
    assert [message["content"] for message in session.messages()] == ["a", "b"]
    assert (session.memo, session.status, session.revision) == ({"n": 1}, "active", 0)


def test_it_says_when_it_does_not_resize_by_itself() -> None:
    assert Session("s").events()[0].data == {"depth": 0}
    assert Session("s", auto_resize=False).events()[0].data == {"depth": 0, "auto_resize": False}


def test_a_fork_says_where_and_why_it_was_made() -> None:
    session = Session("s")
    session.add_history([{"content": "a"}, {"content": "b"}])
    fork = session.fork("f", at=2, label="shorter", reason="try again")
    fork.add_history({"content": "c"})
    assert [message["content"] for message in fork.messages()] == ["a", "c"]
    assert (session.length, fork.seq, fork.revision) == (2, 3, 0)
    created = fork.events()[0].data
    assert created == {
        "depth": 1,
        "parent_session_id": "s",
        "fork_point_event_id": session.events()[1].id,
        "fork_point_seq": 2,
        "branch_label": "shorter",
        "fork_reason": "try again",
    }


def test_a_fork_has_a_point_and_an_id_of_its_own() -> None:
    session = Session("s")
    for at in (0, 2, -1):
        with pytest.raises(EventNotFound, match=f"'{at}'"):
            session.fork("f", at=at)
    session.fork("f")
    with pytest.raises(SessionExists, match="Session already exists: 'f'"):
        session.fork("f")


@pytest.mark.parametrize("id", ["", " ", "a\n", "x" * 201])
def test_an_id_that_no_store_could_keep_is_refused(id: str) -> None:
    with pytest.raises(InvalidSessionId) as caught:
        Session(id)
    assert str(caught.value) == f"Invalid session ID: {id}"


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(InvalidArgument):
        Session().set("setings.max_length", 1)
