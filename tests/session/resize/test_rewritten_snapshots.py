"""Projection snapshots of windows that strategies wrote (10 §C5, §C8)."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.session import SessionRuntime
from harnpy.session.live import LiveSession
from harnpy.session.resize_policy import ResizePolicy
from harnpy.storage import Store
from tests.counts import COUNT

Message = dict[str, Any]
EXAMPLES = COUNT.examples(6)


def facts(full: list[Message], window: list[Message], memo: Any, given: Any) -> tuple[Any, Any, Any]:
    """Put two messages of its own before the newest one, and one behind it."""
    made = [{"role": "user", "content": f"fact {n} of {len(window)}"} for n in range(3)]
    return None, [*made[:2], *window[-1:], made[2]], None


def anew(full: list[Message], window: list[Message], memo: Any, given: Any) -> tuple[Any, Any, Any]:
    """Restart the history with a message of its own and the newest one; the window has another one, too."""
    made = {"role": "user", "content": "anew"}
    return [made, *full[-1:]], [made, *window[-1:], {"role": "assistant", "content": "and here"}], None


POLICY = ResizePolicy(summarize=lambda prompt: "short", keep_last=2)
POLICY.strategy("facts", facts).strategy("anew", anew)
STEPS = ("say", "facts", "anew", "llm", "trim", "snapshot", "turn", "pin")


def shown(session: LiveSession) -> tuple[Any, ...]:
    return session.messages(), session.window(), session.history(), len(session.entries())


def do(session: LiveSession, step: str, number: int) -> None:
    match step:
        case "say":
            session.add_history([{"content": f"said {number}"}, {"role": "assistant", "content": "yes"}])
        case "snapshot":
            session.snapshot()
        case "turn":
            session.append_user(f"more {number}")
        case "pin":
            logged = [entry for entry in session.entries() if entry.event and entry.event.is_logged]
            if logged:
                session.pin(logged[-1].event_id)
        case "llm":
            if session.length > 3:
                session.resize("llm")
        case _:
            session.resize(step)


def test_a_window_that_a_strategy_wrote_is_named(store: Store) -> None:
    with SessionRuntime(store, resize=POLICY) as runtime:
        session = runtime.create(id="s", seed=[{"content": text} for text in "abc"])
        session.resize("facts")
        session.append_user("d")
        assert session.snapshot()
        (taken,) = session.events(types=["projection_snapshotted"])
        cut = session.events(types=["compaction_triggered"])[0].seq
        assert [span for span in taken.data["entries"] if isinstance(span, dict)] == [
            {"cut": cut, "item": number} for number in range(3)
        ]
        fork, live = session.fork("f"), shown(session)
        runtime.evict("s")
        again = runtime.get("s")
        assert [each["content"] for each in again.messages()] == [
            "fact 0 of 3", "fact 1 of 3", "c", "fact 2 of 3", "d",
        ]  # fmt: skip
        assert (shown(again), shown(fork)) == (live, live)


def test_loaded_from_a_snapshot_it_is_the_same(store: Store) -> None:
    count = iter(range(10_000))
    with SessionRuntime(store, resize=POLICY) as runtime:

        @settings(max_examples=EXAMPLES, deadline=None)
        @given(st.lists(st.sampled_from(STEPS), min_size=4, max_size=14))
        def check(steps: list[str]) -> None:
            id = f"s{next(count)}"
            session = runtime.create(id=id, seed=[{"content": text} for text in "abcd"])
            for number, step in enumerate(steps):
                do(session, step, number)
                if step == "snapshot":
                    live = shown(session)
                    runtime.evict(id)
                    session = runtime.get(id)
                    assert shown(session) == live

        check()
