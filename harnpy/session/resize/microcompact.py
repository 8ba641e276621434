"""Shortening one long text to its beginning, its end, and the lines that report errors.

Lengths are UTF-8 bytes. Spec: 08 §4.10.
"""

from __future__ import annotations

import re

MAX_CHARS = 20000
_LEAST_LIMIT = 200
_LINES_KEPT = 32
_LEAST_SIDE = 80

_FAILURE = re.compile(r"FAIL|panic|Panic")
_POSITION = re.compile(r"[^:]*:[0-9]")
_AT_POSITION = re.compile(r"error|undefined|expected|got")
_AT_POSITION_ANY_CASE = (
    "cannot find",
    "not found",
    "no such",
    "unresolved",
    "missing",
    "declared but not used",
    "unused",
    "mismatch",
)
_OPENING = ("error:", "warning:", "note:")


def microcompact(text: str, limit: int = MAX_CHARS) -> str:
    """Return ``text`` in about ``limit`` bytes; unchanged if it is no longer, or if the limit is tiny."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit or limit < _LEAST_LIMIT:
        return text
    diagnostics = "\n".join([line for line in text.split("\n") if _is_diagnostic(line)][:_LINES_KEPT])
    if diagnostics:
        size = len(diagnostics.encode("utf-8", "surrogatepass"))
        side = max(0, limit - (size + 64)) // 2
        if side >= _LEAST_SIDE and len(data) > 2 * side:
            head, tail = _head(data, side), _tail(data, side)
            kept = f"[diagnostic lines preserved]\n{diagnostics}\n\n[... output compacted ...]"
            return f"{head}\n\n{kept}\n\n{tail}"
    head, tail = _head(data, limit // 2), _tail(data, limit // 2)
    snipped = (
        len(data) - len(head.encode("utf-8", "surrogatepass")) - len(tail.encode("utf-8", "surrogatepass"))
    )
    return f"{head}\n\n[... {snipped} characters snipped ...]\n\n{tail}"


def _is_diagnostic(line: str) -> bool:
    line = line.strip()
    if _FAILURE.search(line):
        return True
    lowered = line.lower()
    if _POSITION.match(line) and (
        _AT_POSITION.search(line) or any(words in lowered for words in _AT_POSITION_ANY_CASE)
    ):
        return True
    return " error " in lowered or "panic:" in lowered or lowered.startswith(_OPENING)


def _head(data: bytes, size: int) -> str:
    """Return the first ``size`` bytes up to and including their last line break."""
    head = data[:size]
    end = head.rfind(b"\n") + 1
    return (head[:end] if end else head).decode("utf-8", "ignore")


def _tail(data: bytes, size: int) -> str:
    """Return the last ``size`` bytes, from after their first line break if text follows it."""
    tail = data[len(data) - size :].decode("utf-8", "ignore")
    line_break = tail.find("\n")
    return tail[line_break + 1 :] if 0 <= line_break < len(tail) - 1 else tail
