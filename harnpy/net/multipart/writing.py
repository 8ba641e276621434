"""Forms to bytes. Spec: 04 §16.5 "multipart_form_data"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from harnpy.net.multipart.boundaries import FormError, checked
from harnpy.net.parameters import is_token, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_MANAGED = {"content-disposition": "Content-Disposition", "content-type": "Content-Type"}
_NOT_ONE_LINE = re.compile(r"[\r\n\0]")


class Part(NamedTuple):
    """A field of a form. ``headers`` are those besides `Content-Disposition` and `Content-Type`."""

    name: str
    content: bytes
    filename: str | None = None
    content_type: str | None = None
    headers: Mapping[str, str] = {}


def encoded(parts: Iterable[Part], boundary: str) -> bytes:
    """Return the body of a form. Raises FormError."""
    return b"".join(pieces(parts, checked(boundary)))


def pieces(parts: Iterable[Part], boundary: bytes) -> Iterator[bytes]:
    """Yield the body of a form, each content as it is. Raises FormError."""
    for part in parts:
        if part.content.startswith(b"--" + boundary) or b"\r\n--" + boundary in part.content:
            raise FormError(f"the content of field `{part.name}` has a line that begins with the boundary")
        yield b"--" + boundary + b"\r\n" + _head(part).encode("utf-8", "surrogatepass") + b"\r\n"
        yield part.content
        yield b"\r\n"
    yield b"--" + boundary + b"--\r\n"


def _head(part: Part) -> str:
    if not part.name:
        raise FormError("name must not be empty")
    disposition = f"form-data; name={quoted(part.name)}"
    if part.filename is not None:
        disposition += f"; filename={quoted(part.filename)}"
    headers = [("Content-Disposition", disposition)]
    if part.content_type is not None:
        headers.append(("Content-Type", part.content_type))
    headers += [_own(name, value) for name, value in sorted(part.headers.items())]
    return "".join(f"{name}: {_one_line(value)}\r\n" for name, value in headers)


def _own(name: str, value: str) -> tuple[str, str]:
    managed = _MANAGED.get(name.lower())
    if managed is not None:
        raise FormError(f"{managed} is managed by multipart_form_data")
    if not is_token(name):
        raise FormError(f"header name `{name}` is empty or contains invalid characters")
    return name, value


def _one_line(value: str) -> str:
    if _NOT_ONE_LINE.search(value):
        raise FormError("header values must be single-line")
    return value
