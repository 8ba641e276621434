"""Handlers: what they are given, what their results do, when they fail. Spec: 10 §A2.3, §C8."""

from __future__ import annotations

import asyncio
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from harnpy.session import EventDraft, InvalidArgument, ResizeError, Session
from harnpy.session import events as kinds
from harnpy.session.resize import Resizing
from harnpy.session.resize_policy import CLEAR, ResizePolicy, ResizeReport
from tests.session.shapes import said, tool

Message = dict[str, Any]
TALK = [said("user", f"message {number}") for number in range(4)]
NEW = said("user", "made")


def talk(*messages: Message) -> Session:
    session = Session()
    session.add_history(messages or TALK)
    return session


def resized(session: Session, name: str = "mine", **opts: Any) -> ResizeReport:
    report = session.resize(name, **opts)
    assert report is not None
    return report


def types(session: Session, after: int) -> list[str]:
    return [event.type for event in session.events(after)]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("parts", list(product([False, True], repeat=3)))
def test_each_combination_of_results(parts: tuple[bool, bool, bool], is_async: bool) -> None:
    """What isn't None takes the place of what was, in one append."""
    session = talk()
    wanted = ([NEW, TALK[3]], [TALK[0], NEW], {"topic": "tea"})

    def strategy(full: Any, window: Any, memo: Any, settings: Any) -> Any:
        assert (full, window, memo) == (TALK, TALK, None)
        made = ([NEW, full[3]], [window[0], NEW], wanted[2])
        return tuple(part if given else None for part, given in zip(made, parts, strict=True))

    async def later(*given: Any) -> Any:
        await asyncio.sleep(0)
        return strategy(*given)

    session.policy.strategy("mine", later if is_async else strategy)
    before = session.seq
    report = resized(session)
    full, window, memo = parts
    assert session.history() == (wanted[0] if full else TALK)
    assert session.messages() == (wanted[1] if window else TALK)
    assert session.memo == (wanted[2] if memo else None)
    written = [kinds.COMPACTION_STARTED] if any(parts) else []
    written += [kinds.HISTORY_REPLACED if full else kinds.COMPACTION_TRIGGERED] if full or window else []
    written += [kinds.REGISTER_SET] if memo else []
    assert types(session, before) == written
    assert report.events == len(written)
    assert [event.more for event in session.events(before)] == [*range(len(written))][::-1], "one append"
    if full:
        assert session.event(before + 2).data["reason"] == "resize"
    session.add_history(TALK[1])
    assert session.messages()[-1] == session.history()[-1] == TALK[1]


def test_messages_that_stay_keep_their_event_ids() -> None:
    session = talk()
    ids = [entry.event_id for entry in session.entries()]
    session.policy.strategy("mine", lambda full, window, *_: (None, [window[3], NEW, full[1]], None))
    report = resized(session)
    entries = session.entries()
    assert [entry.message for entry in entries] == [TALK[3], NEW, TALK[1]]
    cut = session.event(session.seq)
    assert [entry.event_id for entry in entries] == [ids[3], cut.id, ids[1]]
    assert [entry["event_id"] for entry in cut.data["entries"]] == [ids[3], cut.id, ids[1]]
    assert (report.before.messages, report.after.messages, report.shrunk) == (4, 3, True)
    assert session.history() == TALK


def test_what_a_handler_does_to_its_copies_stays_with_it() -> None:
    session = talk()

    def strategy(full: Any, window: Any, memo: Any, settings: Any) -> Any:
        full.clear()
        window[0]["content"] = "changed"
        return None, window[:1], None

    session.policy.strategy("mine", strategy)
    resized(session)
    assert session.messages() == [said("user", "changed")]
    assert session.history() == TALK


def test_an_empty_list_empties_and_clear_clears() -> None:
    session = talk()
    session.set_memo("tea")
    session.policy.strategy("mine", lambda *_: ([], [], CLEAR))
    resized(session)
    assert (session.history(), session.messages(), session.memo) == ([], [], None)


def test_messages_may_be_objects() -> None:
    session = talk()
    session.policy.strategy(
        "mine", lambda *_: (None, [SimpleNamespace(role="user", content="a"), {"content": "b"}], None)
    )
    resized(session)
    assert session.messages() == [said("user", "a"), said("user", "b")]


def test_nothing_new_is_no_event() -> None:
    session = talk()
    session.set_memo("tea")
    session.policy.strategy("mine", lambda full, window, memo, _: (full, window, memo))
    before = session.seq
    report = resized(session)
    assert (session.seq, report.events, report.shrunk) == (before, 0, False)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, 'resize strategy "mine" must return (full_context, context_window, memo), got NoneType'),
        ((1, 2), 'resize strategy "mine" must return (full_context, context_window, memo), got tuple'),
        (("a", None, None), 'resize strategy "mine" must return lists of messages or None, got str'),
        ((None, [1], None), "a resize strategy must return messages, dicts with a string `role`: got int"),
        ((None, None, float("nan")), "session append: data is not JSON: NaN"),
    ],
)
def test_a_wrong_result_changes_nothing(result: Any, text: str) -> None:
    session = talk()
    session.policy.strategy("mine", lambda *_: result)
    before = session.seq
    with pytest.raises(Exception, match="^" + text.replace("(", r"\(").replace(")", r"\)")):
        session.resize("mine")
    assert (session.seq, session.messages()) == (before, TALK)


