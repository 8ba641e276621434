"""The live sessions of a served program as MCP resources: listed, read, watched. Spec: 08 §1, 09 §11.4."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from harnpy.text.json.writer import as_data, to_json

if TYPE_CHECKING:
    from typing import Any

    from mcp.server.context import ServerRequestContext
    from mcp.server.subscriptions import ServerEvent

    from harnpy.serve.program import Program

    Context = ServerRequestContext[Any, Any]

_SCHEME = "harn://sessions/"
_JSON = "application/json"


class Sessions:
    """Answers `resources/*`; ``changes`` are published as they are noticed, by `look`."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._sessions = program.vm.sessions
        self.changes = InMemorySubscriptionBus()
        self._seen = self._versions()
        self._publishing: set[asyncio.Task[None]] = set()
        # What a loop does shows while it runs; what other verbs do, when their call has ended.
        self._sessions.observers.append(lambda event: self.look())

    async def list(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        ids = await self._program.do(self._sessions.ids)
        return types.ListResourcesResult(resources=[_listed(id) for id in reversed(ids)])

    async def templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="session",
            uri_template=f"{_SCHEME}{{id}}",
            description="A session by its id: its messages, its state and where it comes from.",
            mime_type=_JSON,
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        snapshot = await self._program.do(lambda: self._snapshot(params.uri))
        if snapshot is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Resource not found: {params.uri}")
        contents = types.TextResourceContents(uri=params.uri, mime_type=_JSON, text=snapshot)
        return types.ReadResourceResult(contents=[contents])

    def _snapshot(self, uri: str) -> str | None:
        """What `agent_session_snapshot` returns, as JSON; None when there is no such session."""
        if not uri.startswith(_SCHEME):
            return None
        id = unquote(uri.removeprefix(_SCHEME), errors="surrogatepass")
        snapshot = self._sessions.snapshot_value(id)
        return None if snapshot is None else to_json(as_data(snapshot))

    def look(self) -> None:
        """Publish what has changed since the last look."""
        before, self._seen = self._seen, self._versions()
        if before.keys() != self._seen.keys():
            self._publish(ResourcesListChanged())
        for id in before.keys() | self._seen.keys():
            if before.get(id) != self._seen.get(id):
                self._publish(ResourceUpdated(uri_of(id)))

    def _versions(self) -> dict[str, int]:
        return {id: resident.session.version for id, resident in self._sessions.by_id.items()}

    def _publish(self, event: ServerEvent) -> None:
        publishing = asyncio.ensure_future(self.changes.publish(event))
        self._publishing.add(publishing)
        publishing.add_done_callback(self._publishing.discard)


def uri_of(id: str) -> str:
    """The URI of a session's resource; an id may be any text."""
    return _SCHEME + quote(id, safe="", errors="surrogatepass")


def _listed(id: str) -> types.Resource:
    return types.Resource(name=id, uri=uri_of(id), mime_type=_JSON)
