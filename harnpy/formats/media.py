"""Kinds of content: which blocks are texts, and words for media where a reader takes none.

Spec: 07 §6.7, §15.1.
"""

from __future__ import annotations

from typing import Any

#: The kinds of content blocks that are texts, in the spellings of several services.
TEXTS = ("text", "output_text", "input_text")


def left_out(kind: str, media_type: Any, data: Any, where: Any = None, why: str = "") -> str:
    """Return ``[image: image/png, 812 bytes, left out]``; of ``data``, base64, only the size is told."""
    known = [text for text in (where, media_type) if isinstance(text, str) and text]
    if isinstance(data, str):
        known.append(f"{len(data.rstrip('=')) * 3 // 4} bytes")
    told = ", ".join([*known, f"left out{why}"])
    return f"[{kind}: {told}]"
