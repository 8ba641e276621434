"""Values that their surroundings give away: behind a name, in a header, a URL or a command. Pure.

Each rule keeps what is in its group ``keep`` and masks the rest of the match. Spec: 08 §17.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harnpy.text.secrets.documents import DOCUMENT_RULES
from harnpy.text.secrets.names import BETWEEN, KEY, NAME, PASSWORD, is_docker_auth

if TYPE_CHECKING:
    from collections.abc import Callable

MASK = "[redacted:secret]"

_FLAGS = re.VERBOSE | re.IGNORECASE

#: The start of a word, also behind an escape: much text is JSON or a URL inside a string.
BEGIN = r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
#: Blanks, also escaped ones.
_BLANK = r"(?:\s|\\[nrt]|%20|\+)"
#: A quote, its escapes for JSON inside JSON included.
_QUOTE = r"""\\*["']"""
#: Not masked before, and no reference to a value elsewhere.
_FRESH = r"(?!\[redacted|<redacted|\*{3}|\$[A-Za-z_{(]|\{\{|%\(|<[a-z_ -]+>)"

#: A block without an end was cut: it reaches to the end of the text.
_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)"
    r"|PuTTY-User-Key-File-\d:.*?(?:Private-MAC: *[0-9a-f]+|\Z)",
    re.DOTALL,
)

#: A member of a JSON object inside the text, its quotes escaped or not.
_MEMBER = re.compile(
    rf"""(?P<keep>(?<!\\)(?P<quote>{_QUOTE})(?:(?:[^"'\\]{{0,80}}{BETWEEN})?(?:{NAME}|pwd)
         |[^"'\\]{{0,80}}{PASSWORD})(?P=quote)\s*(?::|=>)\s*(?:u|b)?(?P=quote))
         (?!\[redacted:\w+\](?P=quote)) (?P<value>.+?) (?P<end>(?<!\\)(?P=quote)|\Z)""",
    _FLAGS | re.DOTALL,
)
_DOCKER_AUTH = re.compile(
    rf"""(?P<keep>(?<![A-Za-z0-9])_?auth(?:{_QUOTE})?\s*[:=]\s*(?:{_QUOTE})?)(?P<value>[A-Za-z0-9+/_-]{{6,}}={{0,2}})""",
    _FLAGS,
)

#: Words that follow "bearer" in prose.
_PROSE = r"(?:tokens?|auth|authentication|authorization|headers?|schemes?|credentials?|of|the|and|or|is|in)"
_BEARER = re.compile(
    rf"""(?P<keep>{BEGIN}bearer{_BLANK}+
         | authorization["']?\s*[:=]\s*["']?
           (?:basic|apikey|bot|key|digest|negotiate|ssws|[a-z0-9-]{{0,20}}hmac[a-z0-9-]{{0,20}})\s+)
         (?!{_PROSE}[.,;:!?)]?(?:\s|$)) (?-i:(?![a-z]{{1,12}}[.,;:!?)]?(?:\s|$)))
         [A-Za-z0-9._~+/=-]{{3,}}""",
    _FLAGS,
)
_COOKIES = re.compile(
    r"""(?P<keep>(?<![A-Za-z0-9])(?:set-)?cookie["']?\s*:\s*["']?)
        (?!\[redacted)[^\s=;,"'\\]{1,128}=[^\s;"'\\]+(?:;\s*[^\s=;,"'\\]{1,128}=[^\s;"'\\]+)*""",
    _FLAGS,
)

