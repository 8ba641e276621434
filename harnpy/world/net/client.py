"""A client of httpx2 whose requests and connections are asked for before they are made. Spec: 04 §21.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2

from harnpy.world.net.connecting import Connecting
from harnpy.world.net.egress import Forbidden

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.world.net.egress import Egress

#: Under this key a request's `extensions` may name another surface than its client's.
SURFACE = "surface"


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
            egress.admit(used, url, request.url.host)
            try:
                return await super().send(request, **options)
            except Forbidden as error:
                blocked = egress.blocked(used, url, error)
            raise blocked

    return AdmittedClient
