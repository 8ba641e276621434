"""A program that stays loaded, and what happens when it ends by itself. Spec: 09 §11.4."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harnpy import Limits, Vm
from harnpy.serve.program import Program
from harnpy.vm.errors import ExitRequest, LimitExceeded

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
