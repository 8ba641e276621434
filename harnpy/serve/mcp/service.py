"""Serving one file over one transport, from its opening to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.serve.errors import NotServed
from harnpy.serve.functions import functions_of
from harnpy.serve.mcp.server import server_of
from harnpy.serve.mcp.tools import Tool
from harnpy.serve.program import Program
from harnpy.serve.session_verbs import session_verbs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from mcp.server.lowlevel import Server

    from harnpy import Vm


async def serve(
    vm: Vm, file: str, transport: Callable[[Server[Any]], Awaitable[None]], with_sessions: bool = False
) -> None:
    """Offer what ``file`` has to clients that come by ``transport``, until that ends.

    ``with_sessions``: also its live sessions, and the verbs to act on them. Raises OSError, SourceFault and
    VmError for a file that can't be run, NotServed for one without anything to call.
    """
    async with Program(vm, file) as program:
        functions = functions_of(program.library)
        if with_sessions:
            functions = session_verbs(vm) | functions
        if not functions:
            raise NotServed(f"{file} offers nothing: it has no `pub fn` and no `tool`")
        tools = {name: Tool(function) for name, function in functions.items()}
        await transport(server_of(program, tools, with_sessions))
