"""Descriptions of servers, as a connection needs them, and how calls of servers fail. Spec: 07 §15.1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harnpy.faults import Fault, MisuseError, NamedFault
from harnpy.formats.dicts import Dict, Options
from harnpy.formats.display import display
from harnpy.version import install_command

# How calls of MCP servers fail. Spec: 07 §15.1.


DISCONNECTED = "MCP client is disconnected"


class ServerError(Fault):
    """The server refuses: it answers with an error, whose ``code`` and ``data`` these are, or wants to know
    who asks."""

    def __init__(self, message: str, code: int | None = None, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class ToolError(ServerError):
    """The server's tool has failed, and says so."""


class ConnectionFault(MisuseError):
    """There is no connection to the server, or what comes over it can't be read."""


class Unanswered(ConnectionFault):
    """The server doesn't answer in time."""


class Unreadable(ConnectionFault):
    """The server answers with something else than MCP."""


class ServerLeft(ConnectionFault):
    """The server has closed the connection."""


class ProbeFailed(ServerLeft):
    """It did so when it was asked which versions it speaks."""


class NotStarted(NamedFault):
    """The program of a server can't be started."""


class SessionLost(ConnectionFault):
    """The server doesn't know the session any more; a new one may be begun."""


def require_sdk() -> None:
    """Raise `ConnectionFault` unless the SDK is installed."""
    try:
        import mcp_types  # noqa: F401
    except ImportError:
        raise ConnectionFault(f"MCP servers need the official SDK: {install_command('mcp')}") from None


# What is to be known of a server to connect to it. Spec: 07 §15.1.


STDIO, HTTP = "stdio", "http"


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """``command`` and ``env`` belong to `STDIO`, ``url`` and what follows to `HTTP`.

    ``env`` is added to our environment; a relative ``cwd`` counts from the working directory. What a
    ``quiet`` one writes to standard error isn't shown. ``proxy_server_name`` is what a proxy knows the server
    by. Without a ``protocol_version`` it is the newest that the server speaks.
    """

    name: str
    transport: str = STDIO
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    quiet: bool = False
    url: str = ""
    auth_token: str | None = field(default=None, repr=False)
    proxy_server_name: str | None = None
    protocol_version: str | None = None


def read_server_spec(given: Dict) -> ServerSpec:
    """Return the server that a dict describes; ``command`` may be a list that begins with the program.

    Raises `MisuseError` for what can't be read; what is missing for a connection is told when one is made.
    """
    options = Options(given)
    command, args, env = options.value("command"), options.value("args"), options.value("env") or {}
    if not isinstance(args, list | None):
        raise MisuseError("MCP `args` must be a list")
    if not isinstance(env, dict):
        raise MisuseError("MCP `env` must be a dict")
    program = [command] if isinstance(command, str) else _texts(command)
    return ServerSpec(
        name=options.string("name") or "",
        transport=options.string("transport") or STDIO,
        command=tuple(program + _texts(args)),
        env={name: display(value) for name, value in env.items()},
        cwd=options.string("cwd") or "",
        quiet=options.flag("quiet"),
        url=options.string("url") or "",
        auth_token=options.string("auth_token"),
        proxy_server_name=options.string("proxy_server_name"),
        protocol_version=options.string("protocol_version") or None,
    )


def _texts(items: Any) -> list[str]:
    return [display(item) for item in items] if isinstance(items, list) else []
