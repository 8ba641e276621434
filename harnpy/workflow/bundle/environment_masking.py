"""Masking values of environment variables wherever a text repeats them. Pure.

A short value or a plain word occurs in ordinary sentences, so it is only masked where it is the variable's
own value. A value is masked in all texts when it is *revealing*:

- the variable's name is that of a secret, and the value has four characters or more: then also in other
  encodings, and parts of it; or
- it has eight characters or more and is not one word of letters only (ten, if it is all digits), or twenty.

Paths are left to the rule for paths. Variables that describe a terminal or a locale, that name a model or a
provider, and harnpy's own settings, are not secret. Spec: 08 §17, `sanitized`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harnpy.text.secrets.known_values import SecretValues
from harnpy.text.secrets.names import is_secret_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MASK = "[redacted:env]"

_HARMLESS = re.compile(
    r"HARN_.*|.*_(MODEL|PROVIDER)|LC_.*|LANG(UAGE)?|(COLOR)?TERM.*|SHELL|EDITOR|PAGER|TZ|LS_COLORS|_"
)


class Environment:
    """The revealing values of some environments, or only those of secret variables."""

    def __init__(self, environments: Iterable[Mapping[str, str]], only_secrets: bool = False) -> None:
        variables = [
            (name, value)
            for environment in environments
            for name, value in environment.items()
            if isinstance(value, str) and _is_revealing(name, value)
        ]
        self._secrets = SecretValues({value for name, value in variables if is_secret_name(name)})
        others = {value for name, value in variables if not only_secrets and not is_secret_name(name)}
        longest_first = sorted(others, key=lambda value: (-len(value), value))
        self._others = re.compile("|".join(map(re.escape, longest_first))) if others else None

    def removed_from(self, text: str) -> str:
        text = self._secrets.masked(text, MASK)
        return text if self._others is None else self._others.sub(MASK, text)


def _is_revealing(name: str, value: str) -> bool:
    if is_secret_name(name):
        return len(value) >= 4 and value not in MASK
    if _HARMLESS.fullmatch(name) or value.startswith("/") or value in MASK or not value.strip():
        return False
    if value.isdigit():
        return len(value) >= 10
    return len(value) >= (20 if value.isalpha() else 8)
