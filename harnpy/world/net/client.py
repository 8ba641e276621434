"""A client of httpx2 whose requests and connections are asked for before they are made. Spec: 04 §21.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2

from harnpy.world.net.connecting import Connecting
from harnpy.world.net.cookies import no_jar
from harnpy.world.net.egress import Forbidden
from harnpy.world.redirects import careful

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.cookiejar import CookieJar

    from harnpy.world.net.egress import Egress
    from harnpy.world.net.settings import Settings

#: Under this key a request's `extensions` may name another surface than its client's.
SURFACE = "surface"

#: Connections of one client at once; more requests wait for one.
_LIMITS = httpx2.Limits(max_connections=256, max_keepalive_connections=32, keepalive_expiry=15.0)


def admitted(
    client: type[Any], egress: Egress, surface: str, permit: Callable[[str], object] | None = None
) -> type[Any]:
    """Return a subclass of an httpx2 async client that asks before each request and each connection.

    ``permit(url)`` and ``egress`` raise for what may not be. Redirects must be followed by a class above.
    """

    class AdmittedClient(client):  # type: ignore[misc]
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            connecting = Connecting(egress)
            for transport in (self._transport, *self._mounts.values()):
                if isinstance(transport, httpx2.AsyncHTTPTransport):
                    # Neither httpx2 nor the SDKs pass a backend on.
                    transport._pool._network_backend = connecting

        async def send(self, request: Any, **options: Any) -> Any:
            url = str(request.url)
            used = request.extensions.get(SURFACE, surface)
            if permit is not None:
                permit(url)
            egress.admit(used, url, request.url.raw_host.decode("ascii"))
            try:
                return await super().send(request, **options)
            except Forbidden as error:
                failure: Exception = egress.blocked(used, url, error)
            except UnicodeError as error:
                # Of a name in `Location` that nobody could have registered; httpx2 lets it through.
                failure = httpx2.RemoteProtocolError(
                    f"Invalid URL in location header: {error}.", request=request
                )
            raise failure

    return AdmittedClient


def new_client(
    egress: Egress,
    surface: str,
    permit: Callable[[str], object] | None,
    settings: Settings,
    cookies: CookieJar | None,
) -> httpx2.AsyncClient:
    """A client as `Http.client` describes it."""
    options: dict[str, Any] = {"cookies": no_jar() if cookies is None else cookies}
    if settings.has_tls:
        from harnpy.world.net.tls import context

        options["verify"] = context(settings)
    if settings.proxy is not None:
        options["proxy"] = httpx2.Proxy(settings.proxy, auth=settings.proxy_auth)
        options["mounts"] = {_pattern(host): None for host in settings.no_proxy}
    made = careful(admitted(httpx2.AsyncClient, egress, surface, permit))
    client: httpx2.AsyncClient = made(follow_redirects=True, limits=_LIMITS, **options)
    return client


def _pattern(host: str) -> str:
    """What httpx2 calls a host and its subdomains; `*` are all."""
    if host == "*":
        return "all://"
    return f"all://{host}" if host[:1] == "[" or host.replace(".", "").isdecimal() else f"all://*{host}"
