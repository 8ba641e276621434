"""A client of httpx2, its connections, and one exchange: a request and its response, or what went wrong.

Requests and connections are asked for before they are made. Spec: 04 §21.1, §21.4, 02 §19.8.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from http.cookiejar import CookieJar
from typing import Any, Protocol

import anyio
import httpcore2
import httpx2

from harnpy import telemetry
from harnpy.world.connections import Failed, Settings, TooMuch, cut_off, misled, too_many_redirects
from harnpy.world.cookie_jars import no_jar
from harnpy.world.egress import Egress, Forbidden
from harnpy.world.egress_rules import address_in, host_in
from harnpy.world.files import plain_reason
from harnpy.world.redirects import MOST_REDIRECTS, careful

#: The addresses of a host, in the order in which to try them. Raises OSError.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Connect = Callable[[str], Awaitable[httpcore2.AsyncNetworkStream]]

# Opening connections for HTTP clients, to addresses that may be connected to. Spec: 04 §21.4.
#
# A name is resolved here, once, and the connection goes to an address that egress was asked about: a second
# answer of the resolver, which might be another, is never asked for.


#: Whether the last thing that this task has read from a connection was its end: a response that then can't
#: be read is not malformed but incomplete.
AT_END: ContextVar[bool] = ContextVar("AT_END", default=False)

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
        data = await self._stream.read(max_bytes, timeout)
        AT_END.set(not data)
        return data

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
        if settings.pins:
            made.sslobject_class = _pinned(settings.pins)
        return made
    raise problem


def usual_tls() -> ssl.SSLContext:
    """Return the context of connections without settings; all clients have the same."""
    return _trusting(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _trusting(file: str | None, directory: str | None) -> ssl.SSLContext:
    """Return what httpx2 makes of the certificates that these choose: to read them takes milliseconds."""
    return httpx2.create_ssl_context()


def _in_words(error: ssl.SSLError) -> str:
    reason: str | None = getattr(error, "reason", None)
    if reason:
        return reason.replace("_", " ").lower()
    said = error.strerror or ""
    return "no PEM of a certificate with its key" if said.startswith("[") else said


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
            telemetry.inject(request.headers)
            try:
                return await super().send(request, **options)
            except Forbidden as error:
                failure: Exception = egress.blocked(used, url, error)
            except UnicodeError:
                # Of a name in `Location` that nobody could have registered; httpx2 lets it through.
                failure = httpx2.RemoteProtocolError("invalid URL in Location", request=request)
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
    options["verify"] = tls_context(settings) if settings.has_tls else usual_tls()
    if settings.proxy is not None:
        options["proxy"] = httpx2.Proxy(settings.proxy, auth=settings.proxy_auth)
        options["mounts"] = {_pattern(host): None for host in settings.no_proxy}
    made = careful(admitted(httpx2.AsyncClient, egress, surface, permit))
    client: httpx2.AsyncClient = made(follow_redirects=True, limits=_LIMITS, **options)
    return client


def _pattern(host: str) -> str:
    """Return what httpx2 calls a host and its subdomains; `*` are all."""
    if host == "*":
        return "all://"
    return f"all://{host}" if host[:1] == "[" or host.replace(".", "").isdecimal() else f"all://*{host}"


# What went wrong with a request, in one line and one category. Spec: 04 §21.1, 02 §19.8.
#
# The lines have no status codes and no numbers of their own: programs classify a thrown text by both. No line
# has what a URL or a header may hold in secret.


_QUOTED = re.compile(r":? b(?:ytearray\(b)?['\"]| should be in range ")
_NUMBERS = re.compile(r"\d+")
#: What a client raises when there is no complete response; `failure` knows each.
FAILURES = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)
_TIMEOUT, _NETWORK, _OTHER = "timeout", "transient_network", "generic"


def failure(error: Exception) -> Failed:
    """Return what an error of a client means, one of `FAILURES`."""
    category, text = _described(error)
    return Failed(category, text)


def _described(error: Exception) -> tuple[str, str]:
    match error:
        case httpx2.ConnectTimeout():
            return _TIMEOUT, f"Deadline exceeded: no connection{_at('to', error)} within connect_timeout_ms"
        case httpx2.PoolTimeout():
            return _TIMEOUT, "Deadline exceeded: too many connections are in use"
        case httpx2.TimeoutException():
            return _TIMEOUT, f"Deadline exceeded: nothing came{_at('from', error)} within read_timeout_ms"
        case httpx2.ConnectError():
            return _not_connected(error)
        case httpx2.ProxyError():
            return _OTHER, f"the proxy refused: {_words(str(error))}"
        case httpx2.NetworkError() if any(isinstance(cause, Forbidden) for cause in _causes(error)):
            return _OTHER, f"the connection{_at('to', error)} was cut by the egress policy"
        case httpx2.NetworkError():
            return _NETWORK, f"connection reset{_at('by', error)}"
        case httpx2.RemoteProtocolError():
            return _misbehaved(error)
        case httpx2.DecodingError():
            return _OTHER, "the body isn't what its content-encoding says"
        case httpx2.InvalidURL():
            return _OTHER, "a URL isn't valid"
        case httpx2.UnsupportedProtocol():
            return misled().category, misled().text
        case httpx2.LocalProtocolError():
            return _OTHER, "it can't be sent as HTTP"
        case ssl.SSLError():
            return _OTHER, f"TLS: {_reason(error)}"
        case OSError():
            return _OTHER, plain_reason(error)
    return _OTHER, f"it failed ({type(error).__name__})"


def _not_connected(error: httpx2.ConnectError) -> tuple[str, str]:
    for cause in _causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return _OTHER, f"TLS: the certificate{_at('of', error)} isn't trusted: {cause.verify_message}"
            case ssl.SSLError():
                return _OTHER, f"TLS: {_reason(cause)}"
            case socket.gaierror():
                return _NETWORK, f"dns error: there is no address{_at('of', error)}"
            case ConnectionRefusedError():
                return _NETWORK, f"connection refused{_at('by', error)}"
    return _NETWORK, f"connection closed{_at('by', error)} before it was open"


def _misbehaved(error: httpx2.RemoteProtocolError) -> tuple[str, str]:
    if AT_END.get():
        return _NETWORK, f"connection closed{_at('by', error)} before the response was complete"
    return _OTHER, f"malformed response{_at('from', error)}"


def _words(text: str) -> str:
    """Return what a library says, without numbers, and without the bytes that it quotes."""
    return _NUMBERS.sub("", _QUOTED.split(text)[0]).strip()


def _reason(error: ssl.SSLError) -> str:
    # One that Python raises has a reason, one of ours a text.
    reason = getattr(error, "reason", None)
    return (
        reason.replace("_", " ").lower() if reason else str(error.args[-1] if error.args else "no handshake")
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield what led to an error, also where several attempts failed."""
    left, seen = [error], set[int]()
    while left:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            left.extend(each.exceptions)
        left.extend(cause for cause in (each.__context__, each.__cause__) if cause is not None)


