"""Opening connections for HTTP clients, to addresses that may be connected to. Spec: 04 §21.4.

A name is resolved here, once, and the connection goes to an address that egress was asked about: a second
answer of the resolver, which might be another, is never asked for.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import anyio
import httpcore2

from harnpy.world.net.egress import Forbidden
from harnpy.world.net.hosts import address_in, host_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from typing import Any

    from harnpy.world.net.egress import Egress

    #: The addresses of a host, in the order in which to try them. Raises OSError.
    Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
    Connect = Callable[[str], Awaitable[httpcore2.AsyncNetworkStream]]

#: Seconds after which the next address is tried, too (RFC 8305).
_HEAD_START = 0.25


async def resolved(host: str, port: int) -> list[str]:
    """Return the addresses that the system has for a host. Raises OSError."""
    return _addresses(await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def resolved_now(host: str, port: int) -> list[str]:
    """The same without a loop to wait in; it blocks. Raises OSError."""
    return _addresses(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def _addresses(found: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Connecting(httpcore2.AnyIOBackend):
    """Opens connections that ``egress`` admits."""

    def __init__(self, egress: Egress, resolve: Resolve = resolved) -> None:
        self._egress = egress
        self._resolve = resolve

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Raises `Forbidden` when no address of the host may be connected to."""

        async def connect(address: str) -> httpcore2.AsyncNetworkStream:
            policy = self._egress.policy
            self._egress.admit_address(host, port, address)
            stream = await connect_to(address, port, None, local_address, socket_options)
            return _Admitted(stream, self._egress, policy, (host, port, address))

        connect_to = super().connect_tcp
        try:
            with anyio.fail_after(timeout):
                return await _first(await self._addresses(host, port), connect)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host. One that is written as an address is that, however it is spelled:
        resolvers read `0177.0.0.1` in different ways."""
        written = host_in(host) or host
        if address_in(written) is None:
            return await self._resolve(host, port)
        return [host if "%" in host else written]


async def _first(addresses: Sequence[str], connect: Connect) -> httpcore2.AsyncNetworkStream:
    """Return the first connection that is made: the next address is tried when one has failed, or takes its
    time. Raises `ConnectError`, and `Forbidden` when all of them are."""
    if not addresses:
        raise httpcore2.ConnectError("the host has no address")
    if len(addresses) == 1:
        return await connect(addresses[0])
    made: list[httpcore2.AsyncNetworkStream] = []
    failures: list[Exception] = []

    async def attempt(address: str, over: anyio.Event) -> None:
        try:
            stream = await connect(address)
        except (httpcore2.ConnectError, Forbidden) as error:
            failures.append(error)
            over.set()
            return
        made.append(stream)
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for address in addresses:
            over = anyio.Event()
            group.start_soon(attempt, address, over)
            with anyio.move_on_after(_HEAD_START):
                await over.wait()
    for stream in made[1:]:
        await stream.aclose()
    if not made:
        # That one could be reached another time, others may not be.
        raise next((each for each in failures if not isinstance(each, Forbidden)), failures[0])
    return made[0]


class _Admitted(httpcore2.AsyncNetworkStream):
    """A connection that was admitted under ``policy``. When there is another, it isn't used for a new
    request, and what goes on over it must be admitted again."""

    def __init__(
        self, stream: httpcore2.AsyncNetworkStream, egress: Egress, policy: object, to: tuple[str, int, str]
    ) -> None:
        self._stream = stream
        self._egress = egress
        self._policy = policy
        self._to = to

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._egress.policy is not self._policy:
            self._ask_again(httpcore2.ReadError)
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._egress.policy is not self._policy:
            self._ask_again(httpcore2.WriteError)
        await self._stream.write(buffer, timeout)

    def _ask_again(self, failure: type[Exception]) -> None:
        try:
            self._egress.admit_address(*self._to)
        except Forbidden as forbidden:
            raise failure(f"the connection was cut by the egress policy: {forbidden}") from None

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        secured = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        return _Admitted(secured, self._egress, self._policy, self._to)

    def get_extra_info(self, info: str) -> Any:
        # A pool asks whether the peer has closed an idle connection, and drops it then.
        if info == "is_readable" and self._egress.policy is not self._policy:
            return True
        return self._stream.get_extra_info(info)
