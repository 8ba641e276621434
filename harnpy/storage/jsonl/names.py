"""How streams are called on disk: any text as a file name that every system takes. Spec: 10 §C6.1."""

from __future__ import annotations

import hashlib
from urllib.parse import unquote_to_bytes

#: Longer names are cut off and told apart by their hash.
_LONGEST = 180
_KEPT = 140

_LOWER = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")
_SAFE = _LOWER | frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def file_name(name: str, *, folded: bool = False) -> str:
    """Return the name of ``name``'s files, without a suffix.

    ``folded``: the file system takes ``A`` for ``a``, so capitals are encoded, too.
    """
    raw = name.encode("utf-8", "surrogatepass")
    safe = _LOWER if folded else _SAFE
    # An empty name is a lone "%", which no other name gives.
    encoded = "".join(chr(byte) if byte in safe else f"%{byte:02X}" for byte in raw) or "%"
    if len(encoded) <= _LONGEST:
        return encoded
    return f"{encoded[:_KEPT]}~{hashlib.sha256(raw).hexdigest()[:32]}"


def name_of(file: str) -> str | None:
    """Return the name that `file_name` made ``file`` of; None when it was cut off, or for other files."""
    if "~" in file:
        return None
    if file == "%":
        return ""
    try:
        name = unquote_to_bytes(file).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    return name if file in (file_name(name), file_name(name, folded=True)) else None
