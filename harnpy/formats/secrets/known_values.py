"""Masking values that are known to be secret, in any encoding and also cut short. Pure. Spec: 08 §17.

A value is found as it is, reversed, percent-encoded, escaped for JSON, in hexadecimal digits, and in base64
wherever it stands in what was encoded. `_WINDOW` characters in a row of any of these are enough.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from harnpy.faults import paced

_WINDOW = 12
#: A part with fewer different characters occurs by chance.
_DIFFERENT = 5
#: Shorter values in another encoding are too short to be told from other text.
_LEAST_ENCODED = 6

_LONG_WORD = re.compile(rf"\S{{{_WINDOW},}}")


class SecretValues:
    """Some secret values; empty ones are ignored."""

    def __init__(self, values: Iterable[str]) -> None:
        known = [value for value in values if value]
        forms = {form for value in known for form in _forms(value)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._whole = re.compile("|".join(map(re.escape, longest_first))) if forms else None
        # Parts of an address are no secret.
        self._parts = {
            part for value in known if "://" not in value for form in _forms(value) for part in _parts(form)
        }

    def masked(self, text: str, mask: str) -> str:
        """Return ``text`` with ``mask`` in place of each value."""
        if self._whole is None:
            return text
        # A mask that happens to contain a value stays.
        pieces = [self._whole.sub(mask, piece) for piece in text.split(mask)]
        if self._parts:
            pieces = [
                _LONG_WORD.sub(lambda word: self._without_parts(word[0], mask), piece) for piece in pieces
            ]
        return mask.join(pieces)

    def _without_parts(self, word: str, mask: str) -> str:
        shown: list[str] = []
        start = end = 0
        for at in paced(range(len(word) - _WINDOW + 1)):
            if word[at : at + _WINDOW] in self._parts:
                if at > end or not shown:
                    shown += [word[end:at], mask]
                end = at + _WINDOW
            start = end
        return "".join(shown) + word[start:]


def in_json(value: str) -> Iterator[str]:
    """Yield how a value may be written in JSON, and in a text of JSON that is itself written in JSON."""
    for is_ascii in (False, True):
        once = json.dumps(value, ensure_ascii=is_ascii)[1:-1]
        yield once
        for is_ascii_again in (False, True):
            yield json.dumps(once, ensure_ascii=is_ascii_again)[1:-1]


def _forms(value: str) -> Iterator[str]:
    yield value
    yield from in_json(value)
    if len(value) < _LEAST_ENCODED:
        return
    yield value[::-1]
    yield quote(value, safe="", errors="replace")
    yield quote(value, errors="replace")
    yield quote_plus(value, errors="replace")
    raw = value.encode("utf-8", "surrogatepass")
    yield raw.hex()
    yield raw.hex().upper()
    for shift in range(3):
        # The value may begin at any byte of a group of three. Characters that depend on its neighbours are
        # left out.
        whole = raw[: (len(raw) + shift) // 3 * 3 - shift]
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(b"\0" * shift + whole).decode()[(0, 2, 3)[shift] :]


def _parts(form: str) -> Iterator[str]:
    for at in paced(range(len(form) - _WINDOW + 1)):
        part = form[at : at + _WINDOW]
        if len(set(part)) >= _DIFFERENT and not any(map(str.isspace, part)):
            yield part
