"""Programs that we talk to: none outlives us, whatever ends us."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from harnpy.world import World, processes
from harnpy.world.effects import PROCESS
from harnpy.world.guarded import GuardedProcesses
from harnpy.world.processes import Companion, RealProcesses
from tests.support import wait_until

#: Two processes of one group that end only when they are ended, and say who they are.
_ENDLESS = "trap '' TERM; sh -c \"trap '' TERM; echo \\$\\$; exec sleep 1000\" & echo $$; wait; sleep 1000"


def with_companion(use: Callable[[Companion], Awaitable[Any]], script: str) -> Any:
    async def run() -> Any:
        companion = await RealProcesses().start(["/bin/sh", "-c", script], ".")
        try:
            return await use(companion)
        finally:
            await companion.stop()

    return asyncio.run(run())


def is_gone(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def test_lines_go_both_ways_and_end() -> None:
    async def use(companion: Companion) -> list[bytes]:
        await companion.write(b"one\n")
        return [await companion.line(), await companion.line(), await companion.line()]

    assert with_companion(use, 'read x; echo "got $x"; printf rest') == [b"got one\n", b"rest", b""]


def test_one_that_ends_with_its_input_is_not_waited_for() -> None:
    async def use(companion: Companion) -> int:
        return companion.pid

    assert is_gone(with_companion(use, "cat"))


def test_one_that_ignores_everything_is_killed_with_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 0.05)

    async def use(companion: Companion) -> list[int]:
        return [int(await companion.line()) for _ in range(2)]

    pids = with_companion(use, _ENDLESS)
    wait_until(lambda: all(map(is_gone, pids)))


def test_one_that_leaves_its_group_is_killed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 0.05)
    leaving = "import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(1000)"
    pid = with_companion(lambda companion: companion.line(), f"exec {sys.executable} -c '{leaving}'")
    assert is_gone(int(pid))


def test_stopping_hurries_when_it_is_cancelled() -> None:
    async def use(companion: Companion) -> list[int]:
        pids = [int(await companion.line()) for _ in range(2)]
        stopping = asyncio.ensure_future(companion.stop())
        await asyncio.sleep(0)
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        assert is_gone(companion.pid)
        return pids

    pids = with_companion(use, _ENDLESS)
    wait_until(lambda: all(map(is_gone, pids)))


def test_stopping_again_signals_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of its group may be somebody else's by then."""
    signalled: list[int] = []

    async def use(companion: Companion) -> None:
        await companion.stop()
        monkeypatch.setattr(os, "killpg", lambda group, number: signalled.append(group))

    with_companion(use, "cat")
    assert signalled == []


@pytest.mark.parametrize("turns", range(5))
def test_a_start_that_is_cancelled_leaves_nothing_and_ends(turns: int, tmp_path: Path) -> None:
    """Whatever it waits for in the loop is cancelled with it, as at the end of a program."""
    note = tmp_path / "pid"

    async def run() -> None:
        script = f"trap '' TERM; echo $$ > {note}; sleep 1000"
        starting = asyncio.ensure_future(RealProcesses().start(["/bin/sh", "-c", script], "."))
        for _ in range(turns):
            await asyncio.sleep(0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        async with asyncio.timeout(10):
            await asyncio.gather(*others, return_exceptions=True)
        if not starting.cancelled():
            await starting.result().stop()

    asyncio.run(run())
    text = note.read_text() if note.exists() else ""
    if text.strip():
        wait_until(lambda: is_gone(int(text)))


def test_writing_to_one_that_has_ended_is_an_error() -> None:
    async def use(companion: Companion) -> None:
        assert await companion.line() == b""
        while True:  # it may still be about to end
            await companion.write(b"x\n")
            await asyncio.sleep(0)

    with pytest.raises(ConnectionError):
        with_companion(use, "exit 3")


def test_the_guards_of_rules_are_asked() -> None:
    class Refusing:
        def require(self, effect: str, target: str) -> None:
            raise PermissionError(effect, target)

    guarded = GuardedProcesses(RealProcesses(), Refusing())  # type: ignore[arg-type]
    with pytest.raises(PermissionError) as caught:
        asyncio.run(guarded.start(["cat"], World().files.cwd()))
    assert caught.value.args == (PROCESS, "cat")


def test_they_die_with_us_when_nothing_can_react() -> None:
    """Also those of the group that ignore the end of their input."""
    code = (
        "import asyncio, sys\n"
        "from harnpy.world.processes import RealProcesses\n"
        "async def main():\n"
        "    companion = await RealProcesses().start(['/bin/sh', '-c', sys.argv[1]], '.')\n"
        "    print((await companion.line() + await companion.line()).decode(), flush=True)\n"
        "    await asyncio.sleep(1000)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, _ENDLESS], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pids = [int(parent.stdout.readline()) for _ in range(2)]
        assert not any(map(is_gone, pids))
        os.kill(parent.pid, signal.SIGKILL)
    wait_until(lambda: all(map(is_gone, pids)))


def test_what_it_writes_to_standard_error_is_told_by_lines() -> None:
    """All of it is, before it has stopped; the last line that says something is known."""
    told: list[str] = []

    async def run() -> str:
        script = "printf 'one\\ntwo\\n\\n' >&2; exec >&-; printf 'rest \\377' >&2"
        companion = await RealProcesses().start(["/bin/sh", "-c", script], ".", heard=told.append)
        assert await companion.line() == b""
        words = await companion.last_words()
        await companion.stop()
        return words

    assert asyncio.run(run()) == "rest \N{REPLACEMENT CHARACTER}"
    assert told == ["one\n", "two\n", "\n", "rest \N{REPLACEMENT CHARACTER}"]


def test_an_endless_line_is_told_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_CHUNK", 8)
    told: list[str] = []

    async def run() -> None:
        script = "printf 'a line that is long' >&2"
        companion = await RealProcesses().start(["/bin/sh", "-c", script], ".", heard=told.append)
        await companion.last_words()
        await companion.stop()

    asyncio.run(run())
    assert "".join(told) == "a line that is long"
