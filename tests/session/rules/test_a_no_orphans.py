"""Rule a: no orphans, whatever is cancelled, whenever. Kills are in `test_a_no_orphans_after_kills`.

Spec: 10 §C12.1 a, §C16.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, takewhile
from typing import Any

import pytest

from harnpy import Vm
from harnpy.session.codec import encode_event
from harnpy.session.log import Session
from harnpy.session.stored import StoredSession
from harnpy.session.view import replay
from harnpy.storage import Store
from tests.clock import TICK, SimulatedClock, simulated_time
from tests.counts import COUNT
from tests.session.rules.loops import (
    FORMATS,
    STEPS,
    arguments,
    assert_done,
    assert_settled,
    program,
    requests_told,
)
from tests.session.rules.provider_rules import assert_accepted

Dict = dict[str, Any]

#: How a program ends a loop after some milliseconds.
ENDS = {
    "deadline": 'try {{ deadline {ms}ms {{ go("go") }} }} catch e {{ }}',
    "task cancel": 'let t = spawn {{ go("go") }}\nsleep({ms}ms)\ncancel(t)',
    "graceful cancel": 'let t = spawn {{ go("go") }}\nsleep({ms}ms)\ncancel_graceful(t, 1ms)',
    "closed stream": "let stream = parallel each [true, false] "
    '{{ loops -> if loops {{ go("go") }} else {{ sleep({ms}ms) }} }} as stream\nfor _ in stream {{ break }}',
}
#: The loop is over after so many milliseconds.
LONGEST = 25


def chances_on(url: str, style: str) -> Iterator[int]:
    """The numbers, from 1 on, of the chances that are taken: all of them, or a sample."""
    if COUNT.campaign:
        return count(1)
    return count(1 + FORMATS.index(style), len(FORMATS) * (3 if url == "memory:" else 12))


class Signal(KeyboardInterrupt):
    """What a signal raises in a program, wherever that is."""


class Fuse:
    """Raises a `Signal` at its ``at``-th chance, once."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.passed = 0

    def tick(self) -> None:
        self.passed += 1
        if self.passed == self.at:
            raise Signal


class Life:
    """A process's life with the session "s", which is on the store of that URL, or in memory."""

    def __init__(self, style: str, url: str) -> None:
        self.style = style
        self.url = "" if url == "memory:" else url
        self.vm = Vm()
        self.asked: list[list[Dict]] = []

    def run(self, body: str, steps: tuple[tuple[str, ...], ...] = STEPS) -> None:
        self.asked.clear()
        with requests_told(self.asked.append, self.style):
            self.vm.run_source(program(self.style, body), args=arguments(self.style, self.url, steps))

    @property
    def session(self) -> Session | None:
        return self.vm.sessions.session("s")

    def check_cancelled(self) -> None:
        """Check the session as the cancelled loop left it."""
        session = self.session
        if session is not None:
            assert_accepted(session.window(), self.style)
            assert_accepted(session.messages(), self.style)

    def go_on(self) -> None:
        """Run another loop on the session, and check what it asks and leaves."""
        self.run('go("go on")', (("read_b",), ()))
        for messages in self.asked:
            assert_accepted(messages, self.style)
        session = self.session
        assert session is not None
        assert_accepted(session.messages(), self.style)
        assert_done(session.messages())
        assert_settled(shown(session), self.style)
        assert replay(session.events()).transcript("s") == session.view.transcript("s")

    def close(self) -> None:
        if self.vm.sessions.exists("s"):
            self.vm.sessions.close("s")
        self.vm.sessions.stores.close()


@contextmanager
def new_life(style: str, store: Store, url: str) -> Iterator[Life]:
    """A life that begins without a session."""
    store.delete("session", "s")
    life = Life(style, url)
    yield life
    life.close()


@pytest.mark.parametrize("style", FORMATS)
@pytest.mark.parametrize("end", ENDS)
def test_a_no_orphans_after_a_loop_was_cancelled(end: str, style: str, store: Store, url: str) -> None:
    for ms in takewhile(LONGEST.__gt__, chances_on(url, style)):
        with simulated_time() as clock, new_life(style, store, url) as life:
            clock.tick = TICK * (1 + ms % 3)  # so that other waits end at these times
            life.run(ENDS[end].format(ms=ms))
            life.check_cancelled()
            if life.session is not None:
                events = shown(life.session)
                assert_settled(events, style)  # that takes no other loop
                assert events[-1]["data"]["turn_stop_reason"] in ("cancelled", "completed")
            life.go_on()


def shown(session: Session) -> list[Dict]:
    return [encode_event(event) for event in session.events()]


Chances = Callable[[Fuse, pytest.MonkeyPatch], None]


def at_each_append(fuse: Fuse, patch: pytest.MonkeyPatch) -> None:
    """Before and after each append."""

    def fused(write: Callable[..., Any]) -> Callable[..., Any]:
        def fused(*args: Any, **kwargs: Any) -> Any:
            fuse.tick()
            result = write(*args, **kwargs)
            fuse.tick()
            return result

        return fused

    for kind, names in ((Session, ("write", "record")), (StoredSession, ("_write",))):
        for name in names:
            patch.setattr(kind, name, fused(getattr(kind, name)))


def at_each_look_at_the_clock(fuse: Fuse, patch: pytest.MonkeyPatch) -> None:
    """At each wait, and wherever time is read: in an append before it is written, too."""
    look = SimulatedClock.monotonic

    def fused(clock: SimulatedClock) -> float:
        fuse.tick()
        return look(clock)

    patch.setattr(SimulatedClock, "monotonic", fused)


@pytest.mark.parametrize("style", FORMATS)
@pytest.mark.parametrize("chances", [at_each_append, at_each_look_at_the_clock])
def test_a_no_orphans_after_a_signal(chances: Chances, style: str, store: Store, url: str) -> None:
    for at in chances_on(url, style):
        fuse = Fuse(at)
        with simulated_time(), new_life(style, store, url) as life:
            with pytest.MonkeyPatch.context() as patch, suppress(Signal):
                chances(fuse, patch)
                life.run('go("go")')
            if fuse.passed < at:
                break
            life.check_cancelled()
            life.go_on()
