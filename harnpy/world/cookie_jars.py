"""The cookies of one session: bounded, and sent to whom they belong to. Spec: 04 §21.2."""

from __future__ import annotations

from http.cookiejar import Cookie, CookieJar, DefaultCookiePolicy
from typing import Any

#: What browsers keep, roughly.
_MOST, _LONGEST = 1000, 4096


class _Bounded(DefaultCookiePolicy):
    """Accepts cookies for hosts and their own domains, not for a whole `co.uk`, and not without end."""

    def __init__(self, jar: CookieJar) -> None:
        super().__init__(strict_domain=True)
        self._jar = jar

    def set_ok(self, cookie: Cookie, request: Any) -> bool:
        size = len(cookie.name) + len(cookie.value or "")
        return size <= _LONGEST and len(self._jar) < _MOST and super().set_ok(cookie, request)


def new_jar() -> CookieJar:
    """Return an empty jar."""
    jar = CookieJar()
    jar.set_policy(_Bounded(jar))
    return jar


def no_jar() -> CookieJar:
    """Return a jar that stays empty."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))