def _host(error: Exception) -> str:
    try:
        return error.request.url.host if isinstance(error, httpx2.RequestError) else ""
    except RuntimeError:  # it knows of no request
        return ""


def _at(word: str, error: Exception) -> str:
    host = _host(error)
    return f" {word} {host}" if host else ""


#: Characters of the longest URL that httpx2 takes.
_LONGEST_URL = 65_536


class Outgoing(Protocol):
    """A request as it is sent. Seconds to ``connect``, and between two pieces that are sent or ``read``.

    ``redirects``: how many are followed; None returns the response that redirects. ``decompress`` unpacks
    the body as its `content-encoding` says.
    """

    @property
    def method(self) -> str: ...
    @property
    def canonical(self) -> str:
        """The URL."""

    @property
    def headers(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def body(self) -> bytes | None: ...
    @property
    def connect(self) -> float | None: ...
    @property
    def read(self) -> float | None: ...
    @property
    def redirects(self) -> int | None: ...
    @property
    def decompress(self) -> bool: ...


class Incoming:
    """A response whose body has yet to be read. `aclose` it."""

    def __init__(self, response: httpx2.Response, decompress: bool) -> None:
        self.status = response.status_code
        self.headers = _joined(response.headers)
        self.charset = response.charset_encoding
        self._response = response
        self._decompress = decompress

    async def pieces(self, most: int | None) -> AsyncGenerator[bytes, None]:
        """Yield the body. Raises `Failed`, also when there are more than ``most`` bytes, unpacked or not."""
        read = self._response.aiter_bytes if self._decompress else self._response.aiter_raw
        left = most
        try:
            async with aclosing(read()) as pieces:
                async for piece in pieces:
                    if left is not None:
                        left -= len(piece)
                        if left < 0:
                            raise TooMuch(most or 0)
                    yield piece
        except FAILURES as error:
            problem = failure(error)
        else:
            return
        raise problem

    async def aclose(self) -> None:
        """Give the connection back; one with an unread body is closed."""
        await self._response.aclose()


async def exchange(client: httpx2.AsyncClient, surface: str, outgoing: Outgoing) -> Incoming:
    """Send a request and return the response to it.

    Raises `Failed`, `EgressBlocked`, and what the client's ``permit`` does.
    """
    if len(outgoing.canonical) > _LONGEST_URL:
        raise Failed("generic", "URL too long")
    times = {"connect": outgoing.connect, "pool": outgoing.connect}
    follows = outgoing.redirects is not None
    try:
        request = httpx2.Request(
            outgoing.method,
            outgoing.canonical,
            headers=encoded_headers(outgoing.headers),
            content=outgoing.body,
            extensions={
                "timeout": {**times, "read": outgoing.read, "write": outgoing.read},
                SURFACE: surface,
                MOST_REDIRECTS: outgoing.redirects or 0,
            },
        )
        client.cookies.set_cookie_header(request)
        response = await client.send(request, stream=True, follow_redirects=follows)
    except FAILURES as error:
        # The request's own URL is canonical: this one is a redirect's.
        found = misled() if isinstance(error, httpx2.InvalidURL) else failure(error)
        problem = cut_off() if client.is_closed else found
    except RuntimeError:
        # httpx2's word for a client that another task has closed.
        if not client.is_closed:
            raise
        problem = cut_off()
    else:
        if not follows or not response.has_redirect_location:
            return Incoming(response, outgoing.decompress)
        await response.aclose()
        problem = misled() if response.next_request is None else too_many_redirects()
    # Without its cause, which may hold what the request did.
    raise problem


def encoded_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Return headers as they are sent: values in UTF-8, also where they are no ASCII."""
    return [(name.encode(), value.encode("utf-8", "surrogatepass")) for name, value in headers]


def _joined(headers: httpx2.Headers) -> Mapping[str, str]:
    """The headers by their names in lower case; the values of one that is there several times are joined."""
    found: dict[str, str] = {}
    for raw_name, raw_value in headers.raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("utf-8", "replace")
        between = "\n" if name == "set-cookie" else ", "
        found[name] = f"{found[name]}{between}{value}" if name in found else value
    return found
