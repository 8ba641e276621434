"""The options that say how a connection is made: `proxy`, `proxy_auth` and `tls`. Spec: 04 §21.1."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from harnpy.net.http.errors import HttpError
from harnpy.text.display import display
from harnpy.text.urls import UrlError, build, parse
from harnpy.world.net.settings import USUAL, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.net.http.reading import Given

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def read_settings(given: Given, readable: Callable[[str], str]) -> Settings:
    """``readable`` returns the absolute path of a file that is going to be read. Raises `HttpError`."""
    if given.value("proxy", "tls") is None:
        return USUAL
    return Settings(**_proxy(given), **_tls(given.inner("tls"), readable))


def _proxy(given: Given) -> dict[str, Any]:
    proxy, bypass = given.value("proxy"), ""
    if type(proxy) is dict:
        inner = given.inner("proxy")
        proxy, bypass = inner.value("url"), inner.text("no_proxy") or ""
        if proxy is None:
            raise HttpError("http: invalid proxy '': it has no url")
    if proxy is None:
        return {}
    url, auth = _proxy_url(display(proxy))
    return {
        "proxy": url,
        "proxy_auth": _proxy_auth(given.inner("proxy_auth")) or auth,
        "no_proxy": tuple(filter(None, map(_bypassed, bypass.split(",")))),
    }


def _proxy_url(text: str) -> tuple[str, tuple[str, str] | None]:
    try:
        parts = parse(text if _SCHEME.match(text) else f"http://{text}")
    except UrlError as error:
        raise HttpError(f"http: invalid proxy '{_without_user(text)}': {error}") from None
    if parts.scheme not in ("http", "https"):
        raise HttpError(
            f"http: invalid proxy '{_without_user(text)}': only http and https proxies are spoken to"
        )
    auth = None
    if parts.username is not None or parts.password is not None:
        auth = unquote(parts.username or ""), unquote(parts.password or "")
    bare = parts._replace(username=None, password=None, path="/", query=None, fragment=None)
    return build(bare), auth


def _without_user(url: str) -> str:
    return re.sub(r"(?<=//).*@", "", url, flags=re.DOTALL)


def _proxy_auth(given: Given) -> tuple[str, str] | None:
    user = given.text("user")
    return None if user is None else (user, given.text("pass", "password") or "")


def _bypassed(host: str) -> str:
    return host.strip().lower().removeprefix("*.").lstrip(".")


def _tls(given: Given, readable: Callable[[str], str]) -> dict[str, Any]:
    certificate, key = given.text("client_cert_path"), given.text("client_key_path")
    identity = given.text("client_identity_path")
    if identity is not None and (certificate or key):
        raise HttpError(
            "http: tls.client_identity_path holds both, give it or client_cert_path and client_key_path"
        )
    if key is not None and certificate is None:
        raise HttpError("http: tls.client_key_path needs client_cert_path")
    paths = {"ca": given.text("ca_bundle_path"), "certificate": certificate or identity, "key": key}
    pins = given.value("pinned_sha256")
    return {
        **{name: None if path is None else readable(path) for name, path in paths.items()},
        "pins": frozenset(map(_pin, pins if type(pins) is list else [] if pins is None else [pins])),
    }


def _pin(value: object) -> str:
    pin = display(value).replace(":", "").lower()
    if not _SHA256.fullmatch(pin):
        raise HttpError(f"http: tls.pinned_sha256 must be 64 hex digits, got '{display(value)}'")
    return pin
