"""The clients that requests share: one for all that have their connections made in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.net.http.errors import HttpError

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.cookiejar import CookieJar

    import httpx2

    from harnpy.world.http import Http
    from harnpy.world.net.settings import Settings


class Clients:
    """``cookies`` makes the jar that they share; without it they keep none."""

    def __init__(self, http: Http, cookies: Callable[[], CookieJar] | None = None) -> None:
        self._http = http
        self._new_jar = cookies
        self._jar: CookieJar | None = None
        self._open: dict[Settings, httpx2.AsyncClient] = {}
        self._is_over = False

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
