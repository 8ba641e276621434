"""Redacting secrets in what people and tools report. Spec: 08 §8.8 "Redaction"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.text.secrets.contexts import MASK
from harnpy.text.secrets.masking import mask_secrets
from harnpy.text.secrets.names import is_secret_name

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict


REDACTED = "[redacted]"

_PREFIXES = ("sk-", "ghp_", "xoxb-", "AKIA")
_ASSIGNMENTS = ("token=", "password=", "api_key=", "apikey=")
_LONG = re.compile(r"[A-Za-z0-9_-]{49,}")
_SECRET_KEYS = ("secret", "token", "password", "api_key", "apikey")


def redacted(text: str) -> str:
    """Return the words of ``text``, separated by one space, without those that look like secrets."""
    masked = mask_secrets(text)
    return " ".join(REDACTED if MASK in word or _is_suspect(word) else word for word in masked.split())


def is_secret(word: str) -> bool:
    return _is_suspect(word) or mask_secrets(word) != word


def _is_suspect(word: str) -> bool:
    if word.startswith(_PREFIXES) or _LONG.fullmatch(word):
        return True
    lowered = word.lower()
    return any(mark in lowered for mark in _ASSIGNMENTS)


def redacted_metadata(metadata: Dict, top_level_keys: bool) -> Dict:
    """Return ``metadata`` without secrets; ``top_level_keys``: its own keys may name one, too."""
    return {
        key: REDACTED if top_level_keys and _names_secret(key) else _within(value)
        for key, value in metadata.items()
    }


def _within(value: Any) -> Any:
    if isinstance(value, dict):
        return redacted_metadata(value, top_level_keys=True)
    if isinstance(value, list):
        return [_within(item) for item in value]
    return redacted(value) if isinstance(value, str) else value


def _names_secret(key: str) -> bool:
    lowered = key.lower()
    return is_secret_name(key) or any(part in lowered for part in _SECRET_KEYS)
