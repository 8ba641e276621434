"""Sessions: options, connections and cookies that requests share, and the handles of what stays open.

Spec: 04 §21.2.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from harnpy.formats.display import display
from harnpy.net.errors import HttpError
from harnpy.world.threads import OfProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.cookiejar import CookieJar

    import httpx2

    from harnpy.formats.dicts import Dict
    from harnpy.world.connections import Settings
    from harnpy.world.http import Http

# Names of what stays open between two calls: `<kind>-<n>`. Spec: 04 §21.2.


T = TypeVar("T")


def read_handle(name: str, value: Any) -> str:
    """Return the handle that the builtin ``name`` was given. Raises `HttpError`."""
    if type(value) is dict:
        value = value.get("id")
        if value is None:
            raise HttpError(f"{name}: handle dict must contain id")
        return display(value)
    if type(value) is not str:
        raise HttpError(f"{name}: first argument must be a handle string or dict")
    return value


class Handles(Generic[T]):
    """Open things by their handles. ``kind`` begins a handle, ``noun`` is what messages call such a thing."""

    kind: ClassVar[str]
    noun: ClassVar[str]

    def __init__(self) -> None:
        self._numbers = count(1)
        self._open: dict[str, T] = {}

    def add(self, opened: T) -> str:
        """Return a new handle."""
        handle = f"{self.kind}-{next(self._numbers)}"
        self._open[handle] = opened
        return handle

    def get(self, name: str, value: Any) -> T:
        """Return what the handle ``value`` stands for. Raises `HttpError`."""
        handle = read_handle(name, value)
        if handle not in self._open:
            raise HttpError(f"{name}: unknown {self.noun} '{handle}'")
        return self._open[handle]

    def take(self, name: str, value: Any) -> T | None:
        """Return it, and forget it; None when there is none. Raises `HttpError` for what is no handle."""
        return self._open.pop(read_handle(name, value), None)

    def __iter__(self) -> Iterator[T]:
        return iter([*self._open.values()])


class _Closable(Protocol):
    async def aclose(self) -> None: ...


C = TypeVar("C", bound=_Closable)


class Closing(Handles[C]):
    """Things that end with the program."""

    async def aclose(self) -> None:
        """Close all of them; their handles are unknown then."""
        for opened in self:
            await opened.aclose()
        self._open.clear()


# The clients that requests share: one for all that have their connections made in the same way.


class Clients(OfProcess):
    """``cookies`` makes the jar that they share; without it they keep none. In a process that was forked off
    they make connections of their own."""

    def __init__(self, http: Http, cookies: Callable[[], CookieJar] | None = None) -> None:
        self._http = http
        self._new_jar = cookies
        self._jar: CookieJar | None = None
        self._open: dict[Settings, httpx2.AsyncClient] = {}
        self._is_over = False
        self.bind()

    def forked(self) -> None:
        self._inherited, self._open = self._open, {}

    def of(self, settings: Settings) -> httpx2.AsyncClient:
        """The client with these settings. Raises `HttpError`: its files, or it is over."""
        if self._is_over:
            raise HttpError("http: the session was closed")
        found = self._open.get(settings)
        if found is None:
            if self._jar is None and self._new_jar is not None:
                self._jar = self._new_jar()
            try:
                found = self._http.client("http_request", settings=settings, cookies=self._jar)
            except OSError as error:
                raise HttpError(f"http: tls: {error.strerror or error}: {_paths(settings)}") from None
            self._open[settings] = found
        return found

    async def end(self) -> None:
        """Close the connections; there will be no other ones."""
        self._is_over = True
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the next request opens new ones."""
        while self._open:
            _, client = self._open.popitem()
            await client.aclose()


def _paths(settings: Settings) -> str:
    return ", ".join(filter(None, (settings.ca, settings.certificate, settings.key)))


class Session(NamedTuple):
    """``options``: of every request, unless it has its own."""

    options: Dict
    clients: Clients


class Sessions(Handles[Session]):
    """The open sessions of one program."""

    kind, noun = "http-session", "HTTP session"

    def __init__(self, http: Http) -> None:
        super().__init__()
        self._http = http

    def open(self, options: Dict) -> str:
        """Return the handle of a new session."""
        return self.add(Session(options, Clients(self._http, _new_jar)))

    async def aclose(self) -> None:
        """Close their connections; they go on with new ones."""
        for session in self:
            await session.clients.aclose()


def _new_jar() -> CookieJar:
    from harnpy.world.cookie_jars import new_jar

    return new_jar()
