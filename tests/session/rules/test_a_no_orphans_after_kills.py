"""Rule a: no orphans, wherever the process is killed. Cancels are in `test_a_no_orphans`.

Real processes, `kill -9`, and each time another process goes on at once: it waits for no lease, finds all
that was acknowledged, and asks what every service takes. Spec: 10 §C12.1 a, §C16.4; issue line 6.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harnpy.storage import Store
from tests.counts import COUNT
from tests.session.rules.killing import EVERYWHERE, POINTS, fact
from tests.session.rules.loops import FORMATS, assert_done, assert_settled
from tests.session.rules.provider_rules import assert_accepted
from tests.storage.conftest import STORES
from tests.support import ROOT

Dict = dict[str, Any]
Live = Callable[..., Dict]

#: How many kills each store and format gets.
KILLS = COUNT.killed_loops

#: Each format on a store, and in a campaign on all of them.
LIVES = [
    (style, name)
    for number, style in enumerate(FORMATS)
    for place, name in enumerate(name for name in STORES if name != "memory")
    if COUNT.campaign or (number + place) % 3 == 0
]


@pytest.fixture(scope="module")
def lives() -> Iterator[Callable[[Dict], Dict]]:
    """Let a process live and die as that says; return what it told."""
    command = [sys.executable, "-m", "tests.session.rules.killing"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:

        def lives(death: Dict) -> Dict:
            assert parent.stdin is not None
            assert parent.stdout is not None
            print(json.dumps(death), file=parent.stdin, flush=True)
            life: Dict = json.loads(parent.stdout.readline())
            return life

        yield lives


@pytest.fixture
def live(lives: Callable[[Dict], Dict], url: str) -> Live:
    """Let a process live with the session on the store of the test, which waits for the disk."""

    def live(style: str, prompt: str, points: list[str], when: str = "", count: int = 0) -> Dict:
        death = {"style": style, "prompt": prompt, "points": points, "when": when, "count": count}
        life = lives({**death, "url": url.replace("relaxed", "full")})
        assert not told(life, "failed"), told(life, "failed")[0]
        return life

    return live


def told(life: Dict, about: str) -> list[Any]:
    return [value for what, value in life["told"] if what == about]


@pytest.mark.parametrize(("style", "url"), LIVES, indirect=["url"])
def test_a_no_orphans_wherever_a_process_is_killed(style: str, store: Store, url: str, live: Live) -> None:
    points = EVERYWHERE | POINTS[url.partition(":")[0]]
    calls = Counter(told(live(style, "go", list(points)), "called"))
    assert set(calls) == set(points), "a point that no append passes"
    chances = [
        (point, when, count)
        for point, times in points.items()
        for when in times
        for count in range(1, calls[point] + 1)
    ]
    chance = random.Random(f"{style} {COUNT.seed}")
    chance.shuffle(chances)
    acknowledged: dict[int, Any] = {}
    killed = 0
    for number, (point, when, count) in enumerate(chances[:KILLS]):
        if number % 5 == 0:
            store.delete("session", "s")
            acknowledged.clear()
        life = live(style, f"go {number}", [point], when, count)
        check(life, style, acknowledged)
        if life["signal"]:  # else there weren't as many calls this time
            assert life["signal"] == signal.SIGKILL
            killed += 1
            go_on(live, style, acknowledged)
    assert killed >= KILLS // 4


def go_on(live: Live, style: str, acknowledged: dict[int, Any]) -> None:
    """A process that nobody kills goes on with the session."""
    life = live(style, "go on", [])
    check(life, style, acknowledged)
    assert told(life, "asked")
    [messages] = told(life, "messages")
    assert_accepted(messages, style)
    assert_done(messages)
    [events] = told(life, "events")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    found = {seq: known for seq, *known in map(fact, events)}
    assert {seq: found.get(seq) for seq in acknowledged} == acknowledged
    assert_settled(events, style)


def check(life: Dict, style: str, acknowledged: dict[int, Any]) -> None:
    """Check what a life has asked, and take note of what it was promised."""
    for messages in told(life, "asked"):
        assert_accepted(messages, style)
    for append in told(life, "stored"):
        for seq, *known in append:
            assert acknowledged.get(seq, known) == known, "a place is given once"
            acknowledged[seq] = known
