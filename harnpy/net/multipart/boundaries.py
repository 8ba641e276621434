"""What separates the parts of a form. Spec: 04 §16.5."""

from __future__ import annotations

import re
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING

from harnpy.faults import NamedMisuse
from harnpy.net.parameters import is_token, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: RFC 2046, 5.1.1: a blank may not be the last character.
_CHARACTERS = re.compile(r"[0-9A-Za-z'()+_,\-./:=? ]*[0-9A-Za-z'()+_,\-./:=?]")
_MOST_BYTES = 70


class FormError(NamedMisuse):
    """A form can't be written or read."""


def checked(boundary: str) -> bytes:
    """Return the bytes of a boundary. Raises FormError for what can't be one."""
    if not boundary:
        raise FormError("boundary must not be empty")
    data = boundary.encode("utf-8", "surrogatepass")
    if len(data) > _MOST_BYTES:
        raise FormError(f"boundary must be at most {_MOST_BYTES} bytes")
    if not _CHARACTERS.fullmatch(boundary):
        raise FormError("boundary contains a character that is not valid in multipart/form-data")
    return data


def chosen(texts: Iterable[str], contents: Sequence[bytes]) -> str:
    """Return a boundary that none of the ``contents`` holds: the same one for the same ``texts``."""
    digest = sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    base = "----harn-boundary-" + digest.hexdigest()[:16]
    if not _is_held(base, contents):
        return base
    return next(found for n in count(1) if not _is_held(found := f"{base}-{n}", contents))


def content_type(boundary: str) -> str:
    return "multipart/form-data; boundary=" + (boundary if is_token(boundary) else quoted(boundary))


def _is_held(boundary: str, contents: Sequence[bytes]) -> bool:
    data = boundary.encode()
    return any(data in content for content in contents)
