"""What does the session runtime cost, beside what it stores?

    python bench/runtime.py [--rounds N] [--times N] [--sessions N] [--turns N] [--check]

An action against a bare append of the same events, and a turn of a plain function against the same appends
made by hand: both take turns in one process, on sessions of one store. Then many sessions at once through a
few threads, on SQLite, beside the OpenAI Agents SDK and LangGraph, each with its own loop and a model that
replies at once. A peer that isn't installed is left out. What importing the package takes: startup.py.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from options import parser
from runtime_peers import ANSWER, PEERS, PROMPT, Converse
from storage import Report, collected, postgres_server

from harnpy import AgentDef, LoopFactory
from harnpy.llm.reply import Reply
from harnpy.session import EventDraft, Session, SessionRuntime, Txn
from harnpy.session.events import TurnRef

#: An action × the append; a turn × its appends.
EXECUTE, SEND = 3.0, 1.3
THREADS = 8
HISTORIES = (10, 1_000)

MESSAGE = {"role": "user", "content": PROMPT}
EXECUTED = {"before_status": "active", "after_status": "active", "duration_ms": 0}


def answer(messages: Any) -> str:
    return ANSWER


def said(session: Session, turn: Any = None) -> EventDraft:
    return EventDraft("message_added", MESSAGE, turn=turn)


def say(session: Txn) -> None:
    session.append(said(session))


def appended(session: Session) -> None:
    """What an execution of `say` stores."""
    executed = {"action": "say", "before_revision": session.revision, **EXECUTED}
    session.append(said(session), EventDraft("action_executed", executed))


def turned(session: Session) -> None:
    """What a turn of `answer` stores, in as many appends."""
    turn = TurnRef(session.origin, session.version + 1)
    session.append(EventDraft("turn_started", {"agent_id": "answer"}), said(session, turn))
    executed = {"action": "send", "before_revision": session.revision, **EXECUTED}
    end = {"agent_id": "answer", "steps": 1, "turn_stop_reason": "completed"}
    session.append(
        EventDraft("step_started", {"agent_id": "answer", "iteration": 1}, turn=turn),
        EventDraft("message_added", {"role": "assistant", "content": ANSWER}, turn=turn),
        EventDraft("turn_completed", end, turn=turn),
        EventDraft("action_executed", executed),
    )


def in_turns(ours: Callable[[], object], bare: Callable[[], object], times: int) -> tuple[float, float]:
    """The microseconds of both, medians of so many calls."""
    found: tuple[list[float], list[float]] = ([], [])
    with collected():
        for _ in range(times):
            for work, marks in zip((ours, bare), found, strict=True):
                begin = perf_counter()
                work()
                marks.append((perf_counter() - begin) * 1e6)
    return median(found[0]), median(found[1])


def compared(
    report: Report, name: str, must: float | None, measured: Callable[[], tuple[float, float]], rounds: int
) -> None:
    found = [measured() for _ in range(rounds)]
    ratio = median(ours / bare for ours, bare in found)
    report.row(name, median(ours for ours, _ in found), "µs", ratio, must)


def executions(url: str, times: int) -> tuple[float, float]:
    with SessionRuntime(url) as runtime:
        ours, bare = runtime.create().id, runtime.create()
        return in_turns(lambda: runtime.execute(ours, say), lambda: appended(bare), times)


def turns(url: str, history: int, times: int) -> tuple[float, float]:
    seed = [{"role": "user" if n % 2 else "assistant", "content": "x" * 100} for n in range(1, history + 1)]
    with SessionRuntime(url) as runtime:
        ours, bare = runtime.create(seed=seed).id, runtime.create(seed=seed)
        runtime.send(ours, PROMPT, agent=answer)
        return in_turns(
            lambda: runtime.send(ours, PROMPT, agent=answer), lambda: turned(bare), min(times, history)
        )


class Quick:
    """A model that replies at once."""

    async def complete(self, request: Any) -> Reply:
        return Reply(ANSWER, request.model, "quick", request.model, 10, 5)


@contextmanager
def ours(directory: Path, agent: Any) -> Iterator[Converse]:
    loops = LoopFactory(providers={"quick": Quick()})
    with SessionRuntime(f"sqlite:{directory}/sessions.db", agents=loops) as runtime:

        def converse(number: int, turns: int) -> None:
            id = runtime.create().id
            for _ in range(turns):
                if runtime.send(id, PROMPT, agent=agent).text != ANSWER:
                    raise AssertionError("the turn went wrong")

        yield converse


def rate(converse: Converse, sessions: int, turns: int) -> float:
    """Turns per second, of so many sessions through `THREADS` threads."""
    converse(sessions, 1)
    gc.collect()
    with ThreadPoolExecutor(THREADS) as pool:
        begin = perf_counter()
        for done in [pool.submit(converse, number, turns) for number in range(sessions)]:
            done.result()
        return sessions * turns / (perf_counter() - begin)


def services(rounds: int, sessions: int, turns: int) -> None:
    definition = AgentDef("quick", model="quick/m", tools=())
    sides: list[tuple[str, Any]] = [
        ("harnpy, a function", partial(ours, agent=answer)),
        ("harnpy, its loop (AgentDef)", partial(ours, agent=definition)),
        *PEERS,
    ]
    print(f"\nSQLite: {sessions} sessions × {turns} turns through {THREADS} threads: turns/s")
    found: dict[str, list[float]] = {}
    for number in range(rounds):
        for name, side in sides:
            with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
                try:
                    converse = stack.enter_context(side(Path(directory)))
                except ImportError as error:
                    if not number:
                        print(f"  {name} is left out: {error}")
                else:
                    found.setdefault(name, []).append(rate(converse, sessions, turns))
    best = median(found[sides[1][0]])
    for name, rates in found.items():
        print(f"  {name:34}{median(rates):10,.0f}   harnpy's loop × {best / median(rates):.1f}")


def main() -> None:
    arguments = parser(__doc__, rounds=5)
    arguments.add_argument("--times", type=int, default=200, help="how often a round does a thing")
    arguments.add_argument("--sessions", type=int, default=100)
    arguments.add_argument("--turns", type=int, default=20)
    options = arguments.parse_args()
    report, rounds, times = Report(), options.rounds, options.times
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        stores = {
            "memory": "memory:",
            "jsonl": f"jsonl:{name}/store",
            "sqlite": f"sqlite:{name}/store.db",
        }
        try:
            stores["postgresql"] = stack.enter_context(postgres_server())
        except ImportError as error:
            print(f"postgresql: is left out: {error}")
        print("\nan atomic action, × a bare append of its events")
        for store, url in stores.items():
            must = None if store == "memory" else EXECUTE
            compared(report, store, must, partial(executions, url, times), rounds)
        print("\na turn of a function, × its appends by hand")
        for store, url in stores.items():
            for history in HISTORIES:
                must = SEND if store in ("memory", "sqlite") else None
                measured = partial(turns, url, history, times)
                compared(report, f"{store}, {history:,} messages of history", must, measured, rounds)
    services(rounds, options.sessions, options.turns)
    if options.check and report.missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
