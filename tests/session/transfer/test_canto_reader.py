"""A reader of Canto's logs, written from their description alone, shows of an export what harnpy shows.

Spec: 10 §A1.8, §C17.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings

from harnpy.session import Session
from harnpy.session import events as kinds
from harnpy.session.transfer.canto import message_to_canto
from harnpy.session.transfer.formats import export, import_
from harnpy.storage import Store
from harnpy.storage.memory import MemoryStore
from tests.session.shapes import calling, tool
from tests.session.transfer.canto_reader import effective_messages
from tests.session.transfer.conversations import EXAMPLES, STEPS, play, take

#: What Canto is shown where nothing is left, as a snapshot of nothing counts for nothing.
RESET = "<conversation_summary>\nThe conversation was reset.\n</conversation_summary>"


def window(session: Session) -> list[dict[str, Any]]:
    return [form for message in session.window() for form in message_to_canto(message)]


def read(session: Session) -> list[dict[str, Any]]:
    found = effective_messages(export(session, "canto"))
    return [message for message in found if message["content"] != RESET]


@pytest.mark.parametrize(
    "steps",
    [
        [("turn", "a"), ("rewind",), ("snapshot",)],
        [("turn", "a"), ("rewind",), ("say", 0, "b"), ("trim", 0)],
        [("say", 0, "a"), ("turn", "b"), ("rewind",), ("trim", 1), ("say", 0, "c")],
        [("say", 6, "a"), ("say", 7, "b"), ("snapshot",)],
        [("say", 0, "a"), ("say", 2, "b"), ("say", 0, "c")],
        [("say", 3, "a"), ("snapshot",), ("reset",), ("say", 0, "b")],
        [("say", 0, "a"), ("turn", "b"), ("rewind",), ("turn", "c"), ("rewind",), ("say", 0, "d")],
        [("say", 0, "a"), ("say", 0, "b"), ("move", 1, "tried"), ("turn", "c"), ("rewind",)],
        [("turn", "a"), ("move", 1, None)],
        [("say", 6, "a"), ("snapshot",), ("say", 7, "b"), ("say", 0, "c")],
        [("say", 0, "a"), ("pin", 0), ("trim", 0), ("turn", "b"), ("reset",), ("rewind",)],
        [("say", 0, "a"), ("say", 0, "b"), ("trim", 1), ("pin", 0), ("say", 0, "c")],
        [("say", 8, "a"), ("note", 0, "b"), ("say", 9, "c")],
        [("say", 8, "a"), ("say", 4, "b"), ("say", 9, "c")],
        [("say", 0, "a"), ("say", 8, "b"), ("trim", 1), ("say", 9, "c"), ("move", 1, "tried")],
    ],
)
def test_where_cut_offs_and_privileged_messages_stand(steps: list[tuple[Any, ...]]) -> None:
    session = play(steps)
    assert read(session) == window(session)


def test_what_came_between_a_call_and_its_result_stands_behind_them() -> None:
    session = play([("say", 0, "a")])
    turn = session.record(kinds.TURN_STARTED, {"agent_id": "a"})
    session.record(kinds.MESSAGE_ADDED, calling("x"), turn)
    take(session, [("say", 0, "beside"), ("note", 0, "before")])
    session.record(kinds.MESSAGE_ADDED, tool("x"), turn)
    session.record(kinds.TURN_COMPLETED, {"agent_id": "a", "turn_stop_reason": "completed"}, turn)
    assert [message["role"] for message in read(session)] == ["user", "user", "assistant", "tool", "user"]
    assert read(session) == window(session)
    again = import_(export(session, "canto"), MemoryStore(), "canto", id="t")
    assert again is not None
    assert again.length == session.length
    assert read(again) == read(session)


def test_an_export_reads_the_same(store: Store) -> None:
    ids = count()

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(STEPS, STEPS)
    def check(steps: list[tuple[Any, ...]], later: list[tuple[Any, ...]]) -> None:
        session = play(steps, store, f"s{next(ids)}")
        assert read(session) == window(session)
        fork = session.fork(f"s{next(ids)}")
        take(fork, later)
        assert read(fork) == window(fork)

    check()
