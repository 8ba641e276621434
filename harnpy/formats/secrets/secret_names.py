"""Names whose values are secret: keys of objects, headers, variables, parameters. Pure. Spec: 08 §17."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

# Reading base64 that may be text. Pure.


_PROBE = 64
_PADDING = "=="
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def decoded_base64(run: str) -> str | None:
    """Return the text that ``run`` is the base64 of, in either alphabet, padded or not, or None."""
    run = run.rstrip("=").replace("-", "+").replace("_", "/")
    if not _is_text(_bytes(run[:_PROBE])):
        return None
    whole = _bytes(run)
    return whole.decode("utf-8", "replace") if _is_text(whole) else None


def _bytes(run: str) -> bytes:
    # A last group of one character has no byte in it: the run was cut there.
    run = run[:-1] if len(run) % 4 == 1 else run
    try:
        return base64.b64decode(run + _PADDING[: -len(run) % 4], validate=True)
    except (binascii.Error, ValueError):
        return b""


def _is_text(found: bytes) -> bool:
    return bool(found) and not _CONTROL.search(found) and _utf8(found)


def _utf8(found: bytes) -> bool:
    try:
        found.decode()
    except UnicodeDecodeError as error:
        # The probe may end within a character.
        return error.start >= len(found) - 3
    return True


#: Names of passwords: people choose these, so a value may be a plain word.
PASSWORD = r"(?:passwo?r?d|passphrase|passcode)"
#: Names of keys, which machines make.
KEY = (
    r"(?:(?:api[ _-]?(?:key|token|secret)|(?:access|auth|refresh|id|bearer|client)[ ]?token|token"
    r"|(?:client|app|consumer)secret|secret"
    r"|authorization|cookie|credential|connection[_-]?string|webhook[_-]?url"
    r"|mnemonic|(?:seed|recovery|backup)[ _-]?phrase"
    r"|(?:private|access|account|secret|master|signing|encryption|shared|storage|service|admin|license|auth|hmac|aes"
    r"|cipher|jwt|deploy)[ _-]?key)(?:[_-](?:base(?:64)?|b64|hex))?)"
)
NAME = rf"(?:{PASSWORD}|{KEY})"
#: Between the words of a name: ``access_token``, ``access-token``, ``accessToken``.
BETWEEN = r"(?:[_.-]|(?-i:(?<=[a-z0-9])(?=[A-Z])))"

_SECRET_NAME = re.compile(
    rf"(?:.*{BETWEEN})?{NAME}|.*{PASSWORD}|.*{BETWEEN}(?:pass|pwd|dsn|jwt)", re.IGNORECASE | re.DOTALL
)
_HEADER = re.compile(
    r"(?:proxy-)?authorization|(?:set-)?cookie|x-(?:.*-)?(?:key|token|secret)", re.IGNORECASE
)


def is_secret_name(key: str) -> bool:
    """Return whether the text under that key is a secret: ``x-api-key``, ``apiKey``, but not
    ``input_tokens``."""
    return _SECRET_NAME.fullmatch(key) is not None


def is_secret_member(key: str, value: Any) -> bool:
    """Return whether that value under that key is a secret: the name says so, or both together do."""
    if is_secret_name(key):
        return True
    if not isinstance(value, str):
        return False
    lowered = key.lower()
    if lowered in ("pwd", "pass"):
        # `PWD` is also the working directory.
        return not value.startswith(("/", "~", ".")) and value[1:2] != ":"
    return lowered in ("auth", "_auth") and is_docker_auth(value)


def is_docker_auth(value: str) -> bool:
    """Return whether a text is the base64 of ``user:password``, as Docker and npm keep it."""
    text = decoded_base64(value)
    return text is not None and ":" in text[1:-1]


def is_secret_flag(argument: Any) -> bool:
    """Return whether the next argument of a command is a secret: ``--password``."""
    return isinstance(argument, str) and argument.startswith("-") and is_secret_name(argument.lstrip("-"))


def is_secret_header(pair: list[Any]) -> bool:
    """Return whether a list is a secret header's name and value."""
    return len(pair) == 2 and isinstance(pair[0], str) and is_secret_header_name(pair[0])


def is_secret_header_name(name: str) -> bool:
    return _HEADER.fullmatch(name) is not None


def names_secret(entry: dict[str, Any]) -> bool:
    """Return whether a dict is a header, variable or field whose ``value`` is a secret."""
    name = entry.get("name", entry.get("key"))
    return "value" in entry and isinstance(name, str) and is_secret_name(name)
