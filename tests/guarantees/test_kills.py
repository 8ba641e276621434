"""Writers with all verbs on the same sessions are killed: nothing acknowledged is lost, nothing is doubled.

Real processes and `kill -9`; a server of PostgreSQL crashes, too, and clocks are put back. Issue 30, line 5.
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

from tests import postgres as postgres_server
from tests.counts import COUNT
from tests.storage.conftest import STORES
from tests.storage.test_processes import wait_for_the_dead
from tests.support import ROOT

Dict = dict[str, Any]
Ask = Callable[[Dict], Any]

#: Writers at once; all of them are killed.
WRITERS = 3
#: After so many rounds the sessions are deleted, and others begin: a look reads them whole.
EPOCH = 4
#: A writer that kills itself does so at one of so many calls: it makes some hundred thousand in a second.
CALLS = 60_000


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Give an order to a process that forks writers; return its answer."""
    command = [sys.executable, "-m", "tests.guarantees.writers"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:

        def ask(order: Dict) -> Any:
            assert process.stdin is not None
            assert process.stdout is not None
            print(json.dumps(order), file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())

        yield ask


#: What a file of JSON lines may end in when a writer was killed within a write.
_UNFINISHED = "of an append that was never finished"


class Rounds:
    """Rounds of kills on one store, and what its sessions must hold."""

    def __init__(self, ask: Ask, url: str, chance: random.Random) -> None:
        self._ask, self._url, self._chance = ask, url, chance
        self.kills = 0
        self.done: Counter[str] = Counter()
        self._begin_epoch(0)

    def _begin_epoch(self, number: int) -> None:
        self._epoch = f"e{number}"
        self._known: Dict = {}
        self._sums: dict[str, int] = {}
        self._parents: dict[str, str | None] = {}
        #: Actions that nobody knows of whether they were carried out: the next round asks for them, again.
        self._again: list[tuple[str, str]] = []
        self._repeated: set[str] = set()
        #: By session, the marks in the order in which they were found, and what became of each verb.
        self._marks: dict[str, list[str]] = {}
        self._verbs: dict[tuple[str, str, str], str] = {}

    def kill(self, round: int, server: postgres_server.Own | None = None) -> None:
        """Let writers live and die, and check what they leave."""
        chance = self._chance
        writers = [
            {
                "again": self._again if number == 0 else [],
                "back": chance.random() < 0.3,
                "calls": chance.randrange(1, CALLS) if chance.random() < 0.4 else 0,
            }
            for number in range(WRITERS)
        ]
        url = self._url.replace("relaxed", chance.choice(["relaxed", "full"]))
        order = {"url": url, "epoch": self._epoch, "round": round, "seed": chance.random()}
        self._repeated |= {mark for _, mark in self._again}
        postmaster = server.pid if server else 0
        answer = self._ask({**order, "writers": writers, "postmaster": postmaster})
        for life in answer["lives"]:
            assert life["signal"] == signal.SIGKILL, life["told"][-1]
            self.kills += 1
            self._note(life["told"])
        unsure = [key for key, what in self._verbs.items() if what in ("begun", "unsure")]
        self._again = [(id, mark) for verb, id, mark in unsure if verb in ("act", "act_twice")]
        if server:
            assert answer["ended"], "the server hasn't crashed"
            server.recover(answer["ended"])
        wait_for_the_dead(self._url)
        self._look(round, is_last=(round + 1) % EPOCH == 0)

    def _note(self, told: list[Any]) -> None:
        for what, verb, id, mark, *_ in told:
            assert what != "failed", verb
            self._verbs[verb, id, mark] = what
            self.done[verb] += what == "done"

    def _look(self, round: int, *, is_last: bool) -> None:
        order = {"url": self._url, "epoch": self._epoch, "round": round, "look": self._known}
        found = self._ask({**order, "forget": is_last})
        assert "failed" not in found, found["failed"]
        # A line that its writer didn't live to end was acknowledged to nobody; the next one cuts it off.
        assert [finding for finding in found["findings"] if _UNFINISHED not in finding] == []
        sessions = found["sessions"]
        assert set(found["ids"]) >= self._known.keys(), "a session is gone"
        for id, session in sessions.items():
            self._check(id, session)
        for (verb, id, mark), what in self._verbs.items():
            self._check_verb(verb, id, mark, what)
        if is_last:
            self._begin_epoch(round + 1)

    def _check(self, id: str, session: Dict) -> None:
        """Check the log of a session: the old part is as it was, and the new one in order."""
        assert session["open"] == [], "the next action ends open turns"
        assert session["is_paired"], id
        assert session["is_replayed"], id
        assert session["is_shared"], f"{id} has another past than {session['parent']}"
        before, now = session["sums"]
        assert self._sums.get(id, before) == before, f"the past of {id} has changed"
        self._sums[id] = now
        known = self._known.get(id, 0)
        assert session["seqs"] == list(range(known + 1, session["version"] + 1))
        self._known[id] = session["version"]
        self._parents[id] = session["parent"]
        marks = self._marks.setdefault(id, [])
        marks += session["marks"]
        numbers: dict[str, int] = {}
        for mark in marks:
            name, _, number = mark.rstrip("+").rpartition(".")
            if mark not in self._repeated and name:
                assert numbers.get(name, -1) <= int(number), f"{mark} is behind {numbers[name]} in {id}"
                numbers[name] = int(number)

    def _check_verb(self, verb: str, id: str, mark: str, what: str) -> None:
        """Check a verb of a writer: all of it is there, once, if it was done; all of it or nothing, else."""
        marks = self._marks.get(id, [])
        found = marks.count(mark)
        assert found <= 1, f"{mark} of {verb} is {found} times in {id}"
        if what == "idle" or (what == "refused" and verb != "send"):  # one that is overtaken has begun
            assert not found, f"{verb} {mark} said that it wrote nothing, and is in {id}"
            return
        if verb == "append":
            assert marks.count(f"{mark}+") == found, f"half of {mark} is in {id}"
        if verb == "fork":
            fork = f"{self._epoch}-f{mark}"
            assert not found, f"{mark} is in {id}, whose fork it was for"
            found = self._marks.get(fork, []).count(mark)
            assert self._parents.get(fork, id) == id
        if what == "done":
            assert found == 1, f"{mark} of {verb} in {id} was acknowledged, and is lost"
            assert verb != "send" or marks.count(f"answer {mark}") == 1


def rounds(kills: int) -> range:
    return range(-(-kills // WRITERS))


@pytest.fixture
def own() -> Iterator[postgres_server.Own]:
    """A PostgreSQL server that no other test uses."""
    with postgres_server.own() as server:
        yield server


def test_nothing_is_lost_or_doubled_by_crashes_of_a_server(own: postgres_server.Own, ask: Ask) -> None:
    found = Rounds(ask, postgres_server.emptied(own.url, "crashes"), random.Random(f"crash {COUNT.seed}"))
    for round in range(COUNT.server_crashes):
        found.kill(round, own)
    assert found.kills == COUNT.server_crashes * WRITERS


@pytest.mark.parametrize("url", [name for name in STORES if name != "memory"], indirect=True)
def test_nothing_is_lost_or_doubled_by_kills(url: str, ask: Ask) -> None:
    found = Rounds(ask, url, random.Random(f"{url.partition(':')[0]} {COUNT.seed}"))
    for round in rounds(COUNT.kills):
        found.kill(round)
    assert found.kills >= COUNT.kills
    assert sum(found.done.values()) >= found.kills
