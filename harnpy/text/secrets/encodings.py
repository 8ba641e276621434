"""Finding secrets inside base64 and percent-encoded text. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from harnpy.text.secrets.decoding import decoded_base64

if TYPE_CHECKING:
    from collections.abc import Callable

#: Base64 in lines, as `base64` and PEM write it, and in one run.
_BASE64 = re.compile(
    r"(?:[A-Za-z0-9+/]{60,76}(?:\r?\n|\\n)[ \t]*)+[A-Za-z0-9+/]{1,76}={0,2}|[A-Za-z0-9+/_-]{16,}={0,2}"
)
_BREAKS = re.compile(r"\\n|\s")
_PERCENT = re.compile(r"(?>(?:[\w.~+*!-]|%[0-9A-Fa-f]{2}){8,})")


def mask_encoded(text: str, has_secret: Callable[[str], bool], mask: str) -> str:
    """Return ``text`` with ``mask`` in place of runs whose decoded text has a secret."""

    def base64_run(found: re.Match[str]) -> str:
        decoded = decoded_base64(_BREAKS.sub("", found[0]))
        return mask if decoded is not None and has_secret(decoded) else found[0]

    def percent_run(found: re.Match[str]) -> str:
        return mask if "%" in found[0] and has_secret(unquote(found[0])) else found[0]

    text = _BASE64.sub(base64_run, text)
    return _PERCENT.sub(percent_run, text) if "%" in text else text