def test_an_analysis_names_the_strategy() -> None:
    session = talk()
    found: list[Any] = []

    async def analysis(full: Any, window: Any, memo: Any, settings: Any) -> str | None:
        found.append((full, window, memo, settings["session.x"]))
        return "trim" if len(window) > 2 else None

    session.set("settings.x", 3)
    session.policy.on_analyze(analysis)
    assert session.analyze() == "trim"
    assert found == [(TALK, TALK, None, 3)]
    report = session.resize(keep_last=1)
    assert report is not None
    assert report.strategy == "trim"
    assert session.messages() == TALK[3:]
    assert session.resize() is None
    session.policy.on_analyze(None)
    assert session.analyze() is None
    session.policy.on_analyze(lambda *_: 3)  # type: ignore[arg-type,return-value]
    with pytest.raises(ResizeError, match="must return a strategy's name or None, got int"):
        session.analyze()


def test_an_own_strategy_takes_the_place_of_a_built_in_one() -> None:
    session = Session(settings={"max_length": 100})
    session.policy.strategy("simple_cut", lambda *_: (None, [NEW], None))
    session.add_history(TALK)
    assert session.messages() == [NEW]


def test_an_unknown_strategy() -> None:
    session = talk()
    with pytest.raises(ResizeError, match=r'^unknown resize strategy "cut"$'):
        session.resize("cut")
    session.resizing = Resizing(ResizePolicy(on_unknown="warn"))
    text = rf"^Can not find strategy 'cut' in resize handlers dictionary in Session <{session.id}>\.$"
    with pytest.warns(UserWarning, match=text):
        assert session.resize("cut") is None
    assert session.messages() == TALK


def test_a_strategy_that_raises() -> None:
    """The error reaches who asked for the resize; one that nobody asked for goes on, below the hard limit."""
    told: list[ResizeReport] = []

    def fails(*_: Any) -> Any:
        raise ValueError("no")

    policy = ResizePolicy().strategy("mine", fails).on_analyze(lambda *_: "mine")
    session = talk()
    session.resizing = Resizing(policy, tell=told.append)
    before = session.seq
    with pytest.raises(ValueError, match=r"^no$"):
        session.resize()
    assert session.seq == before
    assert [report.error for report in told] == ["no"]
    with pytest.warns(UserWarning, match="could not be resized: no$"):
        session.add_history(NEW)
    assert session.messages() == [*TALK, NEW]
    policy.hard_limit_tokens = 3
    with pytest.raises(ValueError, match=r"^no$"):
        session.add_history(NEW)
    assert session.length == 6
    assert told[-1].data()["error"] == "no"


def test_wrong_options() -> None:
    session = talk()
    with pytest.raises(
        InvalidArgument, match=r"^resize: unknown option 'keep_lst' \(did you mean 'keep_last'\?\)"
    ):
        session.resize("trim", keep_lst=1)
    with pytest.raises(InvalidArgument, match=r"^resize: keep_last must be an int >= 0, got -1$"):
        session.resize("trim", keep_last=-1)
    with pytest.raises(InvalidArgument, match=r"^strategy_name must be a non-empty string\.$"):
        session.policy.strategy(" ", lambda *_: (None, None, None))
    for wrong in ({"threshold_pct": 0}, {"on_unknown": "raise"}, {"max_length": -1}, {"auto": 1}):
        with pytest.raises(InvalidArgument):
            ResizePolicy(**wrong)  # type: ignore[arg-type]


def test_calls_that_are_open_stay_out_of_it() -> None:
    """What may still be answered isn't shown to a strategy, and stands behind its result."""
    session = Session()
    call = {"id": "c", "name": "f", "arguments": {}}
    session.add_history([*TALK, said("assistant", "", tool_calls=[call])])
    given: list[Any] = []

    def strategy(full: Any, window: Any, memo: Any, settings: Any) -> Any:
        given.append(window)
        return None, [NEW], None

    session.policy.strategy("mine", strategy)
    resized(session)
    assert given == [TALK]
    session.add_history(tool("c", "done"))
    assert [message["role"] for message in session.window()] == ["user", "assistant", "tool"]
    resized(session, "simple_cut", max_length=1)
    assert session.messages()[-1]["content"] == "e"


def test_context_and_pins_stay_and_count_first() -> None:
    session = talk()
    session.append(EventDraft(kinds.CONTEXT_ADDED, {"content": "rules " * 5, "kind": "harness"}))
    session.pin(session.entries()[1].event_id)
    fixed = len(str(said("user", "rules " * 5))) + 40
    assert session.analyze() is None
    resized(session, "simple_cut", max_length=fixed + 40)
    assert [message["content"] for message in session.window()] == ["rules " * 5, "message 0", "message 3"]
    session.set("settings.max_length", fixed + 40)
    assert session.analyze() is None
    session.set("settings.max_length", fixed + 39)
    assert session.analyze() == "simple_cut"
