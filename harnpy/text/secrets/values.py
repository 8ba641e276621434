"""Masking secrets in JSON values, where keys tell more than texts do. Pure. Spec: 08 §17."""

from __future__ import annotations

from typing import Any

from harnpy.text.secrets.contexts import MASK
from harnpy.text.secrets.masking import mask_secrets
from harnpy.text.secrets.names import is_secret_flag, is_secret_header, is_secret_member, names_secret


def mask_value(value: Any) -> Any:
    """Return a value with secrets masked in its texts, and the whole texts under keys that name a secret."""
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, dict):
        hidden = "value" if names_secret(value) else None
        return {
            key: _masked(item) if key == hidden or is_secret_member(key, item) else mask_value(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        places = {at + 1 for at, item in enumerate(value) if is_secret_flag(item)}
        places |= {1} if is_secret_header(value) else set()
        return [_masked(item) if at in places else mask_value(item) for at, item in enumerate(value)]
    return value


def _masked(value: Any) -> Any:
    """Mask all texts of a secret's value; in a dict only its own secrets: it may be a schema of one."""
    if isinstance(value, list):
        return [_masked(item) for item in value]
    return MASK if isinstance(value, str) and value else mask_value(value)
