"""An action sees the log up to what it has taken notice of, and its own events. Spec: 10 §C7."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.session import SessionRuntime
from harnpy.session.events import EventDraft
from harnpy.session.transaction import Txn
from harnpy.session.view import View, replay
from harnpy.storage import Store
from tests.counts import COUNT

STEPS = st.lists(
    st.sampled_from(["say", "set", "several", "cut", "others say", "others set", "others open", "refresh"]),
    max_size=12,
)


def shown(view: View) -> Any:
    return [*view.window.messages()], dict(view.registers), [*view.turns.items()], [*view.open_turns]


def said(text: str) -> EventDraft:
    return EventDraft("message_added", {"role": "user", "content": text})


class Script:
    """A stream action that does these steps, and compares what it sees with its log after each of them."""

    name = "script"
    mode = "stream"

    def __init__(self, steps: list[str]) -> None:
        self.steps = steps

    def __call__(self, txn: Txn) -> None:
        for number, step in enumerate(["say", *self.steps]):  # what hasn't streamed stands behind nobody
            self.take(txn, step, str(number))
            assert shown(txn.view) == shown(replay(txn.read()))
            assert shown(txn.live.view) == shown(replay(txn.live.read()))

    def take(self, txn: Txn, step: str, text: str) -> None:
        seen = txn.version, shown(txn.view)
        match step:
            case "say":
                txn.write(said(text))
            case "set":
                txn.refresh()  # a register is bound to what was seen
                txn.set("memo", text)
            case "several":
                txn.refresh()
                txn.end_streaming()
                txn.write(said(text))
                assert txn.messages()[-1]["content"] == text
                txn.set("memo", text)
                txn.begin_streaming()
                txn.write(said("and more"))
            case "cut":
                txn.trim(1)
            case "others say":
                txn.live.append_user(text)
            case "others set":
                txn.live.set("memo", text)
            case "others open":
                assert txn.live.messages() == [*txn.live.view.window.messages()]
            case _:
                txn.refresh()
        if step.startswith("others"):  # nobody has told the action
            assert seen == (txn.version, shown(txn.view))


def test_an_action_sees_its_own_log(store: Store) -> None:
    numbers = count()

    @settings(max_examples=COUNT.examples(12), deadline=None)
    @given(STEPS)
    def check(steps: list[str]) -> None:
        with SessionRuntime(store) as runtime:
            session = runtime.create(id=f"s{next(numbers)}")
            runtime.execute(session.id, Script(steps))
            assert shown(session.view) == shown(replay(session.read()))

    check()


def test_an_action_that_is_over_shows_what_it_came_to(store: Store) -> None:
    kept: list[Txn] = []

    def say(txn: Txn) -> None:
        kept.append(txn)
        txn.write(said("one"))
        assert txn.live.messages() == []

    def fail(txn: Txn) -> None:
        say(txn)
        raise KeyError("no")

    with SessionRuntime(store) as runtime:
        session = runtime.create(id="s")
        with pytest.raises(KeyError):
            runtime.execute("s", fail)
        runtime.execute("s", say)
        session.append_user("two")
        failed, done = kept
        assert (failed.messages(), failed.version) == ([], 1)
        assert [message["content"] for message in done.messages()] == ["one"]
        assert [*done.view.window.messages()] == done.messages()
        assert len(session.messages()) == 2
