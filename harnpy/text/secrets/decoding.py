"""Reading base64 that may be text. Pure."""

from __future__ import annotations

import base64
import binascii

_PROBE = 64
_PADDING = "=="


def decoded_base64(run: str) -> str | None:
    """Return the text that ``run`` is the base64 of, in either alphabet, padded or not, or None."""
    run = run.rstrip("=").replace("-", "+").replace("_", "/")
    if not _is_text(_bytes(run[:_PROBE])):
        return None
    whole = _bytes(run)
    return whole.decode("utf-8", "replace") if _is_text(whole) else None


def _bytes(run: str) -> bytes:
    # A last group of one character has no byte in it: the run was cut there.
    run = run[:-1] if len(run) % 4 == 1 else run
    try:
        return base64.b64decode(run + _PADDING[: -len(run) % 4], validate=True)
    except (binascii.Error, ValueError):
        return b""


def _is_text(found: bytes) -> bool:
    return (
        bool(found)
        and all(byte >= 32 or byte in b"\t\n\r" for byte in found)
        and 127 not in found
        and _utf8(found)
    )


def _utf8(found: bytes) -> bool:
    try:
        found.decode()
    except UnicodeDecodeError as error:
        # The probe may end within a character.
        return error.start >= len(found) - 3
    return True
