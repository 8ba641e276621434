"""Masking secrets in any text. Pure. Spec: 08 §17."""

from __future__ import annotations

import re

from harnpy.text.secrets.contexts import BEGIN, MASK, mask_in_context
from harnpy.text.secrets.encodings import mask_encoded
from harnpy.text.secrets.forms import FORMS, WEBHOOKS
from harnpy.text.secrets.randomness import mask_random

#: Base64 of base64 is looked into, no deeper.
_DEPTH = 2

# The lookahead skips most words at once: no form is shorter.
_FORMS = re.compile(rf"{BEGIN}(?=[A-Za-z0-9_.:/+=$-]{{6}})(?:{'|'.join(form.pattern for form in FORMS)})")
_WEBHOOKS = re.compile(
    rf"(?P<keep>https?:(?:\\?/){{2}})(?:{'|'.join(form.pattern for form in WEBHOOKS)})"
    r"(?!\[redacted)[^\s\"'<>\\]+"
)


def mask_secrets(text: str) -> str:
    """Return ``text`` with `MASK` in place of whatever looks like a secret."""
    return _masked(text, _DEPTH)


def _masked(text: str, depth: int) -> str:
    text = _WEBHOOKS.sub(lambda found: found["keep"] + MASK, text)
    text = _FORMS.sub(MASK, mask_in_context(text))
    if depth:
        text = mask_encoded(text, lambda inner: _masked(inner, depth - 1) != inner, MASK)
    return mask_random(text, MASK)
