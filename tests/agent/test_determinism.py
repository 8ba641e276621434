"""One team of agents, recorded once over a socket, is the same team every time its recording is replayed.

Replays run in a world of their own: a clock that moves only when everybody sleeps, and counted ids. In a
replay whose ready tasks are shuffled each task counts for itself, as who comes first is what is shuffled.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections import Counter, defaultdict
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from harnpy import Vm
from harnpy.cli.model_fixtures import replay
from tests.clock import SimulatedClock
from tests.counts import COUNT
from tests.llm.wire import KEY, OPENAI, Answer, Call, Received, Say, Wire
from tests.support import Command
from tests.worlds import OwnWorld

PROGRAM = Path(__file__).with_name("team.harn")
PROVIDERS = '[providers.openai]\nbase_url = "{url}"\nauth_envs = ["TEAM_KEY"]\n'

#: What each agent does, turn by turn: tools with the milliseconds they take, or its last words.
TURNS: dict[str, list[list[tuple[str, int]] | str]] = {
    "lead": [
        [("look", 9), ("weigh", 3), ("count", 6)],
        "hm",
        [("count", 1), ("look", 0)],
        "all done ##DONE##",
    ],
    "scout-1": [[("look", 2), ("weigh", 2), ("count", 2)], [("delegate", 0)], "one ##DONE##"],
    "scout-2": [[("look", 3), ("weigh", 1)], "hm", [("count", 1)], "two ##DONE##"],
    "scout-3": [[("count", 1), ("look", 4)], [("delegate", 0)], "three is done"],
    "scout-4": [[("look", 2), ("weigh", 2)], "hm", [("weigh", 4), ("look", 1)], "four is done"],
    "helper-1": [[("look", 5), ("count", 2)], [("weigh", 1)], "a is done"],
    "helper-3": [[("weigh", 4)], [("look", 5), ("count", 5)], "b is done"],
}


class Team(Wire):
    """The model of them all. It answers when it likes, so that nobody's turn is certain."""

    def __init__(self) -> None:
        super().__init__(OPENAI, Say())
        self._turns: Counter[str] = Counter()
        self._random = random.Random()

    async def _answer(self, answer: Answer, request: Received, *streams: Any) -> bool:
        await asyncio.sleep(self._random.uniform(0, 0.02))
        return await super()._answer(self._said(request.body), request, *streams)

    def _said(self, body: dict[str, Any]) -> Say:
        first = body["messages"][0]
        if first["role"] != "system":
            return Say(f"summary {self._turns.total()}")
        name = first["content"].partition("You are ")[2].partition(".")[0]
        turn = TURNS[name][self._turns[name]]
        self._turns[name] += 1
        native = bool(body.get("tools"))
        if isinstance(turn, str):
            finished = turn.endswith("is done")
            return Say(f"<user_response>{turn}</user_response>\n<done>##DONE##</done>" if finished else turn)
        given = [(tool, {"what": f"{name} {i}", "ms": ms}) for i, (tool, ms) in enumerate(turn)]
        if native:
            calls = [Call(tool, json.dumps(args), f"call_{i}") for i, (tool, args) in enumerate(given)]
            return Say("let me see", tuple(calls))
        return Say(
            "\n".join(f"<tool_call>\n{tool}({json.dumps(args)})\n</tool_call>" for tool, args in given)
        )


class Replay(OwnWorld):
    """A world in which nothing is left to chance but, with a ``seed``, whose turn it is."""

    def __init__(self, directory: Path, seed: int | None) -> None:
        self.out = StringIO()
        super().__init__(self.out.write, self.out.write, clock=SimulatedClock(tick=0))
        self.vm: Vm | None = None
        self.by_task = False
        self._minted: Counter[str] = Counter()
        self._env = {"HARN_EVENT_LOG_DIR": str(directory), "HARN_LLM_TRANSCRIPT_DIR": str(directory)}
        if seed is not None:
            self._env["HARNPY_CHAOS_SCHED"] = str(seed)

    def get(self, name: str) -> str | None:
        return self._env.get(name)

    def new(self) -> str:
        assert self.vm
        who = self.vm.tasks.current.id() if self.by_task else ""
        self._minted[who] += 1
        digest = hashlib.sha256(f"{who}/{self._minted[who]}".encode()).digest()
        return str(UUID(bytes=digest[:16], version=4))


