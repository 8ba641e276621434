"""Server cards: what a server says of itself, to be read without a connection. Spec: 07 §15.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import NamedFault
from harnpy.text.json.reader import JsonError, parse_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.mcp.servers import Servers
    from harnpy.world import World
    from harnpy.world.http import Http

#: Seconds that a card is kept.
_FRESH = 300.0

#: Seconds that a server has to answer.
_PATIENCE = 30.0

_WELL_KNOWN = "/.well-known/"
_CARD = "mcp-card"


class Cards:
    """``http`` is for cards at a URL; ``path`` makes the path of a file that a program names absolute."""

    def __init__(
        self, servers: Servers, world: World, http: Callable[[], Http], path: Callable[[str], str]
    ) -> None:
        self._servers = servers
        self._world = world
        self._http = http
        self._path = path
        self._kept: dict[str, tuple[float, Any]] = {}

    async def card(self, target: str) -> Any:
        """Return the card at a URL or in a file, or that of a declared server. Raises `NamedFault`."""
        source = self._source(target)
        now = self._world.clock.monotonic()
        self._kept = {name: kept for name, kept in self._kept.items() if now - kept[0] < _FRESH}
        if source in self._kept:
            return self._kept[source][1]
        text = await self._fetched(source) if _is_url(source) else self._read(source)
        try:
            card = parse_json(text)
        except JsonError as error:
            raise NamedFault(f"parse: {error}") from None
        self._kept[source] = now, card
        return card

    def _source(self, target: str) -> str:
        if _is_url(target) or "/" in target or "\\" in target or target.endswith(".json"):
            return target
        declared = self._servers.declared(target)
        if declared is None:
            raise NamedFault(
                f"no MCP server '{target}' registered (check harn.toml) — pass a URL or path directly instead"
            )
        if declared.card is None:
            raise NamedFault(f"server '{target}' has no 'card' field in harn.toml")
        return declared.card

    def _read(self, path: str) -> str:
        try:
            return self._world.files.read_text(self._path(path))
        except OSError as error:
            raise NamedFault(f"io: read {path}: {error.strerror} (os error {error.errno})") from None
        except UnicodeDecodeError:
            raise NamedFault(f"io: read {path}: stream did not contain valid UTF-8") from None

    async def _fetched(self, url: str) -> str:
        import httpx2

        try:
            async with self._http().client("mcp_connect") as client:
                response = await client.get(url, timeout=_PATIENCE)
                if not response.is_success and _WELL_KNOWN not in url:
                    response = await client.get(url.rstrip("/") + _WELL_KNOWN + _CARD, timeout=_PATIENCE)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise NamedFault(f"http: {error or type(error).__name__}") from None
        if not response.is_success:
            raise NamedFault(f"http: {url} returned status {response.status_code}")
        return response.text


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))
