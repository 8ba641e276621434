"""The URLs of stores. Spec: 10 §C6."""

from __future__ import annotations

import pickle

import pytest

from harnpy.storage import StorageError, open_store, opening, register_store
from harnpy.storage.errors import CorruptLog, LeaseHeld, VersionConflict
from harnpy.storage.memory import MemoryStore
from harnpy.storage.opening import parse_url


def test_a_url_is_taken_apart() -> None:
    url = parse_url("sqlite:.harn/sessions.db?durability=relaxed&timeout=2.5&strict_ids=1")
    assert tuple(url) == ("sqlite", ".harn/sessions.db", "relaxed", 2.5, True, False, True, None)
    url = parse_url("postgres://u:p@h/db?sslmode=require&timeout=1")
    assert tuple(url) == ("postgresql", "//u:p@h/db?sslmode=require", "full", 1.0, False, False, True, None)


def test_a_password_is_never_shown() -> None:
    for text in ("postgresql://u:hunter2@h/db", "postgresql://h/db?password=hunter2&user=u"):
        assert "hunter2" not in str(parse_url(text))


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "no store is called ``"),
        ("sessions.db", "begins with one of memory:, jsonl:, sqlite:, postgresql:"),
        ("sqlite:a\0b", "a path or an address has no NUL character"),
        ("redis://u:hunter2@h", "no store is called `redis://u:"),
        ("memory:?durabilty=full", "no option `durabilty`: did you mean `durability`?"),
        ("memory:?x=1", "no option `x`: known are durability, timeout, strict_ids, group"),
        (
            "memory:?durability=none",
            "`durability` of a store's URL is one of full, relaxed, async, not `none`",
        ),
        ("memory:?timeout=soon", "`timeout` of a store's URL is a number of seconds, not `soon`"),
        ("memory:?timeout=-1", "is a number of seconds, not `-1`"),
        ("memory:?strict_ids=yes", "`strict_ids` of a store's URL is 0 or 1, not `yes`"),
    ],
)
def test_a_url_that_names_no_store(url: str, problem: str) -> None:
    with pytest.raises(StorageError) as error:
        open_store(url)
    assert problem in str(error.value)
    assert "hunter2" not in str(error.value)


def test_a_store_of_the_caller_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_OPENERS", dict(opening._OPENERS))
    register_store("mine", MemoryStore)
    assert isinstance(open_store("mine:x"), MemoryStore)


@pytest.mark.parametrize(
    "error", [VersionConflict("s", 1, 2), LeaseHeld("k", "o", 0.0), CorruptLog("p", "bad", 3, 40)]
)
def test_errors_pickle(error: StorageError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)
