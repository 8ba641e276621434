"""How calls of MCP servers fail. Spec: 07 §15.1."""

from __future__ import annotations

from harnpy.faults import Fault, MisuseError, NamedFault

DISCONNECTED = "MCP client is disconnected"


class ServerError(Fault):
    """The server refuses: it answers with an error, or wants to know who asks."""


class ToolError(ServerError):
    """The server's tool has failed, and says so."""


class ConnectionFault(MisuseError):
    """There is no connection to the server, or what comes over it can't be read."""


class NotStarted(NamedFault):
    """The program of a server can't be started."""


class SessionLost(ConnectionFault):
    """The server doesn't know the session any more; a new one may be begun."""


def require_sdk() -> None:
    """Raise `ConnectionFault` unless the SDK is installed."""
    try:
        import mcp_types  # noqa: F401
    except ImportError:
        raise ConnectionFault("MCP servers need the official SDK: pip install 'harnpy[mcp]'") from None
