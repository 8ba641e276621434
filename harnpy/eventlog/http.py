"""Whom an HTTP request or a WebSocket is from: `BearerAuth`, an ASGI middleware. Spec: 08 §16, 10 §C22."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from harnpy.eventlog.bearer import TouchSession
from harnpy.formats.crypto.primitives import equal_in_constant_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, MutableMapping
    from datetime import datetime

    from harnpy.eventlog.bearer import BearerSessions, Token

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
    Text = str | bytes
    #: As a dict, or as ASGI has them; names in any case.
    Headers = Mapping[str, str] | Iterable[tuple[Text, Text]]
    #: The keys, or each with its principal.
    StaticKeys = Mapping[str, str] | Collection[str]

#: Whom a static key stands for that has no principal of its own.
_KEY_HOLDER = "api-key"
#: Why a WebSocket is closed. The codes from 4000 on are the application's.
_UNAUTHORIZED = 4401
_BODY = b'{"error": "unauthorized"}'


class AuthResult(NamedTuple):
    """The caller. ``kind`` is ``api_key`` or ``session``; ``session_id``, the token, is for sessions."""

    principal: str
    session_id: Token | None
    kind: str


def authenticate(
    headers: Headers, static_keys: StaticKeys, sessions: BearerSessions, now: datetime | None = None
) -> AuthResult | None:
    """Return who sent the headers; None when they don't say it, or it isn't true.

    A static key never asks ``sessions``. A session is touched at ``now`` (None: by the sessions' clock).
    """
    token = bearer_token(headers)
    if token is None:
        return None
    return _holder(token, static_keys) or _caller(token, sessions, now)


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
    a 401, a WebSocket the close code 4401 before it is accepted.
    """

    def __init__(
        self,
        app: App,
        sessions: BearerSessions,
        *,
        static_keys: StaticKeys = (),
        exempt: Collection[str] = (),
    ) -> None:
        self._app = app
        self._sessions = sessions
        self._keys = static_keys
        self._exempt = frozenset(exempt)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"] in self._exempt:
            await self._app(scope, receive, send)
            return
        result = await self._authenticated(scope["headers"])
        if result is not None:
            known = {"auth_principal": result.principal, "auth_session_id": result.session_id}
            await self._app({**scope, **known}, receive, send)
        elif scope["type"] == "http":
            await _refuse(send)
        else:
            await receive()  # websocket.connect
            await send({"type": "websocket.close", "code": _UNAUTHORIZED})

    async def _authenticated(self, headers: Headers) -> AuthResult | None:
        token = bearer_token(headers)
        if token is None:
            return None
        from asyncio import to_thread

        # The log may wait for a disk or a server.
        return _holder(token, self._keys) or await to_thread(_caller, token, self._sessions, None)


async def _refuse(send: Send) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(_BODY)).encode()),
        (b"www-authenticate", b"Bearer"),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": _BODY})


def _holder(token: str, keys: StaticKeys) -> AuthResult | None:
    """Return the holder of a static key. Every key is compared, so that the time tells nothing about them."""
    given = _octets(token)
    found = [key for key in keys if equal_in_constant_time(_octets(key), given)]
    if not found:
        return None
    principals = cast("Mapping[str, str]", keys) if hasattr(keys, "items") else {}
    return AuthResult(principals.get(found[0]) or _KEY_HOLDER, None, "api_key")


def _caller(token: str, sessions: BearerSessions, now: datetime | None) -> AuthResult | None:
    """Whose live session it is."""
    session = sessions.touch(TouchSession(token, now))
    return None if session is None else AuthResult(session.principal, session.id, "session")


def _text(value: Text) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
