"""Serving one file over one transport, from its opening to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.serve.functions import functions_of
from harnpy.serve.mcp.server import server_of
from harnpy.serve.mcp.tools import Tool
from harnpy.serve.program import Program

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from mcp.server.lowlevel import Server

    from harnpy import Vm


class NothingOffered(Exception):
    """The file has nothing to call."""


async def serve(vm: Vm, file: str, transport: Callable[[Server[Any]], Awaitable[None]]) -> None:
    """Offer what ``file`` has to clients that come by ``transport``, until that ends.

    Raises OSError, SourceFault and VmError for a file that can't be run, NothingOffered for one without
    anything to call.
    """
    async with Program(vm, file) as program:
        tools = {name: Tool(function) for name, function in functions_of(program.library).items()}
        if not tools:
            raise NothingOffered(f"{file} offers nothing: it has no `pub fn` and no `tool`")
        await transport(server_of(program, tools))
