"""`Door`: who may come in, an ASGI middleware. Whom it lets through is ``scope["harnpy.caller"]``.

It finds the caller by a static key, a bearer session's token, or a browser's cookie; keeps foreign pages and
foreign names out, bodies small, and every caller within its limits. Spec: 11 §1.2.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections import deque
from contextlib import contextmanager, suppress
from functools import partial
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, get_args
from urllib.parse import urlsplit

from harnpy.client import types as t
from harnpy.eventlog.bearer import handle_of
from harnpy.eventlog.http import Callers, key_holder
from harnpy.formats.json import compact_json
from harnpy.net import admission
from harnpy.net.admission import CALLER, LEAVE, Bounds, Incoming, Lasting
from harnpy.serve import signin
from harnpy.serve.journal import note_route
from harnpy.serve.looks import Looks
from harnpy.serve.service import Caller, Refused
from harnpy.serve.site import given_key, host_name, is_local_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from harnpy.eventlog.bearer import BearerSessions, DurableSession
    from harnpy.serve.site import Site
    from harnpy.world.connections import Application, AsgiMessage, Receive, Send

    Headers = list[tuple[bytes, bytes]]

#: Bytes of the longest body.
LONGEST_BODY = 4 * 1024 * 1024
#: What goes without a caller; `_METRICS` does on this machine.
_OPEN, _FILES, _METRICS = ("/healthz", signin.PATH), "/static/", "/metrics"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
#: Requests that wait for what may take long: for an agent's turn.
_LONG = "/send"
#: What such requests, and those for streams, end with where they don't say that they accept one.
_LASTING = (_LONG, "/live")
#: How many streams and WebSockets there are in all, at most, and their share of the files that may be open.
_MOST_LASTING, _OF_FILES = 4096, 0.5
#: Seconds between two looks whether the tokens of streams and WebSockets still hold.
_AGAIN = 15.0
_SCOPES: frozenset[str] = frozenset(get_args(t.Scope))
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
#: Bytes of a body that is refused that are read all the same, and the longest pause between two pieces in s.
_PASSED_OVER, _PAUSE = 1 << 25, 0.1
#: How many callers are remembered, with a count of requests or without, before old ones are forgotten.
_COUNTED = 1000
_MINUTE = 60.0
#: What the holders of static keys may do.
_ALL, _NO_LIMITS = frozenset({"all"}), t.Limits()

#: Not `no-referrer`: browsers would send the forms of our own pages with the origin `null`.
_REFERRERS = b"same-origin"
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: What every response has, unless it has its own; but for the last two those to callers with a key, which are
#: no browsers.
_HEADERS = {
    b"content-security-policy": _POLICY,
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": _REFERRERS,
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}


_PAIRS = tuple(_HEADERS.items())
_FOR_PROGRAMS = _PAIRS[:-2]


_log = logging.getLogger(__name__)


class Asking(NamedTuple):
    """What the headers of a request say of who sends it, to whom."""

    host: str
    origin: str | None
    key: str | None
    cookie: str | None
    wants_page: bool
    wants_stream: bool
    length: int
    has_body: bool

    @classmethod
    def of(cls, scope: AsgiMessage) -> Asking:
        found: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name not in found:
                found[name] = value
            elif name == b"host":
                raise Refused(400, "bad_request", "the request has several Host headers")
            elif name == b"cookie":  # HTTP/2 and some clients have a header for each
                found[name] += b"; " + value
        key, cookie, length = given_key(found), found.get(b"cookie"), found.get(b"content-length")
        origin = found.get(b"origin")
        return cls(
            found.get(b"host", b"").decode("latin-1"),
            None if origin is None else origin.decode("latin-1"),
            None if key is None else key.decode("latin-1"),
            None if cookie is None else signin.cookie_of(scope, cookie.decode("latin-1")),
            scope.get("method") == "GET" and b"text/html" in found.get(b"accept", b""),
            b"text/event-stream" in found.get(b"accept", b""),
            int(length) if length is not None and length.isdigit() else 0,
            length not in (None, b"0") or b"transfer-encoding" in found,
        )


class Door:
    """``app`` gets the requests of callers. To be made in the loop that it serves in.

    ``on_drop`` is called when a reader is let go of, ``on_error`` with what nobody expected.
    """

    def __init__(
        self,
        app: Application,
        site: Site,
        sessions: BearerSessions,
        *,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = monotonic,
        on_drop: Callable[[], None] = lambda: None,
        on_error: Callable[[AsgiMessage, Exception], None] = lambda scope, error: None,
    ) -> None:
        self._app = app
        self._site = site
        self._names = frozenset(name.lower() for name in site.names)
        self._host = ""
        self._keys = frozenset(map(handle_of, site.keys))
        #: Whom sessions are of, by their tokens.
        self._known: dict[str, tuple[DurableSession, Caller | None]] = {}
        self._on_drop, self._on_error = on_drop, on_error
        self._rates = Rates(clock)
        # A body is read before its request takes a slot, all of it.
        self._bounds = (
            Bounds(read_ahead=LONGEST_BODY + 1, lasting=most_lasting()) if bounds is None else bounds
        )
        self._lasting = Lasting(self._bounds)
        self._looking: asyncio.Task[None] | None = None
        self._callers = Callers(sessions, self._bounds)
        self._looks = Looks()
        self.sign_in = signin.SignIn(sessions, self._principal, self._callers.find)
        self._closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def close(self) -> None:
        """End the responses that go on for ever, and WebSockets: their readers may come back elsewhere."""
        if not self._closing.done():
            self._closing.set_result(None)
        for caller in self._lasting.callers:
            self._lasting.end(caller)

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        response = _Response(send, scope)
        try:
            asking = Asking.of(scope)
            if asking.key is not None:
                response.usual = _FOR_PROGRAMS
            await self._pass(scope, asking, receive, response)
        except Refused as refusal:
            await response.refuse(refusal)
        except admission.Refused as refusal:
            await response.refuse(_ours(refusal))
        except admission.Gone:
            return
        except TimeoutError:
            if not response.is_stalled:
                raise
            # Its end is missing: the server closes the connection.
            self._on_drop()
        except Exception as error:
            self._on_error(scope, error)
            if response.has_begun:
                raise
            await response.refuse(Refused(500, "internal", "a mistake in harnpy: its log says where"))

    async def _pass(self, scope: AsgiMessage, asking: Asking, receive: Receive, send: _Response) -> None:
        if asking.host != self._host and not self._is_ours(asking.host):
            what = f"no server here is called {asking.host!r}: see --allow-host"
            raise Refused(421, "unknown_host", what)
        if scope["type"] == "websocket":
            await self._web_socket(scope, asking, receive, send)
            return
        path, method = scope["path"], scope["method"]
        if asking.length > LONGEST_BODY:
            await _pass_over(receive, scope)
            raise _too_large()
        if path in (signin.PATH, signin.OUT) and (answer := await self._sign(scope, asking, receive)):
            note_route(scope, path)
            await send.answer(*answer)
        elif self._is_open(path, asking):
            await self._app(scope, _Body(receive, scope), send)
        elif method in _SAFE and not asking.has_body:
            caller = await self._caller(scope, asking, None)
            inner = self._inner_of(scope, asking, caller)
            running = self._callers.admission.serve_at_once(inner, scope, receive, send, caller)
            if running is not None:
                await running
            else:
                await self._in_turn(scope, asking, receive, send, caller)
        else:
            await self._in_turn(scope, asking, receive, send, None)

    def _is_ours(self, host: str) -> bool:
        """Return whether a `Host` header names this server, and remember it if so: most have the same."""
        if host_name(host) not in self._names:
            return False
        self._host = host
        return True

    async def _in_turn(
        self, scope: AsgiMessage, asking: Asking, receive: Receive, send: _Response, caller: str | None
    ) -> None:
        """Handle a request once it has arrived and it's its caller's turn."""
        async with Incoming(_Body(receive, scope), self._bounds) as request:
            who = caller or await self._caller(scope, asking, request)
            inner = self._inner_of(scope, asking, who)
            await self._callers.admission.serve(inner, scope, request, send, who)

    def _inner_of(self, scope: AsgiMessage, asking: Asking, caller: str) -> Application:
        if asking.wants_stream or scope["path"].endswith(_LASTING):
            return partial(self._inner_for_long, caller)
        return self._inner

    async def _inner_for_long(self, token: str, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        """Have the application handle a request whose response may go on while its token holds."""
        if scope["path"].endswith(_LONG):
            scope[LEAVE]()
        with self._lasts(token) as over:
            await self._app(scope, _until(over, receive, lambda: _GONE), send)
            if over.done():
                await send(_END)

    async def _inner(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        """Have the application handle a request; its response ends when the server does."""
        await self._app(scope, _until(self._closing, receive, lambda: _GONE), send)
        if self._closing.done():
            await send(_END)

    def _is_open(self, path: str, asking: Asking) -> bool:
        if path == _METRICS:
            return self._site.is_local and is_local_name(asking.host)
        return path in _OPEN or (path.startswith(_FILES) and ".." not in path)

    # Callers.

    async def _caller(self, scope: AsgiMessage, asking: Asking, request: Incoming | None) -> str:
        """Note who sends a request, and return what its turns go by. Raises `Refused`."""
        token = asking.key if asking.key is not None else asking.cookie
        if token is None:
            raise _unknown(asking)
        principal = self._principal(token)
        caller = None if principal is None else Caller(principal, _ALL, _NO_LIMITS)
        if caller is None:
            session = self._looks.find(token, self._callers.at_once)
            if session is None:
                look = self._callers.find(token)
                session = await (look if request is None else request.while_there(look))
            caller = None if session is None else self._caller_of(session)
            if caller is None:
                raise _unknown(asking)
        if asking.key is None and (scope["type"] == "websocket" or scope["method"] not in _SAFE):
            self._check_origin(asking)
        if caller.limits is not None:
            self._count(token, caller.limits)
        scope[CALLER] = caller
        return token

    def _caller_of(self, session: DurableSession) -> Caller | None:
        """Return whom a session is of; None for a browser whose key is gone."""
        known = self._known.get(session.id)
        if known is None or known[0] is not session:
            holds = signin.still_stands(session.attributes, self._keys)
            caller = Caller(session.principal, scopes_of(session), limits_of(session)) if holds else None
            if len(self._known) >= _COUNTED:
                self._known.clear()
            known = self._known[session.id] = session, caller
        return known[1]

    @contextmanager
    def _lasts(self, token: str) -> Iterator[asyncio.Future[None]]:
        """Hold a place among what goes on for long, and return what is done when it is to end.

        Raises `admission.Refused`. A whole application may stand behind a static key.
        """
        with self._lasting.place(token, stands_for_many=self._principal(token) is not None) as over:
            if self._closing.done():
                self._lasting.end(token)
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look_again())
            yield over

    async def _look_again(self) -> None:
        """End what goes on for long once the token of its caller doesn't hold any more."""
        while self._lasting.callers:
            await asyncio.sleep(_AGAIN)
            for token in self._lasting.callers:
                try:
                    if not await self._holds(token):
                        self._lasting.end(token)
                except Exception:  # the log may be back by the next look
                    _log.exception("looking whether a token still holds failed")

    async def _holds(self, token: str) -> bool:
        if self._principal(token) is not None:
            return True
        session = await self._callers.find(token)
        return session is not None and signin.still_stands(session.attributes, self._keys)

    def _principal(self, key: str) -> str | None:
        holder = key_holder(key, self._site.keys) if self._site.keys else None
        return None if holder is None else holder.principal

    def _check_origin(self, asking: Asking) -> None:
        """Refuse what a foreign page has a browser send. Ports count: cookies don't tell them apart."""
        scheme, _, place = (asking.origin or "").partition("://")
        port = _DEFAULT_PORTS.get(scheme)
        same = port and place.lower().removesuffix(port) == asking.host.lower().removesuffix(port)
        if not same or (self._site.certificate is not None and scheme != "https"):
            shown = f"'{asking.origin}'" if asking.origin else "missing"
            raise Refused(403, "foreign_origin", f"the Origin is {shown}, not that of this server's pages")

    async def _sign(self, scope: AsgiMessage, asking: Asking, receive: Receive) -> signin.Answer | None:
        """Answer a request that signs in or out; None for one that only wants the page."""
        path, method = scope["path"], scope["method"]
        if path == signin.PATH and method == "GET":
            return await self.sign_in.by_link(scope) if b"code=" in scope["query_string"] else None
        if method != "POST":
            return None
        self._check_origin(asking)
        if path == signin.OUT:
            return await self.sign_in.out(scope, asking.cookie)
        is_secure = urlsplit(asking.origin or "").scheme == "https"
        return await self.sign_in.by_form(scope, _Body(receive, scope), is_secure)

    async def _web_socket(
        self, scope: AsgiMessage, asking: Asking, receive: Receive, send: _Response
    ) -> None:
        if asking.origin is not None:
            self._check_origin(asking)
        token = await self._caller(scope, asking, None)
        code = 0

        async def received() -> AsgiMessage:
            nonlocal code
            message = await receive()
            if message["type"] == "websocket.receive":
                try:
                    self._count(token, scope[CALLER].limits)
                    if not await self._holds(token):
                        raise _unknown(asking)
                except (Refused, admission.Refused) as refusal:
                    code = 4000 + refusal.status
                    return closed()
            return message

        async def sent(message: AsgiMessage) -> None:
            async with asyncio.timeout(self._bounds.seconds):
                await send(message)

        def closed() -> AsgiMessage:
            nonlocal code
            code = code or (_RESTART if self._closing.done() else _UNKNOWN)
            return {"type": "websocket.disconnect", "code": code}

        with self._lasts(token) as over:
            await self._app(scope, _until(over, received, closed), sent)
        if code:
            await send({"type": "websocket.close", "code": code})

    def _count(self, token: str, limits: t.Limits) -> None:
        """Count a request, or a message of a WebSocket. Raises `Refused`."""
        if limits.requests_per_minute is not None:
            self._rates.count(handle_of(token), limits.requests_per_minute)


