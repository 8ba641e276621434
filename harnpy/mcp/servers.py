"""The servers of a program, shared by all that hold them, and server cards. Spec: 07 §15.1.

A server is started once and ended with the program.
"""

from __future__ import annotations

import asyncio
import os.path
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError, NamedFault
from harnpy.formats.dicts import Dict, Options
from harnpy.formats.json import JsonError, parse_json
from harnpy.mcp.client import PATIENCE, Client, LoopLock
from harnpy.mcp.server_spec import ServerSpec, read_server_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.mcp.connection import Serve
    from harnpy.world import World
    from harnpy.world.http import Http


@dataclass(frozen=True, slots=True)
class Declared:
    """A server that a project declares. An eager one is connected before the program starts."""

    spec: ServerSpec
    lazy: bool = False
    card: str | None = None
    keep_alive_ms: int = 0
    #: The directory of `harn.toml`, from which a relative card counts.
    root: str = ""


def read_declared(given: Dict, root: str = "") -> Declared:
    """Return the server that a table of the `harn.toml` in ``root`` describes: its paths count from there."""
    options = Options(given)
    spec = read_server_spec(given)
    return Declared(
        replace(spec, cwd=os.path.join(root, spec.cwd)),
        options.flag("lazy"),
        options.string("card"),
        options.count("keep_alive_ms", 0),
        root,
    )


@dataclass(slots=True)
class _Place:
    """A declared server, and those who hold it."""

    declared: Declared
    client: Client
    holders: int = 0
    lock: LoopLock = field(default_factory=LoopLock)
    leaving: asyncio.Task[None] | None = None


class Servers:
    """``http`` is for servers at a URL; ``serve`` runs a coroutine beside the program. ``patience``: seconds
    that an answer may take.
    """

    def __init__(
        self,
        world: World,
        http: Callable[[], Http],
        serve: Serve = asyncio.create_task,
        patience: float = PATIENCE,
    ) -> None:
        self._world = world
        self._http = http
        self._serve = serve
        self._patience = patience
        self._places: dict[str, _Place] = {}
        self._clients: set[Client] = set()

    # Clients, declared or not.

    async def connect(self, spec: ServerSpec) -> Client:
        """Return a client that is connected to the server; the program's end ends it. Raises as `Client`."""
        client = self._client(spec)
        await client.connect()
        self._clients.add(client)
        return client

    async def disconnect(self, client: Client) -> None:
        self._clients.discard(client)
        await client.disconnect()

    async def suspend(self) -> None:
        """End every connection, for the end of a run. What calls a server afterwards connects again."""
        clients = [*self._clients, *(place.client for place in self._places.values())]
        await asyncio.gather(*(client.suspend() for client in clients), return_exceptions=True)

    def _client(self, spec: ServerSpec) -> Client:
        return Client(spec, self._world, self._http, self._serve, self._patience)

    # The declared ones.

    def declare(self, servers: Iterable[Declared]) -> None:
        """Make servers known, by their names."""
        for declared in servers:
            self._places[declared.spec.name] = _Place(declared, self._client(declared.spec))

    async def connect_eager(self) -> dict[str, Client | Exception]:
        """Connect to all that aren't lazy; return each one's client, or what its connection failed with.

        `client` returns also one that failed: using it says why.
        """
        places = {name: place for name, place in self._places.items() if not place.declared.lazy}
        outcomes = await asyncio.gather(
            *(place.client.connect() for place in places.values()), return_exceptions=True
        )
        return {
            name: outcome if isinstance(outcome, Exception) else place.client
            for (name, place), outcome in zip(places.items(), outcomes, strict=True)
        }

    def client(self, name: str) -> Client:
        """Return the client of a declared server, connected or not."""
        return self._places[name].client

    def declared(self, name: str) -> Declared | None:
        place = self._places.get(name)
        return None if place is None else place.declared

    async def ensure_active(self, name: str) -> Client:
        """Return the client of a declared server, connected, and held once more.

        Raises `MisuseError` for an unknown one, else as `Client.connect`.
        """
        place = self._places.get(name)
        if place is None:
            raise MisuseError(f"mcp: no server named '{name}' is registered (check harn.toml)")
        _stay(place)
        async with place.lock():
            if not place.client.is_connected:
                await place.client.connect()
        place.holders += 1
        return place.client

    async def release(self, name: str) -> None:
        """Take one holder away. A lazy server that has none is disconnected, at once or after a while."""
        place = self._places.get(name)
        if place is None or not place.declared.lazy:
            return
        place.holders = max(0, place.holders - 1)
        if place.holders or not place.client.is_connected:
            return
        if not place.declared.keep_alive_ms:
            await self._leave(place)
            return
        _stay(place)
        place.leaving = self._serve(self._leave_later(place))

    async def _leave_later(self, place: _Place) -> None:
        await asyncio.sleep(place.declared.keep_alive_ms / 1000)
        place.leaving = None
        await self._leave(place)

    async def _leave(self, place: _Place) -> None:
        async with place.lock():
            if not place.holders:
                await place.client.disconnect()

    def status(self) -> list[Dict]:
        """Return ``{name, lazy, active, ref_count, card?}`` of the declared servers, by name."""
        return [_status(place) for _, place in sorted(self._places.items())]


def _stay(place: _Place) -> None:
    """Don't disconnect a server that was about to be."""
    if place.leaving is not None:
        place.leaving.cancel()
        place.leaving = None


def _status(place: _Place) -> Dict:
    declared = place.declared
    status: Dict = {
        "name": declared.spec.name,
        "lazy": declared.lazy,
        "active": place.client.is_connected,
        "ref_count": place.holders if declared.lazy else 1,
    }
    return status if declared.card is None else {**status, "card": declared.card}


# Server cards: what a server says of itself, to be read without a connection. Spec: 07 §15.1.


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
        card = declared.card
        return card if _is_url(card) else os.path.join(declared.root, card)

    def _read(self, path: str) -> str:
        try:
            return self._world.files.read_text(self._path(path))
        except OSError as error:
            raise NamedFault(f"io: read {path}: {error.strerror} (os error {error.errno})") from None
        except UnicodeDecodeError:
            raise NamedFault(f"io: read {path}: stream did not contain valid UTF-8") from None

    async def _fetched(self, url: str) -> str:
        import httpx2

        from harnpy.world.http_client import failure

        try:
            async with self._http().client("mcp_connect") as client:
                response = await client.get(url, timeout=_PATIENCE)
                if not response.is_success and _WELL_KNOWN not in url:
                    response = await client.get(url.rstrip("/") + _WELL_KNOWN + _CARD, timeout=_PATIENCE)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise NamedFault(f"http: {failure(error).text}") from None
        if not response.is_success:
            raise NamedFault(f"http: {url} returned status {response.status_code}")
        return response.text


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))
