"""The option `multipart`: a form as a request's body. Spec: 04 §21.1, §16.5."""

from __future__ import annotations

import os.path
from base64 import b64decode
from typing import TYPE_CHECKING, Any

from harnpy.net.http.errors import HttpError
from harnpy.net.multipart.boundaries import chosen, content_type
from harnpy.net.multipart.writing import Part, encoded
from harnpy.text.display import display

if TYPE_CHECKING:
    from collections.abc import Callable

_CONTENTS = ("value", "value_base64", "path")
_BINARY = "application/octet-stream"


def form(fields: list[Any], content_of: Callable[[str], bytes]) -> tuple[bytes, str]:
    """Return the body and its content type; ``content_of`` reads a file. Raises a `Fault`."""
    parts = [_part(at, field, content_of) for at, field in enumerate(fields)]
    boundary = chosen((f"{part.name} {part.filename}" for part in parts), [part.content for part in parts])
    return encoded(parts, boundary), content_type(boundary)


def _part(at: int, field: Any, content_of: Callable[[str], bytes]) -> Part:
    if type(field) is not dict or not field.get("name"):
        raise HttpError(f"http: multipart field {at} must be a dict with a name")
    given = [key for key in _CONTENTS if field.get(key) is not None]
    if len(given) != 1:
        raise HttpError(f"http: multipart field {at} must have one of value, value_base64 and path")
    source = field[given[0]]
    name, kind = field.get("filename"), field.get("content_type")
    if given[0] == "path":
        name = os.path.basename(display(source)) if name is None else name
        content = content_of(display(source))
    else:
        content = _content(at, given[0], source)
    if kind is None and name is not None:
        kind = _BINARY
    return Part(
        display(field["name"]),
        content,
        None if name is None else display(name),
        None if kind is None else display(kind),
    )


def _content(at: int, key: str, value: Any) -> bytes:
    if key == "value":
        return value if type(value) is bytes else display(value).encode("utf-8", "surrogatepass")
    try:
        return b64decode(display(value), validate=True)
    except ValueError:
        raise HttpError(f"http: multipart field {at}: value_base64 isn't Base64") from None