#: One without quotes.
_VALUE = r"""[^\s&"'`;,<>(){}\[\]\\$]"""
_IS = r"(?:=>|:=|=(?!=)|:(?!//))"
#: A header, variable or parameter with its value. In prose and code words and calls follow, but a key
#: contains digits.
_ASSIGNED = re.compile(
    rf"""(?P<keep>{BEGIN}(?:{NAME})(?:{_QUOTE})?[ \t]{{0,8}}{_IS}[ \t]{{0,8}}(?:{_QUOTE})?(?:token[ \t]+)?)
         (?={_VALUE}{{0,200}}[A-Za-z])(?={_VALUE}{{0,200}}[0-9]){_VALUE}{{6,}}+(?!\()""",
    _FLAGS,
)
_QUOTED = re.compile(
    rf"""(?P<keep>{BEGIN}(?:(?P<password>[A-Za-z]{{0,40}}{PASSWORD}|pwd|pass)|{KEY})[ \t]{{0,8}}
         (?::[ ]{{0,2}}[A-Za-z]{{1,40}}[ ]{{0,2}}=|{_IS})[ \t]{{0,8}}(?P<quote>{_QUOTE}))
         {_FRESH}(?P<value>[^"'\n\\]{{3,400}})(?=(?P=quote))""",
    _FLAGS,
)
#: Words: people choose them as passwords, and keys without digits exist. Not what continues a sentence.
_WORDS = re.compile(
    rf"""(?P<keep>(?<![A-Za-z0-9])(?:(?P<password>[A-Za-z]{{0,40}}{PASSWORD}|(?<=[_-])pass
         |(?<=[;_-])pwd|(?<=user=)pwd)|{KEY})
         (?:{_QUOTE})?(?:[ \t]{{0,8}}(?:=>|:=|=(?!=)|:(?!//|:))[ \t]{{0,8}}))
         {_FRESH}(?P<value>[^\s"'`,;&\\()\[\]{{}}<>]{{4,200}}+)(?![(\["'`])""",
    _FLAGS,
)
_MORE_WORDS = re.compile(r"[ \t]+[A-Za-z]{2,}")
_NO_VALUES = frozenset(
    "none null nil true false undefined string str text bytes int integer bool boolean object any "
    "optional required missing empty hidden default value values example placeholder redacted masked "
    "xxxx invalid expired incorrect wrong input field prompt self this must should see from type name "
    "unset your what when which based bearer basic digest negotiate process environ getenv config "
    "settings request response params options args data file literal char number float list dict array "
    "enum function option flag argument parameter user acct uname with instead and changed change reset "
    "length policy manager hash hashed strength forgot forgotten".split()
)
_REFERENCE = re.compile(
    r"(?:[A-Za-z_]\w*[.:])+[A-Za-z_]\w*[.:!?]?|[A-Za-z]+_\w*[A-Za-z]|(?:[A-Z][a-z]+){2,}|[A-Z]+_[A-Z_]+|[A-Z]{2,5}|[./~].*"
)

_PARAMETER = re.compile(
    rf"""(?P<keep>[?&](?:[\w.-]{{0,40}}[_-])?(?:key|sig|signature|auth|pwd|jwt|assertion|{NAME})=)
         {_FRESH}[^&\s"'<>\#\\]{{8,}}""",
    _FLAGS,
)
_SIGNATURE = re.compile(r"(?P<keep>\bSignature=)[0-9a-f]{64}", re.IGNORECASE)
#: User and password in a URL.
_USERINFO = re.compile(r"""(?P<keep>://)(?P<value>[^\s/?\#"'<>\\]{1,400})(?=@)""")
_TOKEN = re.compile(r"(?=[A-Za-z_.~-]*[0-9])[^:]{12,}|[^:]{20,}")

