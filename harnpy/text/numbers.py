"""Numbers as texts that read back as the same number of the same type."""

from __future__ import annotations


def float_with_point(x: float) -> str:
    """Return a finite float in the shortest digits, always with a point: ``1.0e+20``, not ``1e+20``."""
    text = repr(x)
    if "." in text:
        return text
    digits, e, exponent = text.partition("e")
    return f"{digits}.0{e}{exponent}"
