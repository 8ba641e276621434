"""The same operations give the same session on every store, however one comes by it. Spec: 10 §C5, §C12."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.session import EventDraft
from harnpy.session.codec import encode_event
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.logs import dump_log, load_log
from harnpy.storage import Store, open_store
from harnpy.world import World
from tests.counts import COUNT
from tests.session.rules.test_h_one_step_back import STEPS, Conversation
from tests.session.test_views_equal import load, views
from tests.storage.conftest import STORES, url_of
from tests.worlds import world_with

LONG = "a long text, that an append which holds it twice writes only once: " * 2


@pytest.fixture
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Store]]:
    """One of each kind."""
    with ExitStack() as opened:
        yield [opened.enter_context(closing(open_store(url_of(name, request, tmp_path)))) for name in STORES]


def noted(text: str) -> EventDraft:
    return EventDraft("message_added", {"role": "user", "content": text, "note": LONG})


#: Those that ask for no time of another clock.
AT_ONCE = STEPS.filter(lambda step: step[0] != "reopen")


def played(id: str, store: Store, steps: list[tuple[Any, ...]]) -> list[StoredSession]:
    """Take the steps; return the session that they begin with, and each fork that they make."""
    ticks = count(1_700_000_000)
    world = world_with(now=lambda: float(next(ticks)))
    session = StoredSession.begin(id, store, world)
    talk, line = Conversation(session), [session]
    session.append(*(noted(text) for text in "ab"))
    talk.goes_on(talk.now.say("a", "b"))
    for number, (verb, *arguments) in enumerate(steps):
        if verb == "fork":
            line.append(line[-1].fork(f"{id} {number}"))
            talk.session = line[-1]
        else:
            talk.take(verb, *arguments)
    return line


def whole(session: StoredSession) -> dict[str, Any]:
    """All that there is of a session."""
    events = [encode_event(event) for event in session.events()]
    info = session.info._replace(updated_at="")  # may be a second behind
    return {**views(session), "events": events, "info": info, "revision": session.revision}


def unnamed(views: dict[str, Any]) -> dict[str, Any]:
    """Views without the ids in the transcript: those are the first writer's, whom a file doesn't name."""
    transcript = views["transcript"]
    events = [{**event, "id": None} for event in transcript["events"]]
    return {**views, "transcript": {**transcript, "events": events}}


def test_the_same_operations_give_the_same_on_all_stores(stores: list[Store]) -> None:
    """Live, reloaded, and after export and import."""
    numbers = count()

    @settings(max_examples=COUNT.examples(10), deadline=None)
    @given(st.lists(AT_ONCE, max_size=12))
    def check(steps: list[tuple[Any, ...]]) -> None:
        id = f"s{next(numbers)}"
        lines = [played(id, store, steps) for store in stores]
        for first, *others in zip(*lines, strict=True):
            expected = whole(first)
            for session in others:
                assert whole(session) == expected
        with closing(open_store("memory:")) as other:
            for line, store in zip(lines, stores, strict=True):
                for session in line:
                    assert whole(load(session.id, store)) == whole(session)
                    exported = list(dump_log(session))
                    imported = load_log(exported, other, World())
                    assert unnamed(whole(imported)) == unnamed(whole(session))
                    assert list(dump_log(imported)) == exported
                    other.delete("session", session.id)

    check()


def test_a_log_cut_at_every_byte_of_its_last_append_is_the_session_before_it(tmp_path: Path) -> None:
    url = f"jsonl:{tmp_path}/store?durability=relaxed"
    log = tmp_path / "store" / "logs" / "s.jsonl"
    steps = [("turn", 2), ("pin", 0), ("trim", 1), ("say",), ("compact", 1), ("turn", 1), ("rewind", 1)]
    with closing(open_store(url)) as store:
        played("s", store, steps)
        before, size = whole(load("s", store)), log.stat().st_size
        session = load("s", store)
        session.append(*(noted(text) for text in "xyz"))
        after = whole(load("s", store))
    content = log.read_bytes()
    for end in (*range(size, len(content), COUNT.cuts_share), len(content) - 1, len(content)):
        log.write_bytes(content[:end])
        with closing(open_store(url)) as store:
            assert whole(load("s", store)) == (after if end == len(content) else before), end
