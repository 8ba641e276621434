"""What a secret looks like: names of secret values, and shapes of keys inside any text. Pure.

In doubt, mask: a masked word can be guessed, a leaked key can't be taken back. Spec: 08 §17, modes.
"""

from __future__ import annotations

import re
from typing import Any

MASK = "[redacted:secret]"

_NAME = r"(?:api[_-]?key|token|secret|password|passwd|authorization|cookie|private[_-]?key)"
#: Between the words of a name: ``access_token``, ``access-token``, ``accessToken``.
_BETWEEN = r"(?:[_-]|(?-i:(?<=[a-z0-9])(?=[A-Z])))"
_SECRET_NAME = re.compile(rf"(?:.*{_BETWEEN})?{_NAME}", re.IGNORECASE | re.DOTALL)

#: The start of a word, also behind an escape: much text is JSON or a URL inside a string.
_BEGIN = r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"

_KEY = re.compile(
    _BEGIN
    + r"""(?:
      sk-[A-Za-z0-9_-]{3,}                      # OpenAI, Anthropic and many after them
    | [sr]k_(?:live|test)_[A-Za-z0-9]{8,}       # Stripe
    | gh[opsur]_[A-Za-z0-9]{4,} | github_pat_[A-Za-z0-9_]{4,}
    | glpat-[A-Za-z0-9_-]{8,}                   # GitLab
    | (?:AKIA|ASIA)[A-Z0-9]{8,}                 # AWS
    | xox[abeprs]-[A-Za-z0-9-]{4,}              # Slack
    | AIza[A-Za-z0-9_-]{20,}                    # Google
    | eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*    # a JSON web token
    )""",
    re.VERBOSE,
)

#: Words that follow "bearer" in prose.
_PROSE = r"(?:tokens?|auth|authentication|authorization|headers?|schemes?|credentials?|of|the|and|or|is|in)"
_BEARER = re.compile(
    rf"""(?P<keep>{_BEGIN}bearer(?:\s|\\[nrt]|%20|\+)+ | authorization["']?\s*[:=]\s*["']?basic\s+)
         (?!{_PROSE}[.,;:!?)]?(?:\s|$))
         [A-Za-z0-9._~+/=-]{{3,}}""",
    re.VERBOSE | re.IGNORECASE,
)

#: A block without an end was cut: it reaches to the end of the text.
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)", re.DOTALL)

#: A member of a JSON object inside the text, its quotes escaped or not.
_MEMBER = re.compile(
    rf"""(?P<keep>(?<!\\)(?P<quote>\\*["'])(?:[^"'\\]{{0,80}}{_BETWEEN})?{_NAME}(?P=quote)\s*:\s*(?P=quote))
         (?!\[redacted:secret\](?P=quote)) .+? (?P<end>(?<!\\)(?P=quote)|\Z)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)

#: One without quotes.
_VALUE = r"""[^\s&"'`;,<>(){}\[\]\\$]"""
#: A header, variable or parameter with its value. In prose and code words and calls follow, but a secret
#: contains digits.
_ASSIGNED = re.compile(
    rf"""(?P<keep>{_BEGIN}{_NAME}[ \t]{{0,8}}(?:=|:(?!//))[ \t]{{0,8}}["']?(?:token[ \t]+)?)
         (?={_VALUE}{{0,200}}[A-Za-z])(?={_VALUE}{{0,200}}[0-9]){_VALUE}{{6,}}+(?!\()""",
    re.VERBOSE | re.IGNORECASE,
)
#: The password in a URL.
_IN_URL = re.compile(r"""(?P<keep>://[^\s/?\#@:"'<>\\]{0,128}:)[^\s/?\#@"'<>\\]{1,256}(?=@)""")

_HEADER = re.compile(
    r"(?:proxy-)?authorization|(?:set-)?cookie|x-(?:.*-)?(?:key|token|secret)", re.IGNORECASE
)


def is_secret_header(pair: list[Any]) -> bool:
    """Return whether a list is a secret header's name and value."""
    return len(pair) == 2 and isinstance(pair[0], str) and _HEADER.fullmatch(pair[0]) is not None


def names_secret(entry: dict[str, Any]) -> bool:
    """Return whether a dict is a header, variable or field whose ``value`` is a secret."""
    name = entry.get("name", entry.get("key"))
    return "value" in entry and isinstance(name, str) and is_secret_name(name)


def is_secret_name(key: str) -> bool:
    """Return whether the text under that key is a secret: ``x-api-key``, ``apiKey``, but not
    ``input_tokens``."""
    return _SECRET_NAME.fullmatch(key) is not None


def mask_secrets(text: str) -> str:
    """Return ``text`` with `MASK` in place of whatever looks like a key."""
    text = _PEM.sub(MASK, text)
    text = _MEMBER.sub(lambda found: f"{found['keep']}{MASK}{found['end']}", text)
    for pattern in (_BEARER, _ASSIGNED, _IN_URL):
        text = pattern.sub(lambda found: found["keep"] + MASK, text)
    return _KEY.sub(MASK, text)
