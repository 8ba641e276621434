"""A client of httpx2 whose requests and connections are asked for before they are made. Spec: 04 §21.4."""

from __future__ import annotations

import socket
import ssl
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import anyio
import httpcore2
import httpx2

from harnpy.world.cookie_jars import no_jar
from harnpy.world.egress import Forbidden
from harnpy.world.egress_rules import address_in, host_in
from harnpy.world.responses import careful

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from http.cookiejar import CookieJar

    from harnpy.world.connections import Settings
    from harnpy.world.egress import Egress

    Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
    Connect = Callable[[str], Awaitable[httpcore2.AsyncNetworkStream]]

# Opening connections for HTTP clients, to addresses that may be connected to. Spec: 04 §21.4.
#
# A name is resolved here, once, and the connection goes to an address that egress was asked about: a second
# answer of the resolver, which might be another, is never asked for.


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


# TLS as `Settings` ask for it. Spec: 04 §21.1.


def tls_context(settings: Settings) -> ssl.SSLContext:
    """The context for connections with these settings. Raises OSError, an SSLError for what isn't PEM."""
    try:
        made = ssl.create_default_context(cafile=settings.ca)
        if settings.certificate is not None:
            made.load_cert_chain(settings.certificate, settings.key, password=_no_password)
    except ssl.SSLError as error:
        problem = ssl.SSLError(ssl.SSL_ERROR_SSL, _in_words(error))
    else:
        return _with_pins(made, settings)
    raise problem


def _in_words(error: ssl.SSLError) -> str:
    reason: str | None = getattr(error, "reason", None)
    if reason:
        return reason.replace("_", " ").lower()
    said = error.strerror or ""
    return "no PEM of a certificate with its key" if said.startswith("[") else said


def _with_pins(made: ssl.SSLContext, settings: Settings) -> ssl.SSLContext:
    if settings.pins:
        made.sslobject_class = _pinned(settings.pins)
    return made


def _no_password() -> str:
    # OpenSSL would ask on the terminal.
    raise ssl.SSLError(ssl.SSL_ERROR_SSL, "the key is encrypted")


def _pinned(pins: frozenset[str]) -> type[ssl.SSLObject]:
    """Return a class of connections that end, before anything is sent, at another certificate."""

    class PinnedConnection(ssl.SSLObject):
        def do_handshake(self) -> None:
            super().do_handshake()
            certificate = self.getpeercert(binary_form=True)
            if certificate is None or sha256(certificate).hexdigest() not in pins:
                raise ssl.SSLError("the server's certificate isn't one of pinned_sha256")

    return PinnedConnection


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
        options["verify"] = tls_context(settings)
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
