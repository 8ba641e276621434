"""`file:` URIs and paths. Spec: 12 §1.3."""

from __future__ import annotations

import os.path
from urllib.parse import quote, unquote, urlsplit


def path_of(uri: str) -> str | None:
    """Return the path of a `file:` URI; None for any other."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    return os.path.normpath(unquote(parts.path))


def uri_of(path: str) -> str:
    """Return the `file:` URI of an absolute path."""
    return f"file://{quote(path)}"
