"""Keys that a server's clients must show: `Authorization: Bearer KEY` or `X-API-Key: KEY`. Spec: 09 §11.4."""

from __future__ import annotations

from hmac import compare_digest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.world.net.listeners import Application, Message, Receive, Send

_BEARER = b"bearer "
_REFUSAL = b"auth failed"


class Keyed:
    """An ASGI application that serves only requests with one of ``keys``; without keys all of them."""

    def __init__(self, app: Application, keys: Iterable[str]) -> None:
        self._app = app
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._keys or self._admits(dict(scope["headers"])):
            await self._app(scope, receive, send)
            return
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(_REFUSAL)).encode()),
            (b"www-authenticate", b"Bearer"),
        ]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": _REFUSAL})

    def _admits(self, headers: dict[bytes, bytes]) -> bool:
        given = headers.get(b"x-api-key")
        if given is None:
            authorization = headers.get(b"authorization", b"")
            if authorization[: len(_BEARER)].lower() != _BEARER:
                return False
            given = authorization[len(_BEARER) :].strip()
        # All of them are compared: how long it takes says nothing about the keys.
        found = [compare_digest(given, key) for key in self._keys]
        return any(found)
