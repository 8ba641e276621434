"""Whom an HTTP request or a WebSocket is from: `BearerAuth`, an ASGI middleware. Spec: 08 §16, 10 §C22."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import WeakKeyDictionary

from harnpy.formats.crypto.primitives import equal_in_constant_time
from harnpy.net.admission import Admission, Bounds, Refused, reply

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, MutableMapping
    from datetime import datetime

    from harnpy.eventlog.bearer import BearerSessions, DurableSession, Token
    from harnpy.net.admission import App, Incoming, Receive, Send

    Text = str | bytes
    #: As a dict, or as ASGI has them; names in any case.
    Headers = Mapping[str, str] | Iterable[tuple[Text, Text]]
    #: The keys, or each with its principal.
    StaticKeys = Mapping[str, str] | Collection[str]

#: Whom a static key stands for that has no principal of its own.
_KEY_HOLDER = "api-key"
#: Why a WebSocket is closed. The codes from 4000 on are the application's.
_UNAUTHORIZED, _TRY_AGAIN = 4401, 1013


class AuthResult(NamedTuple):
    """The caller. ``kind`` is ``api_key`` or ``session``; ``session_id``, the token, is for sessions."""

    principal: str
    session_id: Token | None
    kind: str


def authenticate(
    headers: Headers, static_keys: StaticKeys, sessions: BearerSessions, now: datetime | None = None
) -> AuthResult | None:
    """Return who sent the headers; None when they don't say it, or it isn't true.

    A static key never asks ``sessions``. That a session was seen at ``now`` (None: by the sessions' clock) is
    noted, at most once an interval.
    """
    token = bearer_token(headers)
    if token is None:
        return None
    return key_holder(token, static_keys) or _caller(token, sessions, now)


def bearer_token(headers: Headers) -> str | None:
    """Return the token of the one ``Authorization: Bearer …``; None without it, or with several."""
    pairs = headers.items() if hasattr(headers, "items") else headers
    given = [_text(value) for name, value in pairs if _text(name).lower() == "authorization"]
    if len(given) != 1:
        return None
    scheme, _, token = given[0].strip().partition(" ")
    return (token.strip() or None) if scheme.lower() == "bearer" else None


class BearerAuth:
    """Lets through to ``app`` who sends a static key or a live session's token, and paths in ``exempt``.

    ``app`` finds ``auth_principal`` and ``auth_session_id`` (None for a static key) in the scope. Others get
    a 401, a WebSocket the close code 4401 before it is accepted. ``bounds``: how many requests are handled
    at once, in turn of their tokens, and how many may wait.
    """

    def __init__(
        self,
        app: App,
        sessions: BearerSessions,
        *,
        static_keys: StaticKeys = (),
        exempt: Collection[str] = (),
        bounds: Bounds | None = None,
    ) -> None:
        self._app = app
        self._sessions = sessions
        self._keys = static_keys
        self._exempt = frozenset(exempt)
        self._bounds = Bounds() if bounds is None else bounds
        self._callers: WeakKeyDictionary[asyncio.AbstractEventLoop, Callers] = WeakKeyDictionary()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"] in self._exempt:
            await self._app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        callers = self._callers.get(loop) or self._callers.setdefault(
            loop, Callers(self._sessions, self._bounds)
        )
        token = bearer_token(scope["headers"])
        holder = None if token is None else key_holder(token, self._keys)

        async def handle(request: Incoming) -> None:
            result = holder
            if holder is None and token is not None:
                result = _result(await request.while_there(callers.find(token)))
            if result is None:
                await reply(send, 401, "unauthorized", [(b"www-authenticate", b"Bearer")])
            else:
                known = _known(scope, result)
                await callers.admission.serve(self._app, known, request, send, token)

        if scope["type"] == "http":
            await callers.admission.receive(receive, send, handle)
            return
        code = _UNAUTHORIZED
        try:
            result = holder if holder or token is None else _result(await callers.find(token))
        except Refused:
            result, code = None, _TRY_AGAIN
        if result is not None:
            await self._app(_known(scope, result), receive, send)
        else:
            await receive()  # websocket.connect
            await send({"type": "websocket.close", "code": code})


def _known(scope: MutableMapping[str, Any], result: AuthResult) -> MutableMapping[str, Any]:
    return {**scope, "auth_principal": result.principal, "auth_session_id": result.session_id}


class Callers:
    """Whom requests in one loop are from, and which of them are handled now.

    All tokens that wait are looked up together, with one read of the log, and that their sessions were seen
    is noted afterwards: no request waits for another one's write.
    """

    def __init__(self, sessions: BearerSessions, bounds: Bounds) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self.admission = Admission(bounds)
        self._sessions = sessions
        self._most = bounds.waiting
        self._asked: dict[str, asyncio.Future[DurableSession | None]] = {}
        self._due: set[str] = set()
        self._waiting = 0
        self._looking: asyncio.Task[None] | None = None
        self._noting: asyncio.Task[None] | None = None
        # Not the loop's own threads, which the application may keep busy.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="bearer")

    def at_once(self, token: str) -> DurableSession | None:
        """Return the live session of a token that can be had without waiting; None: `find` it."""
        now = self._sessions.now()
        session = self._sessions.get_at_once(token, now)
        if session is not None:
            self._check_notes()
            if self._sessions.is_due(session, now):
                self._note_seen([token])
        return session

    async def find(self, token: str) -> DurableSession | None:
        """Return the live session of a token. Raises Refused, and what the log raises."""
        if self._waiting >= self._most:
            raise Refused(503, "too many requests")
        self._waiting += 1
        try:
            if token not in self._asked:
                self._asked[token] = asyncio.get_running_loop().create_future()
            answer = self._asked[token]
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            # Others may wait for the same.
            return await asyncio.shield(answer)
        finally:
            self._waiting -= 1

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        while self._asked:
            asked, self._asked = self._asked, {}
            try:
                self._check_notes()
                found = await loop.run_in_executor(self._threads, self._sessions.get_all, asked)
            except Exception as error:
                for answer in asked.values():
                    answer.set_exception(error)
                    answer.exception()  # nobody may be there to read it
                continue
            for token, answer in asked.items():
                answer.set_result(found.get(token))
            self._note_seen(token for token, session in found.items() if self._sessions.is_due(session))

    def _note_seen(self, due: Iterable[str]) -> None:
        self._due.update(due)
        if self._due and (self._noting is None or self._noting.done()):
            self._noting = asyncio.create_task(self._note())

    async def _note(self) -> None:
        loop = asyncio.get_running_loop()
        while self._due:
            due, self._due = self._due, set()
            await loop.run_in_executor(self._threads, self._sessions.note, due)

    def _check_notes(self) -> None:
        """Raise what the log has raised while it was written to: then nobody is let through."""
        noting = self._noting
        if noting is not None and noting.done() and not noting.cancelled():
            self._noting = None
            noting.result()


def _result(session: DurableSession | None) -> AuthResult | None:
    return None if session is None else AuthResult(session.principal, session.id, "session")


def key_holder(token: str, keys: StaticKeys) -> AuthResult | None:
    """Return the holder of a static key. Every key is compared, so that the time tells nothing about them."""
    given = _octets(token)
    found = [key for key in keys if equal_in_constant_time(_octets(key), given)]
    if not found:
        return None
    principals = cast("Mapping[str, str]", keys) if hasattr(keys, "items") else {}
    return AuthResult(principals.get(found[0]) or _KEY_HOLDER, None, "api_key")


def _caller(token: str, sessions: BearerSessions, now: datetime | None) -> AuthResult | None:
    """Whose live session it is."""
    session = sessions.get(token, now)
    if session is not None:
        sessions.note([token], now)
    return _result(session)


def _text(value: Text) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
