"""The client that makes a call: it is told how far the call is, and asked what the program asks a person."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp.shared.exceptions import MCPError

from harnpy.agent.people.requests import HumanCancelled
from harnpy.serve.mcp.forms import form, response

if TYPE_CHECKING:
    from typing import Any

    from mcp.server.context import ServerRequestContext

    from harnpy.reading.dicts import Dict


class McpCaller:
    """The caller of one request."""

    def __init__(self, context: ServerRequestContext[Any, Any]) -> None:
        self._session = context.session
        self._request = context.request_id
        self._sending: list[asyncio.Task[None]] = []

    def report(self, current: float, total: float | None, message: str) -> None:
        sending = self._session.report_progress(current, total, message)
        self._sending.append(asyncio.ensure_future(sending))

    async def sent(self) -> None:
        """Wait until all reports are sent: they must come before the result."""
        await asyncio.gather(*self._sending, return_exceptions=True)

    async def ask(self, request: Dict) -> Dict:
        """Have the client's user fill in a form. Raises HumanCancelled."""
        able = self._session.client_capabilities
        if not self._session.can_send_request or able is None or able.elicitation is None:
            raise HumanCancelled("the MCP client can't ask its user")
        message, schema = form(request)
        try:
            filled = await self._session.elicit_form(message, schema, self._request)
        except MCPError as error:
            raise HumanCancelled(f"the MCP client failed to ask its user: {error}") from None
        if filled.action != "accept":
            raise HumanCancelled("the user declined" if filled.action == "decline" else "the user cancelled")
        return response(request, filled.content or {})
