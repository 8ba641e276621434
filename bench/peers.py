"""What does the same work cost with the sessions of other libraries?

    python bench/peers.py [--rounds N] [--length N] [--sessions N]

`bench/sessions.py` ends with this, in the same run. Every side works in memory, through its own public API,
in turns with the others in one asyncio run; a row is the median of the rounds. A peer that isn't installed
is skipped, with a notice.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import count
from statistics import median
from time import perf_counter
from typing import Any

from options import parser, peers_first

from harnpy.session import SessionRegistry

MESSAGE = {"role": "user", "content": "What do you remember?"}
#: How many sessions stay open while others come and go.
KEPT = 128
#: How many messages a session gets that comes and goes, or that are handed over at once.
BATCH = 100


class Side:
    """One library's sessions. The loops are the side's own, so that only some pay for `await`."""

    name: str
    #: Whether the library itself lets sessions go when there are more than `KEPT`.
    evicts = False

    def open(self, id: str) -> Any:
        raise NotImplementedError

    def close(self, session: Any) -> None:
        """Close a session."""

    async def append(self, sessions: list[Any]) -> None:
        """One message to each, one by one."""
        raise NotImplementedError

    async def extend(self, session: Any, length: int) -> None:
        """Add messages in the fastest way."""
        raise NotImplementedError

    async def read(self, session: Any) -> list[Any] | None:
        """Read all messages as copies; None: not supported."""
        return None

    async def share(self, session: Any) -> list[Any] | None:
        """Read all messages in a new list, shared with the session; None: not supported."""
        return None


class Harnpy(Side):
    """Messages are copied on their way in."""

    name = "harnpy"
    evicts = True

    def __init__(self) -> None:
        self.store = SessionRegistry(cap=KEPT)

    def open(self, id: str) -> str:
        return self.store.open(id)

    def close(self, session: str) -> None:
        self.store.close(session)

    async def append(self, sessions: list[str]) -> None:
        inject = self.store.inject
        for id in sessions:
            inject(id, MESSAGE)

    async def extend(self, session: str, length: int) -> None:
        await self.append([session] * length)

    async def read(self, session: str) -> list[Any]:
        return self.store.messages(session)

    async def share(self, session: str) -> list[Any]:
        found = self.store.session(session)
        assert found
        return found.messages()


class OpenAIAgents(Side):
    """Messages are rows of JSON in a SQLite database in memory, written and read in threads."""

    name = "OpenAI Agents SDK"

    def __init__(self) -> None:
        with peers_first():
            from agents import SQLiteSession

        self.make = SQLiteSession

    def open(self, id: str) -> Any:
        return self.make(id, ":memory:")

    def close(self, session: Any) -> None:
        session.close()

    async def append(self, sessions: list[Any]) -> None:
        for session in sessions:
            await session.add_items([MESSAGE])

    async def extend(self, session: Any, length: int) -> None:
        await session.add_items([MESSAGE] * length)

    async def read(self, session: Any) -> list[Any]:
        found: list[Any] = await session.get_items()
        return found


class Agently(Side):
    """Messages become objects in a list; by default, every addition checks whether to resize it."""

    def __init__(self, name: str = "Agently", **options: Any) -> None:
        from agently.core.session import Session

        self.name = name
        self.make = Session
        self.options = options

    def open(self, id: str) -> Any:
        return self.make(id, **self.options)

    async def append(self, sessions: list[Any]) -> None:
        for session in sessions:
            await session.async_add_chat_history(MESSAGE)

    async def extend(self, session: Any, length: int) -> None:
        await session.async_add_chat_history([MESSAGE] * length)

    async def share(self, session: Any) -> list[Any]:
        found: list[Any] = session.full_context
        return found


#: The package that a peer comes in, and its sides.
PEERS: dict[str, tuple[str, list[Callable[[], Side]]]] = {
    "OpenAI Agents SDK": ("openai-agents", [OpenAIAgents]),
    "Agently": ("agently", [Agently, lambda: Agently("Agently, auto_resize=False", auto_resize=False)]),
}


def installed() -> list[Side]:
    """The sides that can be measured, ours first. Reports what is missing."""
    sides: list[Side] = [Harnpy()]
    for name, (package, makers) in PEERS.items():
        try:
            sides += [make() for make in makers]
        except ImportError as error:
            print(f"  {name}: skipped, it can't be imported ({error}); pip install {package}")
    return sides


class Round:
    """One side's work of one round. Each method returns microseconds."""

    def __init__(self, side: Side, length: int, sessions: int) -> None:
        self.side = side
        self.length = length
        self.sessions = sessions
        self.open: deque[Any] = deque()
        self.ids = (f"session-{n}" for n in count())

    async def append_short(self) -> float:
        sessions = [await self.filled(10) for _ in range(20)]
        spent = await micros(self.side.append(sessions)) / len(sessions)
        await self.closed(sessions, 11)
        return spent

    async def append_long(self) -> float:
        session = await self.filled(self.length)
        spent = await micros(self.side.append([session] * 20)) / 20
        await self.closed([session], self.length + 20)
        return spent

    async def extend(self) -> float:
        session = await self.filled(10)
        spent = await micros(self.side.extend(session, BATCH)) / BATCH
        await self.closed([session], 10 + BATCH)
        return spent

    async def read(self) -> float | None:
        return await self.best_reading(self.side.read)

    async def share(self) -> float | None:
        return await self.best_reading(self.side.share)

    async def best_reading(self, read: Callable[[Any], Awaitable[list[Any] | None]]) -> float | None:
        session = await self.filled(self.length)
        spent = None
        if await read(session) is not None:
            spent = min([await micros(read(session)) for _ in range(5)])
        await self.closed([session], self.length)
        return spent

    async def churn(self) -> float:
        return await micros(self.come_and_go()) / (self.sessions * BATCH)

    async def come_and_go(self) -> None:
        for _ in range(self.sessions):
            session = self.side.open(next(self.ids))
            await self.side.append([session] * BATCH)
            self.open.append(session)
            if len(self.open) > KEPT:
                oldest = self.open.popleft()
                if not self.side.evicts:
                    self.side.close(oldest)

    async def filled(self, length: int) -> Any:
        session = self.side.open(next(self.ids))
        await self.side.extend(session, length)
        return session

    async def closed(self, sessions: list[Any], length: int) -> None:
        for session in sessions:
            found = await self.side.share(session) or await self.side.read(session) or []
            if len(found) != length:
                raise SystemExit(f"{self.side.name} answers {len(found)} messages of {length}")
            self.side.close(session)