class Told:
    """All that a replay left behind."""

    def __init__(self, recording: Path, directory: Path, *, by_task: bool, seed: int | None = None) -> None:
        directory.mkdir()
        host = Replay(directory, seed)
        host.by_task = by_task
        host.vm = Vm(world=host)
        replay(host.vm, str(recording))
        host.vm.run_file(str(PROGRAM))
        self.printed = host.out.getvalue()
        self.events = {path.name: path.read_bytes() for path in sorted(directory.glob("event_log-*"))}
        self.calls = (directory / "llm_transcript.jsonl").read_bytes()

    def first_tools_ms(self, session: str) -> int:
        """The time between an agent's first answer and its next question."""
        rows = self.calls_by_session()[session]
        times = [float(row["timestamp"]) for row in rows if row["type"].startswith("provider_call")]
        return round((times[2] - times[1]) * 1000)

    def calls_by_session(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of the sidecar without what numbers the calls of all sessions together."""
        rows = defaultdict(list)
        for line in self.calls.splitlines():
            row = json.loads(line)
            row.pop("call_id", None)
            rows[row["session_id"]].append(row)
        return rows


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("recorded") / "team.jsonl"


@pytest.fixture
def recording(recorded: Path, harnpy: Command, tmp_path: Path) -> Path:
    """`harnpy run --llm-mock-record` against the team's model, once for all tests."""
    if not recorded.exists():
        with Team() as model:
            (tmp_path / "providers.toml").write_text(PROVIDERS.format(url=model.url), encoding="utf-8")
            env = {"HARN_PROVIDERS_CONFIG": str(tmp_path / "providers.toml"), "TEAM_KEY": KEY}
            done = harnpy("run", "--llm-mock-record", recorded, PROGRAM, **env)
        assert (done.stderr, done.returncode) == ("", 0)
        recorded.with_suffix(".out").write_text(done.stdout, encoding="utf-8")
    return recorded


def outcomes(printed: str) -> list[str]:
    return [line for line in printed.splitlines() if not line.startswith("{")]


def test_the_recording_says_what_the_models_said(recording: Path, harnpy: Command) -> None:
    live = outcomes(recording.with_suffix(".out").read_text(encoding="utf-8"))
    assert live == [
        "lead done true all done ##DONE##",
        "done [look, weigh, count, delegate] one ##DONE##",
        "done [look, weigh, count] two ##DONE##",
        "done [count, look, delegate] three is done",
        "done [look, weigh, weigh, look] four is done",
    ]
    turns = sum(map(len, TURNS.values()))
    assert len(recording.read_text(encoding="utf-8").splitlines()) > turns, "summaries are calls too"
    done = harnpy("run", "--llm-mock", recording, PROGRAM)
    assert (outcomes(done.stdout), done.stderr) == (live, "")


def test_replays_leave_the_same_bytes(recording: Path, tmp_path: Path) -> None:
    first = Told(recording, tmp_path / "first", by_task=False)
    assert all(f"true {word} is done" in first.printed for word in "ab"), "the helpers reported"
    assert len(first.events) == len(TURNS)
    assert first.first_tools_ms("lead") == 9, "tools that only read ran at the same time"
    for n in range(1, COUNT.replays):
        again = Told(recording, tmp_path / str(n), by_task=False)
        assert again.printed == first.printed
        assert again.events == first.events
        assert again.calls == first.calls


def test_so_they_do_whoever_runs_first(recording: Path, tmp_path: Path) -> None:
    first = Told(recording, tmp_path / "first", by_task=True)
    orders = set()
    for seed in COUNT.seeds(COUNT.replays):
        shuffled = Told(recording, tmp_path / str(seed), by_task=True, seed=seed)
        assert shuffled.printed == first.printed
        assert shuffled.events == first.events
        assert shuffled.calls_by_session() == first.calls_by_session()
        orders.add(shuffled.calls)
    assert len(orders) > COUNT.replays // 2, "tasks did take turns in other orders"
