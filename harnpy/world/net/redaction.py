"""URLs without what is secret in them. Pure. Spec: 04 §21.3, §21.4."""

from __future__ import annotations

import re

MASK = "%5Bredacted%5D"
_SECRET = re.compile(
    r"api_?key|(?:.*_)?token|(?:.*_)?secret|.*password", re.IGNORECASE | re.DOTALL
)  # access_token, refresh_token, id_token and client_secret are among them, and libpq's sslpassword
_USER = re.compile(r"(?<=//)[^/\\?#]*@")


def redacted_url(url: str) -> str:
    """Return a URL without user, password and fragment; the values of secret parameters are `MASK`."""
    from urllib.parse import unquote_plus

    place, marked, query = _USER.sub("", url.partition("#")[0]).partition("?")
    pairs = []
    for pair in query.split("&"):
        name, has_value, _ = pair.partition("=")
        hides = has_value and _SECRET.fullmatch(unquote_plus(name))
        pairs.append(f"{name}={MASK}" if hides else pair)
    return f"{place}{marked}{'&'.join(pairs)}"
