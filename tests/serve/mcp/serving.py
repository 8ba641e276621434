"""A served file, and the SDK's own client beside it in one loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.server.lowlevel import Server

from harnpy import Vm
from harnpy.serve.mcp_server import serve
from tests.worlds import world_with

Session = Callable[[Client], Awaitable[None]]


class Served:
    """A file that was served: what it printed."""

    def __init__(self) -> None:
        self.output = ""

    def write(self, text: str) -> None:
        self.output += text


@asynccontextmanager
async def served(
    path: Path, source: str, printed: Served | None = None, evaluator: str = "compile", **how: Any
) -> AsyncIterator[Server]:
    """The server for a file with ``source``, which runs until the block ends."""
    path.write_text(source, encoding="utf-8")
    vm = Vm(world_with(write_out=(printed or Served()).write), evaluator=evaluator)
    found = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def transport(server: Server) -> None:
        found.set_result(server)
        await over.wait()

    serving = asyncio.create_task(serve(vm, str(path), transport, **how))
    await asyncio.wait((found, serving), return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        await serving
    try:
        yield await found
    finally:
        over.set()
        await serving


def converse(
    path: Path,
    source: str,
    session: Session,
    printed: Served | None = None,
    mode: str = "auto",
    user: Any = None,
    **how: Any,
) -> None:
    """Serve a file with ``source`` to a client in the same process, and do ``session`` with that.

    ``mode``: ``"legacy"`` for the protocol before 2026-07-28, which most clients speak. ``user`` fills in
    forms.
    """

    async def main() -> None:
        async with (
            served(path, source, printed, **how) as server,
            Client(server, mode=mode, elicitation_callback=user) as client,
        ):
            await session(client)

    asyncio.run(main())


def text_of(result: Any) -> str:
    """The text of a result, of a failure behind `ERROR`."""
    text = "\n".join(part.text for part in result.content)
    return f"ERROR {text}" if result.is_error else text