_GONE = {"type": "http.disconnect"}
#: Why a WebSocket is closed: the server may be back soon. The codes from 4000 on are an HTTP status behind 4.
_RESTART, _UNKNOWN = 1012, 4401
_END = {"type": "http.response.body", "body": b""}


def most_lasting() -> int:
    """Return how many streams and WebSockets leave enough of the files that this process may open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_LASTING if files == resource.RLIM_INFINITY else min(_MOST_LASTING, int(files * _OF_FILES))


def _until(over: asyncio.Future[None], receive: Receive, last: Callable[[], Mapping[str, Any]]) -> Receive:
    """Return ``receive`` for an application that is told ``last`` when it is over."""

    async def received() -> AsgiMessage:
        message = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((message, over), return_when=asyncio.FIRST_COMPLETED)
            return message.result() if message.done() else dict(last())
        finally:
            message.cancel()

    return received


def scopes_of(session: DurableSession) -> frozenset[str]:
    """Return what a bearer session may do: `write` where it doesn't say so, nothing that is unknown."""
    given = session.attributes.get("scopes")
    if given is None:
        return frozenset({"write"})
    return frozenset(given if isinstance(given, list) else ()) & _SCOPES


def limits_of(session: DurableSession) -> t.Limits:
    return t.Limits(
        requests_per_minute=session.attributes.get("requests_per_minute"),
        cost_per_day=session.attributes.get("cost_per_day"),
    )


