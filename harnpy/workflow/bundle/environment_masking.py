"""Masking values of environment variables wherever a text repeats them. Pure.

A short value or a plain word occurs in ordinary sentences, so it is only masked where it is the variable's
own value. A value is masked in all texts when it is *revealing*:

- the variable's name is that of a secret, and the value has four characters or more; or
- it has eight characters or more and is not one word of letters only (ten, if it is all digits), or twenty.

Paths are left to the rule for paths. Variables that describe a terminal or a locale, that name a model or a
provider, and harnpy's own settings, are not secret. Spec: 08 §17, `sanitized`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harnpy.workflow.bundle.secret_patterns import is_secret_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MASK = "[redacted:env]"

_HARMLESS = re.compile(
    r"HARN_.*|.*_(MODEL|PROVIDER)|LC_.*|LANG(UAGE)?|(COLOR)?TERM.*|SHELL|EDITOR|PAGER|TZ|LS_COLORS|_"
)


class Environment:
    """The revealing values of some environments."""

    def __init__(self, environments: Iterable[Mapping[str, str]]) -> None:
        values = {
            value
            for environment in environments
            for name, value in environment.items()
            if isinstance(value, str) and _is_revealing(name, value)
        }
        longest_first = sorted(values, key=lambda value: (-len(value), value))
        self._values = re.compile("|".join(map(re.escape, longest_first))) if values else None

    def removed_from(self, text: str) -> str:
        return text if self._values is None else self._values.sub(MASK, text)


def _is_revealing(name: str, value: str) -> bool:
    if is_secret_name(name):
        return len(value) >= 4 and value not in MASK
    if _HARMLESS.fullmatch(name) or value.startswith("/") or value in MASK or not value.strip():
        return False
    if value.isdigit():
        return len(value) >= 10
    return len(value) >= (20 if value.isalpha() else 8)