async def micros(work: Awaitable[object]) -> float:
    begin = perf_counter()
    await work
    return (perf_counter() - begin) * 1e6


async def measure(sides: list[Side], rounds: int, length: int, sessions: int) -> None:
    """``sessions``: how many come and go in all."""
    works = [Round(side, length, max(1, sessions // rounds)) for side in sides]
    rows: dict[str, Callable[[Round], Awaitable[float | None]]] = {
        "append a message, at length 10": Round.append_short,
        f"append a message, at length {length:,}": Round.append_long,
        f"append {BATCH} at once, per message": Round.extend,
        f"read {length:,} messages, the reader's own": Round.read,
        f"read {length:,} messages, the session's": Round.share,
        f"{sessions:,} sessions × {BATCH} messages, {KEPT} of them open, per message": Round.churn,
    }
    for title, row in rows.items():
        costs: dict[str, list[float]] = {side.name: [] for side in sides}
        for turn in range(rounds + 1):  # one to warm up
            for work in works:
                gc.collect()
                spent = await row(work)
                if turn and spent is not None:
                    costs[work.side.name].append(spent)
        print_row(title, {name: median(found) for name, found in costs.items() if found})


def print_row(title: str, costs: dict[str, float]) -> None:
    print(f"  {title}")
    ours = costs[Harnpy.name]
    for name, cost in costs.items():
        ratio = "" if name == Harnpy.name else f"{cost / ours:12.2f} × harnpy"
        print(f"    {name:28}{cost:10.2f} µs{ratio}")


def compare(rounds: int = 5, length: int = 2_000, sessions: int = 300) -> None:
    print("\nthe same work elsewhere, per operation")
    sides = installed()
    gc.collect()
    gc.freeze()
    asyncio.run(measure(sides, rounds, length, sessions))
    gc.unfreeze()


if __name__ == "__main__":
    command = parser(__doc__, rounds=5)
    command.add_argument("--length", type=int, default=2_000, help="of a long session")
    command.add_argument("--sessions", type=int, default=300, help="that come and go")
    options = command.parse_args()
    compare(options.rounds, options.length, options.sessions)
