"""Processes on a tape that a program talks to: what they are told, and what they say. Spec: 13 §3."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from harnpy.durable.journal import PIECE, PROCESS, SEND
from harnpy.durable.recorded import RecordedProcesses
from harnpy.durable.values import told
from harnpy.tape.holding import LEFT_BEHIND, Held

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from harnpy.tape.journal import TapeJournal
    from harnpy.world.processes import Companion, Heard


class TapedProcesses(RecordedProcesses):
    _journal: TapeJournal

    async def start(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str] | None = None,
        heard: Heard | None = None,
    ) -> Companion:
        companion = TapedCompanion(self._journal, argv[0], heard)
        hear = None if heard is None else companion.note
        await companion.begin(
            lambda: self._processes.start(argv, cwd, env, hear), lambda: ["start", told(argv)]
        )
        return companion  # type: ignore[return-value]  # it has what programs use of one


class TapedCompanion:
    """A process that runs outside, or ran when the tape was made.

    What it writes to standard error is told with the next effect that it has, at once where its next line is
    waited for.
    """

    def __init__(self, journal: TapeJournal, name: str, heard: Heard | None) -> None:
        self.pid = 0
        self._journal = journal
        self._name = name
        self._heard = heard
        self._held: Held[Companion] = Held(journal, lambda real: real.stop())
        self._reading: asyncio.Task[bytes] | None = None
        self._said: list[str] = []
        self._spoke = asyncio.Event()

    async def begin(self, start: Callable[[], Awaitable[Companion]], asked: Callable[[], Any]) -> None:
        """Start it. Raises OSError when it can't be started."""

        async def pid() -> int:
            return (await self._held.open(start)).pid

        self.pid = await self._journal.waited(PROCESS, pid, asked)

    async def write(self, line: bytes) -> None:
        """Send a line. Raises ConnectionError when the program reads no more."""
        text = line.decode("utf-8", "replace")
        await self._effect(SEND, lambda: self._real().write(line), ["write", told(text)])

    async def line(self) -> bytes:
        """Return what it wrote next; empty when nothing comes any more, or a line has no end.

        Raises ConnectionAbortedError for one that a branch doesn't have.
        """
        while True:
            line: bytes | None = await self._effect(PIECE, self._next)
            if line is not None:
                return line

    async def last_words(self) -> str:
        """Return the last line that it has written to standard error, for one whose output has ended."""
        last: str = await self._effect(PIECE, lambda: self._real().last_words(), ["last_words"])
        return last

    async def stop(self) -> None:
        """End the program and its group."""
        try:
            await self._effect(SEND, self._held.close, ["stop"])
        finally:
            self._held.end()  # also when nobody waits for it any more

    def note(self, line: str) -> None:
        """Outside: it has written a line to standard error."""
        self._said.append(line)
        self._spoke.set()

    async def _effect(self, kind: str, act: Callable[[], Awaitable[Any]], asked: Any = None) -> Any:
        """Return what ``act()`` returns, and tell what was said until then."""

        async def both() -> list[Any]:
            value = await act()
            said, self._said = self._said, []
            self._spoke.clear()
            return [value, said] if said else [value]

        wanted = None if asked is None else lambda: asked
        if kind == SEND and asked[0] == "write":  # what comes of it comes before an answer
            value, *said = await self._journal.waited(kind, both, wanted)
        else:
            value, *said = await self._journal.of_process(self._name, kind, both, wanted)
        if self._heard is not None:
            for line in said[0] if said else ():
                self._heard(line)
        return value

    async def _next(self) -> bytes | None:
        """Outside: return the next line, or None as soon as something was written to standard error."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._real().line())
        spoke = asyncio.ensure_future(self._spoke.wait())
        try:
            await asyncio.wait([self._reading, spoke], return_when=asyncio.FIRST_COMPLETED)
        finally:
            spoke.cancel()
        if not self._reading.done():
            return None
        reading, self._reading = self._reading, None
        return reading.result()

    def _real(self) -> Companion:
        if self._held.real is None:
            raise ConnectionAbortedError(f"the process `{self._name}` doesn't run: {LEFT_BEHIND}")
        return self._held.real
