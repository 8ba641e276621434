"""`SignIn`: how a browser becomes a caller, and stops being one. Spec: 11 §1.2.

With a one-time link, or a token or key in a form. What the browser keeps is a cookie that no script can read;
its value is the token of a bearer session. A secret is in an address only once, and never in what is sent on.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote

from harnpy.eventlog.bearer import CreateSession, handle_of, utc_now
from harnpy.formats.crypto.encodings import to_base64url
from harnpy.formats.crypto.primitives import equal_in_constant_time
from harnpy.net.cookies import LONG_AGO, Attributes, read_cookies, set_cookie
from harnpy.serve.service import Refused
from harnpy.world.ids import RealEntropy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from harnpy.eventlog.bearer import BearerSessions, DurableSession
    from harnpy.world.connections import AsgiMessage, Receive

PATH, OUT = "/signin", "/signout"
REFUSED = f"{PATH}?refused=1"
#: Whom a one-time link signs in, and for how long browsers are signed in.
LOCAL, LASTS = "local", timedelta(hours=12)
#: An attribute of the sessions that browsers are given: the handle of the key they stand for, or `_LINK`.
VIA, _LINK = "signed_in_by", "link"
_STRENGTH = 32
_LONGEST_FORM = 16 * 1024

Answer = tuple[int, list[tuple[bytes, bytes]]]


class SignIn:
    """``find_key`` returns the principal of a static key, ``find_session`` the live session of a token."""

    def __init__(
        self,
        sessions: BearerSessions,
        find_key: Callable[[str], str | None],
        find_session: Callable[[str], Awaitable[DurableSession | None]],
    ) -> None:
        self._sessions = sessions
        self._find_key = find_key
        self._find_session = find_session
        self._codes: list[str] = []

    def new_link(self) -> str:
        """Return the path of a new link, which signs one browser in."""
        code = to_base64url(RealEntropy.bytes(_STRENGTH)).rstrip("=")
        self._codes.append(code)
        return f"{PATH}?code={quote(code)}"

    async def by_link(self, scope: AsgiMessage) -> Answer:
        """Answer a request of a link: sign in, if nobody has before."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("code", [""])[0].encode()
        found = [code for code in self._codes if equal_in_constant_time(code.encode(), given)]
        if not found:
            return _to(REFUSED)
        # At once, not when the session is there: the next one who has the link is too late.
        self._codes.remove(found[0])
        token = await self._begin(LOCAL, _LINK)
        return _to("/", _cookie(scope, token, is_secure=scope["scheme"] == "https"))

    async def by_form(self, scope: AsgiMessage, receive: Receive, is_secure: bool) -> Answer:
        """Answer a form with a token or a key. Raises `Refused`."""
        body = await _whole(receive)
        token = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
        principal = self._find_key(token) if token else None
        if principal is not None:
            token = await self._begin(principal, handle_of(token))
        elif not token or await self._find_session(token) is None:
            return _to(REFUSED)
        return _to("/", _cookie(scope, token, is_secure=is_secure))

    async def out(self, scope: AsgiMessage, token: str | None) -> Answer:
        """Answer the wish to be signed out. A token that was given out goes on to be one."""
        session = await self._find_session(token) if token else None
        if session is not None and VIA in session.attributes:
            await asyncio.to_thread(self._sessions.expire, session.id)
        gone = Attributes(path="/", http_only=True, max_age=0, expires=LONG_AGO, same_site="Strict")
        return _to(PATH, set_cookie(_name(scope), "", gone))

    async def _begin(self, principal: str, via: str) -> str:
        attributes = {"scopes": ["all"], VIA: via}
        now = utc_now()
        request = CreateSession(principal, now + LASTS, created_at=now, attributes=attributes)
        return str((await asyncio.to_thread(self._sessions.create, request)).id)


def cookie_of(scope: AsgiMessage, header: str) -> str | None:
    """Return the token in a request's `Cookie` header."""
    return read_cookies([header]).values().get(_name(scope))


def still_stands(attributes: Mapping[str, object], keys: frozenset[str]) -> bool:
    """Return whether what a browser has signed in with still holds; ``keys``: the handles of static keys."""
    via = attributes.get(VIA)
    return via is None or via == _LINK or via in keys


def _name(scope: AsgiMessage) -> str:
    # Browsers send cookies to every port of a host: servers side by side must not share one.
    return f"harnpy_{(scope.get('server') or ('', 0))[1]}"


def _cookie(scope: AsgiMessage, token: str, *, is_secure: bool) -> str:
    lasts = int(LASTS.total_seconds())
    how = Attributes(path="/", max_age=lasts, http_only=True, secure=is_secure, same_site="Strict")
    return set_cookie(_name(scope), token, how)


def _to(path: str, cookie: str | None = None) -> Answer:
    headers = [(b"location", path.encode()), (b"content-length", b"0"), (b"cache-control", b"no-store")]
    return 303, headers if cookie is None else [*headers, (b"set-cookie", cookie.encode())]


async def _whole(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > _LONGEST_FORM:
            raise Refused(413, "too_large", f"a form of more than {_LONGEST_FORM} bytes signs nobody in")
        if not message.get("more_body", False):
            return bytes(body)
