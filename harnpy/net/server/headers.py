"""Headers as programs have them: a dict by name, of strings or lists of strings. Spec: 04 §21.5."""

from __future__ import annotations

import re

from harnpy.net.parameters import is_token
from harnpy.net.server.faults import ServerFault
from harnpy.text.display import display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
#: What the server says itself about how it sends a body.
_OF_THE_CONNECTION = frozenset(["connection", "content-length", "keep-alive", "transfer-encoding", "upgrade"])


def of_request(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return received headers by lowercase name; the values of a repeated one are joined."""
    found: dict[str, str] = {}
    for name, value in pairs:
        name = name.lower()
        separator = "; " if name == "cookie" else ", "
        found[name] = f"{found[name]}{separator}{value}" if name in found else value
    return found


def given(headers: Any) -> dict[str, Any]:
    """Return the headers that a program gives, by lowercase name. Raises ServerFault for what is none."""
    if headers is None:
        return {}
    if type(headers) is not dict:
        raise ServerFault(f"headers must be a dict, got {type_name(headers)}")
    found: dict[str, Any] = {}
    for name, value in headers.items():
        if value is None:
            continue
        if not is_token(name):
            raise ServerFault(f"{name!r} is no name of a header")
        values = [display(each).strip(" \t") for each in (value if type(value) is list else [value])]
        for each in values:
            if not _VALUE.fullmatch(each):
                raise ServerFault(f"the header `{name}` contains a line break or another control character")
        found[name.lower()] = values if type(value) is list else values[0]
    return found


def find(headers: dict[str, Any], name: str) -> str | None:
    """Return the header ``name``, in any case; several values are joined. None when there is none."""
    wanted = name.lower()
    for key, value in headers.items():
        if key.lower() == wanted and value is not None:
            return ", ".join(map(display, value)) if type(value) is list else display(value)
    return None


def to_send(headers: dict[str, Any]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the headers of a response as they go out; those of the connection are the server's own."""
    for name, value in headers.items():
        if name in _OF_THE_CONNECTION:
            continue
        for each in value if type(value) is list else [value]:
            yield name.encode("ascii"), each.encode("utf-8", "surrogatepass")