_FLAG = re.compile(
    rf"""(?P<keep>(?<![\w-])--?(?:[a-z0-9]{{1,20}}[_-]){{0,6}}(?:(?P<password>[a-z]{{0,20}}{PASSWORD}|pass)|{KEY})
         (?:=|[ \t]+|["'],\s*["'])(?:{_QUOTE})?){_FRESH}(?P<value>[^\s"'\\,;)|-][^\s"'\\,;)|]{{3,200}})""",
    _FLAGS,
)
_CURL_USER = re.compile(
    r"""(?P<keep>\b(?:curl|wget|http|xh)\b[^\n]{0,300}?\s(?:-u|-U|-a|--user|--proxy-user|--auth)
        (?:[ \t]*=?[ \t]*)\\*["']?[^\s:"'\\]{0,80}:)(?!\[redacted|//)[^\s"'\\]{1,200}""",
    re.VERBOSE,
)
_CLIENT_PASSWORD = re.compile(
    r"""(?P<keep>\b(?:sshpass|mysql(?:dump|admin)?|mariadb|(?:docker|podman)[ ]login|redis-cli
        |mongo(?:sh)?|ldap\w+)\b[^\n|]{0,300}?[ ](?:-p|-a|-w|--pass)[ ]?\\*["']?)
        (?!\[redacted)[^\s"'\\-][^\s"'\\]{2,200}""",
    re.VERBOSE,
)
_NETRC = re.compile(
    rf"""(?P<keep>\b(?:machine|login|default){_BLANK}+(?!and\b|or\b|with\b)\S{{1,128}}?{_BLANK}+
         (?:account{_BLANK}+\S{{1,128}}?{_BLANK}+)?password{_BLANK}+)(?!\[redacted)[^\s\\"']+""",
    _FLAGS,
)
_PGPASS = re.compile(
    r"""(?P<keep>(?<![\w.*-])[\w.*-]{1,128}:(?:\d{4,5}|\*):[A-Za-z*][\w*-]{0,64}:[\w.*-]{1,64}:)(?!\[redacted)[^\s:"'\\]{4,}""",
    re.VERBOSE,
)


def mask_in_context(text: str) -> str:
    """Return ``text`` with `MASK` in place of values that a name, a header, a URL or a command gives away."""
    text = _PEM.sub(MASK, text)
    text = _MEMBER.sub(lambda found: f"{found['keep']}{MASK}{found['end']}", text)
    for pattern in DOCUMENT_RULES:
        text = pattern.sub(_mask, text)
    for pattern, apply in _RULES:
        text = pattern.sub(apply, text)
    return text


def _mask(found: re.Match[str]) -> str:
    return found["keep"] + MASK


def _docker(found: re.Match[str]) -> str:
    return _mask(found) if is_docker_auth(found["value"]) else found[0]


def _quoted(found: re.Match[str]) -> str:
    value = found["value"]
    is_text = " " in value if found["password"] is None else False
    return found[0] if is_text or _is_no_value(value) else _mask(found)


def _words(found: re.Match[str]) -> str:
    value = found["value"].rstrip(".!?:")
    least = 12 if found["password"] is None else 4
    # After a blank, more words make it a sentence; `a=b and c` is an assignment.
    if found["keep"][-1].isspace() and _MORE_WORDS.match(found.string, found.end()):
        return found[0]
    if len(value) < least or _is_no_value(value) or _REFERENCE.fullmatch(value):
        return found[0]
    if found["password"] is None and value.isdigit():
        return found[0]
    return _mask(found) + found["value"][len(value) :]


def _flag(found: re.Match[str]) -> str:
    value = found["value"]
    is_word = value.isalpha() and (found["password"] is None or value.isupper())
    return found[0] if is_word or _is_no_value(value) else _mask(found)


def _userinfo(found: re.Match[str]) -> str:
    user, colon, password = found["value"].partition(":")
    if "[redacted" in found["value"]:
        return found[0]
    shown = MASK if _TOKEN.fullmatch(user) else user
    return found["keep"] + shown + (colon and colon + (MASK if password else ""))


def _is_no_value(value: str) -> bool:
    return (
        value.lower() in _NO_VALUES
        or re.fullmatch(NAME, value, re.IGNORECASE) is not None
        or len(set(value)) == 1
    )


_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (_COOKIES, _mask),
    (_DOCKER_AUTH, _docker),
    (_BEARER, _mask),
    (_USERINFO, _userinfo),
    (_ASSIGNED, _mask),
    (_QUOTED, _quoted),
    (_WORDS, _words),
    (_PARAMETER, _mask),
    (_SIGNATURE, _mask),
    (_FLAG, _flag),
    (_CURL_USER, _mask),
    (_CLIENT_PASSWORD, _mask),
    (_NETRC, _mask),
    (_PGPASS, _mask),
)
