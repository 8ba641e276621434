"""Bytes to forms. What comes from outside is taken for hostile: every byte is looked at a few times at most.

Spec: 04 §16.5 "multipart_parse".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.net.multipart.boundaries import FormError, checked
from harnpy.net.parameters import Malformed, is_token, value_and_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def read(body: bytes, content_type: str, limits: Limits) -> Form:
    """Return the form in a body. Raises FormError.

    ``content_type``: the request's header, which names the boundary.
    """
    if len(body) > limits.max_total_bytes:
        raise FormError(f"total body size {len(body)} exceeds max_total_bytes {limits.max_total_bytes}")
    boundary = _boundary(content_type)
    fields: list[Field] = []
    for head, content in _parts(body, b"--" + checked(boundary)):
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
