"""The version that a connection speaks: how both sides agree on it, and what requests carry. Spec: 07 §15.1.

From 2026-07-28 on there is no handshake: each request says what it is. Before, `initialize` says it once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS

from harnpy.formats.dicts import Dict, as_dict
from harnpy.mcp.server_spec import ProbeFailed, ServerError, ServerLeft, Unanswered, Unreadable
from harnpy.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.mcp.connection import Connection
    from harnpy.mcp.transports import Transport

_ABOUT = {"name": "harnpy", "version": __version__}
_DISCOVER = "server/discover"
#: Seconds that a server may take to say which versions it speaks; older ones may never answer.
_PATIENCE = 10.0


def is_modern(version: str) -> bool:
    """Return whether requests of a version stand alone."""
    return version in MODERN_PROTOCOL_VERSIONS


async def negotiate(connection: Connection, transport: Transport, wanted: str | None) -> None:
    """Agree on a version: the ``wanted`` one, else the newest that the server speaks.

    Raises `ProbeFailed` when a server ends because it was asked what it speaks, else as requests do.
    """
    if wanted is not None and is_modern(wanted):
        transport.version = wanted
        return
    if wanted is None and await _discovered(connection, transport):
        return
    try:
        await initialize(connection, transport, wanted)
    except ServerError as error:
        # It took so long to start that it answered only now.
        is_known = wanted is None and error.code == UNSUPPORTED_PROTOCOL_VERSION
        if not (is_known and await _discovered(connection, transport)):
            raise


async def initialize(connection: Connection, transport: Transport, wanted: str | None = None) -> None:
    """Begin a session by the handshake."""
    transport.version = wanted or LATEST_HANDSHAKE_VERSION
    params = {"protocolVersion": transport.version, "capabilities": {}, "clientInfo": _ABOUT}
    result = await connection.request("initialize", params)
    version = result.get("protocolVersion")
    if isinstance(version, str):
        transport.version = version
    transport.about = as_dict(result.get("serverInfo"))
    await connection.notify("notifications/initialized")


async def _discovered(connection: Connection, transport: Transport) -> bool:
    """Take the newest version without a handshake that the server names; False if it names none."""
    version: str | None = LATEST_MODERN_VERSION
    for _ in range(2):
        if version is None:
            break
        transport.version = version
        sent = stamped(version, _DISCOVER, {})
        try:
            result = await connection.request(
                _DISCOVER, sent.params, headers=sent.headers, patience=_PATIENCE
            )
        except ServerError as error:
            if error.code is None:
                raise
            named = as_dict(error.data).get("supported")
            version = _newest(named) if error.code == UNSUPPORTED_PROTOCOL_VERSION else None
        except (Unanswered, Unreadable):
            break
        except ServerLeft as error:
            raise ProbeFailed(str(error)) from None
        else:
            version = _newest(result.get("supportedVersions"))
            transport.about = as_dict(as_dict(result.get("_meta")).get(SERVER_INFO_META_KEY))
            if version is not None:
                transport.version = version
            return version is not None
    return False


def _newest(named: Any) -> str | None:
    known = [version for version in MODERN_PROTOCOL_VERSIONS if isinstance(named, list) and version in named]
    return known[-1] if known else None


# What a request without a handshake says of itself, in its body and over HTTP in headers as well.


class Stamped(NamedTuple):
    params: Dict
    headers: dict[str, str]


def stamped(version: str, method: str, params: Mapping[str, Any], schema: Dict | None = None) -> Stamped:
    """Return a request's parameters and headers; ``schema`` is that of the arguments of the tool it calls."""
    meta = {
        **as_dict(params.get("_meta")),
        PROTOCOL_VERSION_META_KEY: version,
        CLIENT_INFO_META_KEY: _ABOUT,
        CLIENT_CAPABILITIES_META_KEY: {},
    }
    headers = {MCP_METHOD_HEADER: method}
    name = params.get(NAME_BEARING_METHODS.get(method, ""))
    if isinstance(name, str):
        headers[MCP_NAME_HEADER] = encode_header_value(name)
    if schema is not None:
        headers |= mcp_param_headers(x_mcp_header_map(schema), as_dict(params.get("arguments")))
    return Stamped({**params, "_meta": meta}, headers)


def is_offered(version: str, tool: Dict) -> bool:
    """Return whether a tool may be called: the headers that it asks for must be possible."""
    return not is_modern(version) or find_invalid_x_mcp_header(tool.get("inputSchema")) is None


# Answers that are no results yet: the server asks to be asked again.


_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.25


class Rounds:
    """The rounds of one request. Raises `ServerError` for a server that asks for what we don't offer."""

    def __init__(self, patience: float) -> None:
        self._until = asyncio.get_running_loop().time() + patience
        self._patience = patience
        self._pause = _FIRST_PAUSE

    async def again(self, params: Mapping[str, Any], result: Dict) -> Dict | None:
        """Return the parameters of the next round, after a pause; None for a result."""
        if result.get("resultType") != "input_required":
            return None
        asked = as_dict(result.get("inputRequests"))
        if asked:
            methods = sorted({str(as_dict(each).get("method")) for each in asked.values()})
            raise ServerError(f"MCP: the server asks for what harnpy doesn't offer: {', '.join(methods)}")
        if asyncio.get_running_loop().time() > self._until:
            raise Unanswered(f"MCP: server had no result within {self._patience:g}s")
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return {**params, "requestState": result.get("requestState")}
