"""Forms with files as bodies of requests: `multipart/form-data` (RFC 7578), written and read.

What comes from outside is assumed to be hostile: every byte is looked at a few times at most. Spec: 04 §16.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import count
from typing import NamedTuple

from harnpy.faults import NamedMisuse, paced
from harnpy.net.header_grammar import Malformed, is_token, quoted, value_and_parameters

#: RFC 2046, 5.1.1: a blank may not be the last character.
_CHARACTERS = re.compile(r"[0-9A-Za-z'()+_,\-./:=? ]*[0-9A-Za-z'()+_,\-./:=?]")
_MOST_BYTES = 70


class FormError(NamedMisuse):
    """A form can't be written or read."""


def checked_boundary(boundary: str) -> bytes:
    """Return the bytes of a boundary. Raises FormError for what can't be one."""
    if not boundary:
        raise FormError("boundary must not be empty")
    data = boundary.encode("utf-8", "surrogatepass")
    if len(data) > _MOST_BYTES:
        raise FormError(f"boundary must be at most {_MOST_BYTES} bytes")
    if not _CHARACTERS.fullmatch(boundary):
        raise FormError("boundary contains a character that is not valid in multipart/form-data")
    return data


def chosen_boundary(texts: Iterable[str], contents: Sequence[bytes]) -> str:
    """Return a boundary that none of the ``contents`` holds: the same one for the same ``texts``."""
    digest = sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    base = "----harn-boundary-" + digest.hexdigest()[:16]
    if not _is_held(base, contents):
        return base
    return next(found for n in count(1) if not _is_held(found := f"{base}-{n}", contents))


def form_content_type(boundary: str) -> str:
    return "multipart/form-data; boundary=" + (boundary if is_token(boundary) else quoted(boundary))


def _is_held(boundary: str, contents: Sequence[bytes]) -> bool:
    data = boundary.encode()
    return any(data in content for content in contents)


_MANAGED = {"content-disposition": "Content-Disposition", "content-type": "Content-Type"}
_NOT_ONE_LINE = re.compile(r"[\r\n\0]")


class Part(NamedTuple):
    """A field of a form. ``headers`` are those besides `Content-Disposition` and `Content-Type`."""

    name: str
    content: bytes
    filename: str | None = None
    content_type: str | None = None
    headers: Mapping[str, str] = {}


def encoded_form(parts: Iterable[Part], boundary: str) -> bytes:
    """Return the body of a form. Raises FormError."""
    return b"".join(form_pieces(parts, checked_boundary(boundary)))


def form_pieces(parts: Iterable[Part], boundary: bytes) -> Iterator[bytes]:
    """Yield the body of a form, each content as it is. Raises FormError."""
    for part in paced([*parts]):
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
    headers += [_own(name, value) for name, value in paced(sorted(part.headers.items()))]
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


_MEDIA_TYPE = "multipart/form-data"


class Limits(NamedTuple):
    """The most bytes of a body and of one field's content, and the most fields."""

    max_total_bytes: int = 8 << 20
    max_field_bytes: int = 8 << 20
    max_fields: int = 128


class Field(NamedTuple):
    """``headers``: by lowercase names."""

    name: str
    filename: str | None
    content_type: str | None
    headers: dict[str, str]
    content: bytes


class Form(NamedTuple):
    boundary: str
    fields: list[Field]


def read_form(body: bytes, content_type: str, limits: Limits) -> Form:
    """Return the form in a body. Raises FormError.

    ``content_type``: the request's header, which names the boundary.
    """
    if len(body) > limits.max_total_bytes:
        raise FormError(f"total body size {len(body)} exceeds max_total_bytes {limits.max_total_bytes}")
    boundary = _boundary(content_type)
    fields: list[Field] = []
    for head, content in _parts(body, b"--" + checked_boundary(boundary)):
        if len(fields) == limits.max_fields:
            raise FormError(f"field count exceeds max_fields {limits.max_fields}")
        if len(content) > limits.max_field_bytes:
            raise FormError(f"field size {len(content)} exceeds max_field_bytes {limits.max_field_bytes}")
        fields.append(_field(head, content))
    return Form(boundary, fields)


def _boundary(content_type: str) -> str:
    """Return the parameter `boundary`; an empty one is there, too."""
    media_type, _, _ = content_type.partition(";")
    if media_type.strip(" \t").lower() != _MEDIA_TYPE:
        raise FormError(f"expected {_MEDIA_TYPE} content type, got {content_type}")
    try:
        found = value_and_parameters(content_type)[1].get("boundary")
    except Malformed as error:
        raise FormError(f"content type {error}") from None
    if found is None:
        raise FormError("content type is missing boundary")
    return found


def _parts(body: bytes, delimiter: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the head and the content of each part."""
    if not body.startswith(delimiter):
        raise FormError("body does not start with multipart boundary")
    at = len(delimiter)
    while not body.startswith(b"--", at):
        if not body.startswith(b"\r\n", at):
            raise FormError("malformed boundary delimiter line")
        # The line break that ends the delimiter line may also be the one before the next delimiter, or belong
        # to the empty line after a head without headers.
        end = body.find(b"\r\n" + delimiter, at)
        # A part without content may end with the empty line after its headers.
        head_end = body.find(b"\r\n\r\n", at, len(body) if end < 0 else end + 2)
        if head_end < 0:
            raise FormError("part is missing header terminator")
        if end < 0:
            raise FormError("part is missing following boundary")
        yield body[at + 2 : head_end], body[head_end + 4 : end]
        at = end + 2 + len(delimiter)
    if body[at + 2 :] not in (b"", b"\r\n"):
        raise FormError("unexpected bytes after closing boundary")


def _field(head: bytes, content: bytes) -> Field:
    headers = _headers(head.decode("utf-8", "replace"))
    disposition = headers.get("content-disposition")
    if disposition is None:
        raise FormError("part is missing Content-Disposition header")
    try:
        kind, parameters = value_and_parameters(disposition)
    except Malformed as error:
        raise FormError(f"part Content-Disposition {error}") from None
    if kind.lower() != "form-data":
        raise FormError(f"part Content-Disposition must be form-data, got {kind}")
    name = parameters.get("name")
    if name is None:
        raise FormError("part Content-Disposition is missing name")
    return Field(name, parameters.get("filename"), headers.get("content-type"), headers, content)


def _headers(head: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in head.split("\r\n") if head else ():
        name, colon, value = line.partition(":")
        key = name.lower()
        if not colon or not is_token(name):
            raise FormError("part has a malformed header line")
        if key in headers:
            # Two readers of the form would each believe another one.
            raise FormError(f"part has header `{key}` twice")
        headers[key] = value.strip(" \t")
    return headers