def _unknown(asking: Asking) -> Refused:
    if asking.wants_page:
        return Refused(303, "unauthorized", signin.PATH)
    return Refused(
        401, "unauthorized", "send `Authorization: Bearer TOKEN` with a token or key of this server"
    )


def _ours(refusal: admission.Refused) -> Refused:
    status = refusal.status
    if status == 429:
        return Later(status, "rate_limited", refusal.reason, admission.RETRY_AFTER)
    if status == 503:
        return Later(status, "busy", refusal.reason, admission.RETRY_AFTER)
    return Refused(status, "too_large" if status == 413 else "too_slow", refusal.reason)


def _too_large() -> Refused:
    return Refused(413, "too_large", f"the body has more than {LONGEST_BODY} bytes")


class Rates:
    """The requests of the last minute, of each caller that may send only so many."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sent: dict[str, deque[float]] = {}

    def count(self, who: str, most: int) -> None:
        """Count a request. Raises `Refused`."""
        now = self._clock()
        sent = self._sent.get(who)
        if sent is None or sent.maxlen != most:
            self._forget(now)
            sent = self._sent[who] = deque(sent or (), most)
        if len(sent) == most and (not most or now - sent[0] < _MINUTE):
            wait = max(1, ceil(_MINUTE - (now - sent[0]))) if most else _MINUTE
            what = f"this token may send {most} requests a minute: the next one in {wait:g} s"
            raise Later(429, "rate_limited", what, int(wait))
        sent.append(now)

    def _forget(self, now: float) -> None:
        if len(self._sent) >= _COUNTED:
            recent = {who: sent for who, sent in self._sent.items() if sent and now - sent[-1] < _MINUTE}
            self._sent = recent


class Later(Refused):
    """A request that may come again, in so many ``seconds``."""

    def __init__(self, status: int, code: str, message: str, seconds: int) -> None:
        super().__init__(status, code, message)
        self.seconds = seconds


class _Body:
    """Receives a request's body, up to a bound."""

    def __init__(self, receive: Receive, scope: AsgiMessage) -> None:
        self._receive = receive
        self._scope = scope
        self._size = 0

    async def __call__(self) -> AsgiMessage:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > LONGEST_BODY:
            await _pass_over(self._receive, self._scope)
            raise admission.Refused(413, _too_large().message)
        return message


