"""What names, values and attributes of cookies may be. Spec: 04 §16.4."""

from __future__ import annotations

import re

from harnpy.faults import MisuseError

_NO_VALUE = re.compile(r'[\x00-\x20\x7f-\x9f;,\\"]')
_NO_ATTRIBUTE = re.compile(r"[\x00-\x1f\x7f-\x9f;]")


class CookieError(MisuseError):
    """A cookie can't be written, signed or read as asked."""

    def __init__(self, message: str) -> None:
        super().__init__(f"cookie: {message}")


def is_value(text: str) -> bool:
    """Return whether ``text`` may be a cookie's value as it is."""
    return _NO_VALUE.search(text) is None


def is_attribute(text: str) -> bool:
    """Return whether ``text`` may stand behind `Path=`, `Domain=`, `Expires=`."""
    return text != "" and _NO_ATTRIBUTE.search(text) is None
