"""Secrets in the text of a program: what `check` warns of, and what no excerpt of a source shows. Pure.

Only what is recognised by itself counts, and nothing that looks like an example. Spec: 03 §16, 08 §17.
"""

from __future__ import annotations

import re

#: Shorter ones are hard to tell from names.
_CANDIDATE = re.compile(r"[A-Za-z0-9_.:/+=$~-]{16,}")
#: Different characters; data and rulers have fewer.
_FEWEST = 10
_ARMOUR = "-----BEGIN "
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----\s+\S{20,}")
#: What people write where a secret would be.
_EXAMPLE = re.compile(
    r"example|sample|dummy|fake|test|mock|your|secret|token|xxx|abc|123|redacted|\.\.\.|key-", re.IGNORECASE
)


def kind_of_secret(text: str) -> str | None:
    """Return what kind of a secret a string holds, None if it holds none."""
    if _ARMOUR in text:
        return "private key" if _PRIVATE_KEY.search(text) else None
    found = (_form_of(word) for word in _CANDIDATE.findall(text))
    return next(filter(None, found), None)


def hidden(line: str) -> str:
    """Return a line of a program with ``*`` in the place of each character of a secret."""
    return _CANDIDATE.sub(lambda found: "*" * len(found[0]) if _form_of(found[0]) else found[0], line)


def _form_of(word: str) -> str | None:
    """Return the kind of key that a word is."""
    if len(set(word)) < _FEWEST or not any(map(str.isdigit, word)) or _EXAMPLE.search(word):
        return None
    from harnpy.text.secrets.forms import FORMS  # few programs have a word that may be one

    return next((form.kind for form in FORMS if re.fullmatch(form.pattern, word)), None)
