"""Which ids sessions on a store may have, new ones and forks. Spec: 10 §C3, §C6."""

from __future__ import annotations

from contextlib import closing, suppress

import pytest

from harnpy.session.errors import InvalidSessionId
from harnpy.session.stored import StoredSession
from harnpy.storage import Store, open_store
from harnpy.world import World

LOOSE = ["a b", "-a", "_a", "ä", "a/b", "a.b", "a\u00a0", "２"]
NEVER = ["", " ", "\u2003", "a\nb", "a\x7f", "a\x9f", "x" * 201]


def made(store: Store, id: str) -> bool:
    """Whether that store has a session of that id when one was to be made of it, anew and as a fork."""
    source = StoredSession.load("source", store, World()) or StoredSession.begin("source", store, World())
    outcomes = set()
    for make in (lambda: StoredSession.begin(id, store, World()), lambda: source.fork(id)):
        with suppress(InvalidSessionId):
            make()
        outcomes.add(store.head("session", id) is not None)
        store.delete("session", id)
    assert len(outcomes) == 1, "a fork is as strict as a new session"
    return outcomes.pop()


def test_the_error_names_the_id(store: Store) -> None:
    with pytest.raises(InvalidSessionId) as caught:
        StoredSession.begin("a\nb", store, World())
    assert (caught.value.code, caught.value.message) == ("invalid_id", "Invalid session ID: a\nb")


def test_strict_ids_are_letters_digits_dashes_and_underscores(url: str) -> None:
    with closing(open_store(f"{url}{'&' if '?' in url else '?'}strict_ids=1")) as store:
        assert store.strict_ids
        assert [id for id in ["a", "A_b-9", "0", "x" * 200] if not made(store, id)] == []
        assert [id for id in LOOSE + NEVER if made(store, id)] == []


def test_other_ids_have_no_control_characters(store: Store) -> None:
    assert not store.strict_ids
    assert [id for id in LOOSE if not made(store, id)] == []
    assert [id for id in NEVER if made(store, id)] == []


@pytest.mark.parametrize("strict", [False, True])
def test_a_store_that_a_thread_writes_is_as_strict(strict: bool) -> None:
    with closing(open_store(f"memory:?durability=async&strict_ids={strict:d}")) as store:
        assert store.strict_ids is strict
        assert made(store, "a b") is not strict


def test_sessions_that_were_there_before_are_opened() -> None:
    with closing(open_store("memory:")) as store:
        StoredSession.begin("a b", store, World())
        store.strict_ids = True  # type: ignore[misc]  # as if it had been opened anew
        found = StoredSession.load("a b", store, World())
        assert found
        assert found.fork("c").id == "c"
