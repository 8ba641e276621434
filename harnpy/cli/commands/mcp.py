"""`harnpy mcp serve`: a Harn file as an MCP server. Spec: 09 §11.4."""

from __future__ import annotations

import asyncio
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.command_options import site_options, trust_option
from harnpy.cli.console import complain
from harnpy.cli.usage import Group

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.lowlevel import Server

    from harnpy.serve.site import Site

    Transport = Callable[[Server[Any]], Awaitable[None]]


@click.group("mcp", cls=Group, short_help="Serve a Harn file to MCP clients.")
def command() -> None:
    """The Model Context Protocol. Needs the extra: pip install 'harnpy[mcp]'."""


@command.command("serve", short_help="Serve a file's functions as tools.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--transport",
    type=click.Choice(["stdio", "http"]),
    default="stdio",
    help="How clients connect: over stdin and stdout (default), or over streamable HTTP.",
)
@site_options("127.0.0.1:8765", "HARN_SERVE_MCP_BIND", "HTTP: ")
@click.option("--path", metavar="PATH", default="/mcp", help="HTTP: the path of the endpoint (default /mcp).")
@click.option(
    "--sessions",
    is_flag=True,
    help="Also serve the file's sessions, as resources, with their verbs as tools.",
)
@trust_option
@click.option("--debug", is_flag=True, help="Show the Python traceback of a failure.")
def serve(
    file: str,
    transport: str,
    site: Site,
    path: str,
    sessions: bool,
    debug: bool,
) -> int:
    """Serve the `pub fn`s and `tool` declarations of FILE as MCP tools, until the client disconnects.

    A tool's description is the comment `/** … */` above the function, and its schema comes from the types of
    its parameters and result. FILE is loaded once; calls run concurrently, each in a task of its own.
    """
    if find_spec("mcp") is None:
        complain("error: `harnpy mcp serve` needs the MCP SDK: pip install 'harnpy[mcp]'")
        return FAILED
    if transport == "stdio":
        return _serve(file, _stdio(), sessions, debug)
    if not path.startswith("/"):
        raise click.BadParameter(f"'{path}' does not begin with /", param_hint="--path")
    return _serve(file, _http(site._replace(path=path)), sessions, debug)


def _serve(file: str, transport: Transport, sessions: bool, debug: bool) -> int:
    """Serve until the transport or the program ends; return the exit status."""
    from harnpy import Vm
    from harnpy.cli.console import report_failure
    from harnpy.cli.project_setup import bind_project
    from harnpy.serve.mcp_server import serve as served
    from harnpy.serve.program import NotServed
    from harnpy.vm.errors import ExitRequest

    vm = Vm()
    bind_project(vm, file)
    try:
        asyncio.run(served(vm, file, transport, sessions))
    except NotServed as error:
        complain(f"error: {error}")
        return FAILED
    except ExitRequest as request:
        return request.code
    except Exception as error:
        return report_failure(error, debug)
    return OK


def _stdio() -> Transport:
    from harnpy.cli.process import take_streams
    from harnpy.serve.mcp_stdio import serve_stdio

    reader, writer = take_streams()
    return partial(serve_stdio, reader=reader, writer=writer)


def _http(site: Site) -> Transport:
    from harnpy import World
    from harnpy.serve.mcp_http import serve_http

    def announce(url: str) -> None:
        complain(f"[harn] mcp: serving at {url}")
        if site.is_exposed:
            complain("warning: mcp: whoever reaches this address may call the tools: set HARN_SERVE_API_KEY")

    return partial(serve_http, site=site, listening=World().listening, announce=announce)