async def _pass_over(receive: Receive, scope: AsgiMessage) -> None:
    """Read what is coming of a body that nobody wants, up to a bound.

    A client whose connection is closed while it sends may never see the response.
    """
    if any(name == b"expect" for name, _ in scope["headers"]):
        return  # it waits for the response before it sends
    left = _PASSED_OVER
    with suppress(TimeoutError):
        while left > 0:
            async with asyncio.timeout(_PAUSE):
                message = await receive()
            left -= len(message.get("body", b""))
            if not message.get("more_body", False):
                return


class _Response:
    """Sends a response with the headers that all have."""

    def __init__(self, send: Send, scope: AsgiMessage) -> None:
        self._send = send
        self._scope = scope
        self._is_over = False
        self.usual = _PAIRS
        self.has_begun = False
        #: It was given up while it waited for its reader.
        self.is_stalled = False

    async def __call__(self, message: AsgiMessage) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            message = {**message, "headers": self._with_usual(message["headers"])}
            self.has_begun = True
        elif kind == "http.response.body":
            if self._is_over or not self.has_begun:
                return
            self._is_over = not message.get("more_body", False)
        elif kind.startswith("websocket"):
            if self._is_over:
                return
            self.has_begun, self._is_over = True, kind == "websocket.close"
        try:
            await self._send(message)
        except asyncio.CancelledError:
            self.is_stalled = True
            raise

    async def answer(self, status: int, headers: Headers, body: bytes = b"") -> None:
        prefix = "http" if self._scope["type"] == "http" else "websocket.http"
        if prefix != "http" and "websocket.http.response" not in self._scope.get("extensions", {}):
            await self._send({"type": "websocket.close", "code": 4000 + status})
            return
        start = {"type": f"{prefix}.response.start", "status": status, "headers": self._with_usual(headers)}
        await self._send(start)
        await self._send({"type": f"{prefix}.response.body", "body": body})

    async def refuse(self, refusal: Refused, headers: Headers = []) -> None:  # noqa: B006
        """Answer with `{"error": {code, message}}`, unless there is a part of another answer."""
        if self.has_begun:
            return
        status = refusal.status
        if status == 303:
            await self.answer(status, [(b"location", refusal.message.encode()), (b"content-length", b"0")])
            return
        body = compact_json({"error": {"code": refusal.code, "message": refusal.message}}).encode()
        own = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]
        if status == 401:
            own.append((b"www-authenticate", b"Bearer"))
        if status in (408, 413):
            own.append((b"connection", b"close"))
        if isinstance(refusal, Later):
            own.append((b"retry-after", b"%d" % refusal.seconds))
        await self.answer(status, own, body)

    def _with_usual(self, headers: Headers) -> Headers:
        own = {name for name, _ in headers}
        if own.isdisjoint(_HEADERS):
            return [*headers, *self.usual]
        return [*headers, *(pair for pair in self.usual if pair[0] not in own)]
