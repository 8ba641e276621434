"""Sessions: options, connections and cookies that requests share. Spec: 04 §21.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.net.http.clients import Clients
from harnpy.net.http.handles import Handles

if TYPE_CHECKING:
    from http.cookiejar import CookieJar

    from harnpy.reading.dicts import Dict
    from harnpy.world.http import Http


class Session(NamedTuple):
    """``options``: of every request, unless it has its own."""

    options: Dict
    clients: Clients


class Sessions(Handles[Session]):
    """The open sessions of one program."""

    def __init__(self, http: Http) -> None:
        super().__init__("http-session", "HTTP session")
        self._http = http

    def open(self, options: Dict) -> str:
        """Return the handle of a new session."""
        return self.add(Session(options, Clients(self._http, _new_jar)))

    async def aclose(self) -> None:
        """Close their connections; they go on with new ones."""
        for session in self:
            await session.clients.aclose()


def _new_jar() -> CookieJar:
    from harnpy.world.net.cookies import new_jar

    return new_jar()
