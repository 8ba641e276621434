"""A program that stays loaded, and what happens when it ends by itself. Spec: 09 §11.4."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harnpy import Limits, Vm
from harnpy.serve.program import Program
from harnpy.vm.errors import ExitRequest, LimitExceeded
from harnpy.vm.run.aio import Turns
from tests.support import ends

FILE = """
pub fn wait() { sleep(1h) }
pub fn leave() { return await(spawn { exit(3) }) }
pub fn crowd() { parallel each range(9).to_list() { n -> sleep(1h) } }
"""


@pytest.mark.parametrize(("name", "end"), [("leave", ExitRequest), ("crowd", LimitExceeded)])
def test_a_program_that_ends_by_itself_ends_the_block(
    tmp_path: Path, name: str, end: type[BaseException]
) -> None:
    path = tmp_path / "program.harn"
    path.write_text(FILE)

    async def serve(calls: list[asyncio.Future[object]]) -> None:
        async with Program(Vm(limits=Limits(tasks=6)), str(path)) as program:
            functions = program.module.functions
            calls += [asyncio.ensure_future(program.call(functions[each], [])) for each in ("wait", name)]
            await asyncio.Event().wait()

    async def main() -> None:
        calls: list[asyncio.Future[object]] = []
        with pytest.raises(end):
            await serve(calls)
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]
        await asyncio.wait(calls)

    asyncio.run(main())


COMPUTING = """
pub fn compute() { while true { } }
pub fn quick() { return 1 }
pub fn nap() { sleep(1ms)
  return 2 }
"""


def test_a_call_waits_for_few_time_slices_of_those_that_compute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "computing.harn"
    path.write_text(COMPUTING)
    slices = 0
    begin = Turns.begin

    def counted(turns: Turns) -> None:
        nonlocal slices
        slices += 1
        begin(turns)

    monkeypatch.setattr(Turns, "begin", counted)

    async def main() -> None:
        async with Program(Vm(), str(path)) as program:
            functions = program.module.functions
            calls = [asyncio.ensure_future(program.call(functions["compute"], [])) for _ in range(10)]
            while slices < 20:  # each has had its turn
                await asyncio.sleep(0)
            before = slices
            assert await program.call(functions["quick"], []) == 1
            assert slices - before < 10
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(main())


def test_a_call_that_sleeps_wakes_beside_one_that_computes(tmp_path: Path) -> None:
    path = tmp_path / "computing.harn"
    path.write_text(COMPUTING)

    async def main() -> None:
        async with Program(Vm(), str(path)) as program:
            functions = program.module.functions
            computing = asyncio.ensure_future(program.call(functions["compute"], []))
            with ends():
                assert await program.call(functions["nap"], []) == 2
            computing.cancel()
            await asyncio.gather(computing, return_exceptions=True)

    asyncio.run(main())
