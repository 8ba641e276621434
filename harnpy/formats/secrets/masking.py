"""Masking secrets in texts and JSON values, by what they look like and what stands around them. Pure.

What no form and no name gives away is found by its randomness. Words, also in `camelCase` or glued to
numbers, change between lower case, upper case and digits rarely; a random run does at about every second
character, one without capitals or small letters at every fifth. Hashes, UUIDs, versions and ids with a known
prefix are random, too, but harmless. A run of more than `_MOST` characters is data. Spec: 08 §17.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from itertools import groupby, pairwise
from math import log2
from typing import Any
from urllib.parse import unquote

from harnpy.faults import look, paced
from harnpy.formats.secrets.forms import FORMS, WEBHOOKS
from harnpy.formats.secrets.secret_names import (
    BETWEEN,
    KEY,
    NAME,
    PASSWORD,
    decoded_base64,
    is_docker_auth,
    is_secret_flag,
    is_secret_header,
    is_secret_member,
    names_secret,
)


class _Named:
    """A pattern of values that stand by the name of a secret. Most texts have none, so it is compiled when it
    is first used: all of them together take as long as everything else that is loaded here."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._pattern = pattern
        self._flags = flags

    @cached_property
    def sub(self) -> Callable[[Callable[[re.Match[str]], str], str], str]:
        return re.compile(self._pattern, self._flags).sub


# Secret values in XML, SQL, forms, blocks of YAML and code: no plain `name=value`. Pure.
#
# Each rule keeps what is in its group ``keep``; what follows is masked. Spec: 08 §17.


_FLAGS = re.VERBOSE | re.IGNORECASE
_WHOLE_NAME = (
    rf"(?:(?:[\w.-]{{0,80}}{BETWEEN})?(?:{NAME}|(?<=[_.-])(?:pass|pwd|dsn|jwt))|\w{{0,40}}{PASSWORD})"
)
_NEW_LINE = r"(?:\r?\n|(?:\\r)?\\n)"
_QUOTED = r"""(?!\[redacted|-|\$|(?-i:[A-Z_]+[\\"']))[^"'\n\\\s]{3,400}(?=\\*["'])"""

_ELEMENT = rf"(?P<keep><{_WHOLE_NAME}(?:\s[^<>]{{0,100}})?>)(?!\[redacted)[^<>\s][^<>]{{0,400}}(?=</)"
_SQL = (
    r"""(?P<keep>\b(?:identified\s+by|(?:with|encrypted)\s+password|password\s+for\s+\S{1,80}\s*=)\s*\\*["'])"""
    + _QUOTED
)
_PART_OF_FORM = rf"""(?P<keep>name=\\*"{_WHOLE_NAME}\\*"{_NEW_LINE}{{2}})(?!\[redacted)[^\s"'\\]+"""
_BLOCK = rf"""(?P<keep>(?<![A-Za-z0-9]){NAME}:[ ]*[|>][+-]?{_NEW_LINE}[ \t]+)(?!\[redacted)[^\s\\]+"""
#: ``environ['API_TOKEN'] = 'x'``, ``define('DB_PASSWORD', 'x')``
_PAIR = (
    rf"""(?P<keep>(?:\[\\*["']{_WHOLE_NAME}\\*["']\s{{0,4}}\]\s{{0,4}}=(?!=)|\(\\*["']{_WHOLE_NAME}\\*["']\s{{0,4}},)
        \s{{0,4}}\\*["'])"""
    + _QUOTED
)
_CALL = rf"""(?P<keep>(?<![A-Za-z0-9])(?!get|ask|check)[A-Za-z]{{0,40}}{PASSWORD}\(\\*["'])""" + _QUOTED
#: ``{"name": "API_TOKEN", "value": "x"}``, and the same in YAML.
_NAMED_VALUE = (
    rf"""(?P<keep>\b(?:name|key)(?:\\*["'])?:\s{{0,4}}(?:\\*["'])?{_WHOLE_NAME}(?:\\*["'])?(?:,|{_NEW_LINE})
        (?:\s|\\n){{0,40}}(?:\\*["'])?value(?:\\*["'])?:\s{{0,4}}(?:\\*["'])?)"""
    r"""(?!\[redacted|\$|null\b)[^\s"'\\,}]{3,400}"""
)
_ORACLE = re.compile(r"(?P<keep>jdbc:oracle:\w{1,20}:[^\s/@]{1,64}/)(?!\[redacted)[^\s@]+(?=@)", _FLAGS)

DOCUMENT_RULES = tuple(
    _Named(pattern, _FLAGS) for pattern in (_ELEMENT, _SQL, _PART_OF_FORM, _BLOCK, _PAIR, _CALL, _NAMED_VALUE)
)


# Values that their surroundings give away: behind a name, in a header, a URL or a command. Pure.
#
# Each rule keeps what is in its group ``keep`` and masks the rest of the match. Spec: 08 §17.


MASK = "[redacted:secret]"


#: The start of a word, also behind an escape: much text is JSON or a URL inside a string.
BEGIN = r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
#: Blanks, also escaped ones.
_BLANK = r"(?:\s|\\[nrt]|%20|\+)"
#: A quote, its escapes for JSON inside JSON included.
_QUOTE = r"""\\*["']"""
#: A quote, or what begins and ends code in Markdown.
_MARK = rf"(?:{_QUOTE}|`)"
#: Where a name begins, also as the last word of a longer one (``sessionSecret``), and what ends it.
_NAME_BEGIN = rf"(?:{BEGIN}|(?-i:(?<=[a-z0-9])(?=[A-Z])))"
_NAME_END = rf"(?:{_MARK}|\*\*|__)?"
#: Not masked before, and no reference to a value elsewhere.
_FRESH = r"(?!(?:\[|%5B)redacted|<redacted|\*{3}|\$[A-Za-z_{(]|\{\{|%\(|<[a-z_ -]+>)"

#: A block without an end was cut: it reaches to the end of the text.
_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)"
    r"|PuTTY-User-Key-File-\d:.*?(?:Private-MAC: *[0-9a-f]+|\Z)",
    re.DOTALL,
)

#: A member of a JSON object inside the text, its quotes escaped or not.
_MEMBER = _Named(
    rf"""(?P<keep>(?<!\\)(?P<quote>{_QUOTE})(?:(?:[^"'\\]{{0,80}}{BETWEEN})?(?:{NAME}|pwd)
         |[^"'\\]{{0,80}}(?:{PASSWORD}|{BETWEEN}(?:pass|pwd|dsn|jwt)))(?P=quote)\s*(?::|=>)\s*(?:u|b)?(?P=quote))
         (?!\[redacted:\w+\](?P=quote)) (?P<value>.+?) (?P<end>(?<!\\)(?P=quote)|\Z)""",
    _FLAGS | re.DOTALL,
)
_DOCKER_AUTH = _Named(
    rf"""(?P<keep>(?<![A-Za-z0-9])_?auth(?:{_QUOTE})?\s*[:=]\s*(?:{_QUOTE})?)(?P<value>[A-Za-z0-9+/_-]{{6,}}={{0,2}})""",
    _FLAGS,
)

#: Words that follow "bearer" in prose.
_PROSE = r"(?:tokens?|auth|authentication|authorization|headers?|schemes?|credentials?|of|the|and|or|is|in)"
_BEARER = _Named(
    rf"""(?P<keep>{BEGIN}bearer{_BLANK}+
         | authorization["']?\s*[:=]\s*["']?
           (?:basic|apikey|bot|key|digest|negotiate|ssws|[a-z0-9-]{{0,20}}hmac[a-z0-9-]{{0,20}})\s+)
         (?!{_PROSE}[.,;:!?)]{{0,2}}(?:\s|$)) (?-i:(?![a-z]{{1,12}}[.,;:!?)]?(?:\s|$)))
         [A-Za-z0-9._~+/=-]{{3,}}""",
    _FLAGS,
)
_COOKIES = _Named(
    r"""(?P<keep>(?<![A-Za-z0-9])(?:set-)?cookie["']?\s*:\s*["']?)
        (?!\[redacted)[^\s=;,"'\\]{1,128}=[^\s;"'\\]+(?:;\s*[^\s=;,"'\\]{1,128}=[^\s;"'\\]+)*""",
    _FLAGS,
)

#: One without quotes.
_VALUE = r"""[^\s&"'`;,<>(){}\[\]\\$]"""
_IS = r"(?:=>|:=|=(?!=)|:(?!//))"
#: The same in a sentence.
_SAYS = r"(?::\*\*[ \t]*|(?:[ \t]+(?:for|of|on|in)(?:[ \t]+[\w.-]{1,40}){1,3}?)?[ \t]+(?:is|was|to)[ \t]+)"
#: A header, variable or parameter with its value. In prose and code words and calls follow, but a key
#: contains digits.
_ASSIGNED = _Named(
    rf"""(?P<keep>{_NAME_BEGIN}(?:{NAME}){_NAME_END}(?:[ \t]{{0,8}}{_IS}[ \t]{{0,8}}|{_SAYS}){_MARK}?
         (?:token[ \t]+)?)
         (?={_VALUE}{{0,200}}[A-Za-z])(?={_VALUE}{{0,200}}[0-9]){_VALUE}{{6,}}+(?!\()""",
    _FLAGS,
)
_CONTEXTS_QUOTED = _Named(
    rf"""(?P<keep>{_NAME_BEGIN}(?:(?P<password>[A-Za-z]{{0,40}}{PASSWORD}|pwd|pass)|{KEY}){_NAME_END}
         (?:[ \t]{{0,8}}(?::[ ]{{0,2}}[A-Za-z]{{1,40}}[ ]{{0,2}}=|{_IS})[ \t]{{0,8}}|{_SAYS}
         |(?P<blank>[ \t]+)) (?P<quote>{_MARK}))
         {_FRESH}(?P<value>[^"'`\n\\]{{3,400}})(?=(?P=quote))""",
    _FLAGS,
)
#: Words: people choose them as passwords, and keys without digits exist. Not what continues a sentence.
_WORDS = _Named(
    rf"""(?P<keep>(?:(?<![A-Za-z0-9])|(?-i:(?<=[a-z0-9])(?=[A-Z])))
         (?:(?P<password>[A-Za-z]{{0,40}}{PASSWORD}|(?<=[_-])pass|(?<=[;_-])pwd|(?<=user=)pwd
         |(?:pass|pwd)(?=:[ ]))|{KEY})
         {_NAME_END}(?:[ \t]{{0,8}}(?:=>|:=|=(?!=)|:(?!//|:))[ \t]{{0,8}}|(?P<says>{_SAYS})))
         {_FRESH}(?P<value>[^\s"'`,;&\\()\[\]{{}}<>|]{{4,200}}+)(?![(\[])""",
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
#: What a sentence says of a password.
_SAID = re.compile(
    r"\w+(?:ed|ing|[ai]ble|ly|ive)|(?:in)?correct|right|good|bad|ok|weak|strong|short|long|safe|secret|different|here"
    r"|there|blank|plain|public|private|unique|also|always|never|only|still|already|written|given|your(?:s|self)",
    re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"(?:[A-Za-z_]\w*[.:])+[A-Za-z_]\w*[.:!?]?|[A-Za-z]+_\w*[A-Za-z]|(?:[A-Z][a-z]+){2,}|[A-Z]+_[A-Z_]+|[A-Z]{2,5}|[./~].*"
)

#: A row of a table in Markdown, and a name behind its value.
_ROW = _Named(
    rf"""(?P<keep>\|[ \t]*[`*]{{0,2}}{_WHOLE_NAME}[`*]{{0,2}}[ \t]*\|[ \t]*(?P<quote>[`*]{{0,2}}))
         {_FRESH}(?P<value>[^\s|`]{{4,400}})(?=[`*]{{0,2}}[ \t]*\|)""",
    _FLAGS,
)
_BEHIND = _Named(
    rf"""(?P<keep>(?P<quote>{_MARK}))(?P<value>[^\s"'`\\]{{4,200}})
         (?=(?P=quote)[ ](?:is|was|as)[ ](?:the|my|your|our|a)[ ](?:[\w-]{{1,20}}[ ]){{0,2}}?
         {_WHOLE_NAME}\b)""",
    _FLAGS,
)
_PARAMETER = _Named(
    rf"""(?P<keep>[?&](?:[\w.-]{{0,40}}[_-])?(?:key|sig|signature|auth|pwd|jwt|assertion|{NAME})=)
         {_FRESH}[^&\s"'<>\#\\]{{8,}}""",
    _FLAGS,
)
#: A digest is none; with the name of a secret just before it, it is one.
_DIGITS = re.compile(r"(?P<keep>(?<![A-Za-z0-9_-])(?:0x)?)[0-9a-fA-F]{32,}(?![\w-])")
_NAME_BEFORE = re.compile(rf"{_NAME_BEGIN}{NAME}{_NAME_END}[ \t:=]{{1,8}}{_MARK}?\Z", _FLAGS)
_NEAR = 60
_SIGNATURE = _Named(r"(?P<keep>\bSignature=)[0-9a-f]{64}", re.IGNORECASE)
#: User and password in a URL.
_USERINFO = re.compile(r"""(?P<keep>://)(?P<value>[^\s/?\#"'<>\\]{1,400})(?=@)""")
_TOKEN = re.compile(r"(?=[A-Za-z_.~-]*[0-9])[^:]{12,}|[^:]{20,}")

_FLAG = _Named(
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
_NETRC = _Named(
    rf"""(?P<keep>\b(?:machine|login|default){_BLANK}+(?!and\b|or\b|with\b)\S{{1,128}}?{_BLANK}+
         (?:account{_BLANK}+\S{{1,128}}?{_BLANK}+)?password{_BLANK}+)(?!\[redacted)[^\s\\"']+""",
    _FLAGS,
)
_PGPASS = re.compile(
    r"""(?P<keep>(?<![\w.*-])[\w.*-]{1,128}:(?:\d{4,5}|\*):[A-Za-z*][\w*-]{0,64}:[\w.*-]{1,64}:)(?!\[redacted)[^\s:"'\\]{4,}""",
    re.VERBOSE,
)


#: What it costs to apply a rule to one match, in items; and how many characters are searched meanwhile.
_MATCH = 32


def _replaced(pattern: re.Pattern[str] | _Named, apply: Callable[[re.Match[str]], str], text: str) -> str:
    """Return ``text`` with each match replaced by what ``apply`` returns for it."""

    def replacement(found: re.Match[str]) -> str:
        look(_MATCH)
        return apply(found)

    look(len(text) // _MATCH)
    return pattern.sub(replacement, text)


def mask_in_context(text: str) -> str:
    """Return ``text`` with `MASK` in place of values that a name, a header, a URL or a command gives away."""
    text = _PEM.sub(MASK, text)
    for pattern, apply in _RULES:
        text = _replaced(pattern, apply, text)
    if not _has_name(text):
        return text
    text = _replaced(_MEMBER, lambda found: f"{found['keep']}{MASK}{found['end']}", text)
    for rule, apply in _NAME_RULES:
        text = _replaced(rule, apply, text)
    return "\n".join(_masked_line(line) if _has_name(line) else line for line in paced(text.split("\n")))


def _masked_line(line: str) -> str:
    for pattern, apply in _LINE_RULES:
        line = _replaced(pattern, apply, line)
    return line


def _has_name(text: str) -> bool:
    """Return False if no name of a secret can be there: most texts and lines need no rules about names."""
    lowered = text.lower()
    return any(word in lowered for word in _IN_NAMES)


def _mask(found: re.Match[str]) -> str:
    return found["keep"] + MASK


def _digits(found: re.Match[str]) -> str:
    is_named = _NAME_BEFORE.search(found.string[max(0, found.start() - _NEAR) : found.start()])
    return MASK if is_named else found[0]


def _docker(found: re.Match[str]) -> str:
    return _mask(found) if is_docker_auth(found["value"]) else found[0]


def _quoted(found: re.Match[str]) -> str:
    value = found["value"]
    named = found["password"] is not None and not (found["blank"] and " " in value)
    is_text = not named and (" " in value or (found["blank"] and value.isalpha()))
    return found[0] if is_text or _is_no_value(value) else _mask(found)


def _beside(found: re.Match[str]) -> str:
    """Mask what is no word, or is marked as code."""
    value = found["value"]
    is_word = re.fullmatch("[A-Za-z]+[.,:]?", value) is not None and not found["quote"]
    return found[0] if is_word or _is_no_value(value) or _REFERENCE.fullmatch(value) else _mask(found)


def _words(found: re.Match[str]) -> str:
    value = found["value"].rstrip(".!?:")
    least = 12 if found["password"] is None else 4
    if found["says"] and (found["password"] is None or _SAID.fullmatch(value)):
        return found[0]
    # After a blank, more words make it a sentence; `a=b and c` is an assignment.
    is_end = found["says"] and value != found["value"]
    is_word = not found["says"] or value.isalpha()
    if (
        is_word
        and not is_end
        and found["keep"][-1].isspace()
        and _MORE_WORDS.match(found.string, found.end())
    ):
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
    (_USERINFO, _userinfo),
    (_CURL_USER, _mask),
    (_CLIENT_PASSWORD, _mask),
    (_PGPASS, _mask),
    (_ORACLE, _mask),
)
_IN_NAMES = tuple(
    "pass pwd token secret key auth cookie credential phrase mnemonic dsn jwt webhook connection bearer sig"
    " assertion identified".split()
)
_NAME_RULES: tuple[tuple[_Named, Callable[[re.Match[str]], str]], ...] = (
    *((pattern, _mask) for pattern in DOCUMENT_RULES),
    (_COOKIES, _mask),
    (_DOCKER_AUTH, _docker),
    (_BEARER, _mask),
    (_FLAG, _flag),
    (_NETRC, _mask),
)
#: Nothing that these find goes on in the next line.
_LINE_RULES: tuple[tuple[re.Pattern[str] | _Named, Callable[[re.Match[str]], str]], ...] = (
    (_ASSIGNED, _mask),
    (_CONTEXTS_QUOTED, _quoted),
    (_WORDS, _words),
    (_ROW, _beside),
    (_BEHIND, _beside),
    (_PARAMETER, _mask),
    (_DIGITS, _digits),
    (_SIGNATURE, _mask),
)


# Finding secrets inside base64 and percent-encoded text. Pure.


#: Base64 in lines, as `base64` and PEM write it, and in one run.
_BASE64 = re.compile(
    r"(?:[A-Za-z0-9+/]{60,76}(?:\r?\n|\\n)[ \t]*)+[A-Za-z0-9+/]{1,76}={0,2}|[A-Za-z0-9+/_-]{16,}={0,2}"
)
_BREAKS = re.compile(r"\\n|\s")
_PERCENT = re.compile(r"(?>(?:[\w.~+*!-]|%[0-9A-Fa-f]{2}){8,})")


def mask_encoded(text: str, has_secret: Callable[[str], bool], mask: str) -> str:
    """Return ``text`` with ``mask`` in place of runs whose decoded text has a secret."""

    def base64_run(found: re.Match[str]) -> str:
        decoded = decoded_base64(_BREAKS.sub("", found[0]))
        return mask if decoded is not None and has_secret(decoded) else found[0]

    def percent_run(found: re.Match[str]) -> str:
        return mask if "%" in found[0] and has_secret(unquote(found[0])) else found[0]

    text = _replaced(_BASE64, base64_run, text)
    return _replaced(_PERCENT, percent_run, text) if "%" in text else text


# Secrets whose check digits or dictionary give them away: numbers of cards, phrases of wallets (BIP-39).

_CARD = re.compile(
    r"(?:(?<![\w.-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))[2-6]\d{3}"
    r"(?:(?P<gap>[ .-]|%20|\+|)(?:\d{4}(?P=gap)){2}\d{4}(?:\d{3})?"
    r"|(?P<space>[ .-]|%20|\+|)\d{6}(?P=space)\d{4,5})"
    r"(?![\w-]|\.\d)"
)
#: The first digits by which issuers are known, and how many follow.
_ISSUED = re.compile(
    r"4\d{15}(?:\d{3})?|5[1-5]\d{14}|2(?:2[3-9]|[3-6]\d|7[01])\d{13}|222[1-9]\d{12}|2720\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[689]\d)\d{11}|6(?:011|4[4-9]\d|5\d\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14}(?:\d{3})?"
)
_DOUBLED = str.maketrans("0123456789", "0246813579")


def is_card_number(text: str) -> bool:
    """Return whether a text is a card's number: an issuer's first digits, and a right check digit (Luhn)."""
    digits = re.sub("%20|[^0-9]", "", text)
    checked = digits[::-2] + digits[-2::-2].translate(_DOUBLED)
    return _ISSUED.fullmatch(digits) is not None and sum(map(int, checked)) % 10 == 0


#: Twelve words or more of the length that those of phrases have, in a row, in a list, numbered.
_PHRASE = re.compile(
    r"(?<![A-Za-z])(?>(?:[A-Za-z]{3,8}+(?![A-Za-z])(?>(?:\\[nrt]|[^A-Za-z\\]|\\(?![A-Za-z])){0,8})){12,})"
)
_PHRASE_WORD = re.compile(r"(?:(?<=\\[nrt])|(?<![A-Za-z\\]))[A-Za-z]{3,8}")
_FEWEST_WORDS = 12


@cache
def _phrase_words() -> frozenset[str]:
    from importlib.resources import files

    return frozenset(files(__package__).joinpath("bip39_words.txt").read_text("ascii").split())


def is_phrase(words: Iterable[Any]) -> bool:
    """Return whether texts are the words of a wallet's phrase."""
    words = list(words)
    return len(words) >= _FEWEST_WORDS and all(
        isinstance(word, str) and word.lower() in _phrase_words() for word in paced(words)
    )


def _is_known(word: re.Match[str]) -> bool:
    look(1)
    return word[0].lower() in _phrase_words()


def _without_phrases(found: re.Match[str]) -> str:
    shown, end = "", 0
    for known, group in groupby(_PHRASE_WORD.finditer(found[0]), _is_known):
        row = list(group) if known else []
        if len(row) >= _FEWEST_WORDS:
            shown += found[0][end : row[0].start()] + MASK
            end = row[-1].end()
    return shown + found[0][end:]


#: Base64 of a PNG, GIF, JPEG or WebP, in one run or in lines: random, and harmless.
_IMAGE = (
    r"(?P<image>(?<![A-Za-z0-9+/])(?:iVBORw0KGgo|R0lGOD[dl]h|/9j/[24]|UklGR)"
    r"(?:[A-Za-z0-9+/]{45,74}(?:(?:\r?\n|\\n)[ \t]*[A-Za-z0-9+/]{1,76}={0,2}(?![\w:=.-]))+"
    r"|[A-Za-z0-9+/]{16,}+={0,2}))"
)
_LEAST, _MOST = 20, 180
_RUN = re.compile(rf"{_IMAGE}|[A-Za-z0-9+/_=-]{{20,}}")

#: Random, and known by design: ids of calls, messages and models' replies, hashes with their algorithm.
_HARMLESS = re.compile(
    r"""(?:toolu|srvtoolu|call|chatcmpl|msg|resp|req|rs|fc|run|bundle|gen|cmpl|batch|file|thread|asst|step|evt|event|tool
         |session|task|trace|span|org|proj|user|cus|sub|pi|ch|in|price|prod|acct)[_-][A-Za-z0-9_-]+
        |sha(?:1|224|256|384|512)[-:=/_][A-Za-z0-9+/=_-]+ | md5-[A-Za-z0-9+/=]+ | h1[-:][A-Za-z0-9+/=]+
        |[0-7][0-9A-HJKMNP-TV-Z]{25}""",
    re.VERBOSE,
)
_BEFORE = re.compile(r"(?:SHA256|sha256|sha512|h1|integrity=?[\"']?sha\d+)[:-]$")
#: Parts that say nothing: hexadecimal digits, numbers, words with or without capitals, times.
_PLAIN = re.compile(
    r"[0-9a-f]+|[0-9A-F]+|[A-Z]?[a-z]+\d{0,4}|[A-Z]+\d{0,4}|(?:[A-Z]?[a-z]{2,}){2,}\d{0,4}|v?\d+[a-z]{0,2}|\d+T\d+Z?"
)
_SMALL = re.compile("[a-z]{3,}")
_SPLIT = re.compile(r"[+/_=-]+")
_CLASSES = str.maketrans(
    {
        **{chr(c): "a" for c in range(ord("a"), ord("z") + 1)},
        **{chr(c): "A" for c in range(ord("A"), ord("Z") + 1)},
        **{chr(c): "0" for c in range(ord("0"), ord("9") + 1)},
    }
)
_CHANGES = 0.26
_CHANGES_IN_ONE_CASE = 0.16
_BITS = 3.2


def mask_random(text: str, mask: str) -> str:
    """Return ``text`` with ``mask`` in place of runs that are random and not known to be harmless."""
    return _replaced(_RUN, lambda found: mask if _is_key(found) else found[0], text)


def _is_key(found: re.Match[str]) -> bool:
    run = found[0].strip("=-_/+")
    if found["image"] or not _LEAST <= len(run) <= _MOST or _HARMLESS.fullmatch(run):
        return False
    if _BEFORE.search(found.string, max(0, found.start() - 24), found.start()):
        return False
    return is_random(run)


def is_random(run: str) -> bool:
    """Return whether the parts of a run that aren't plain are long, varied and change class often."""
    odd = [part for part in _SPLIT.split(run) if not _is_plain(part)]
    rest = "".join(odd)
    if len(rest) < 12 or not any(len(part) >= 6 for part in odd):
        return False
    classes = rest.translate(_CLASSES)
    changes = sum(a != b for a, b in pairwise(classes)) / (len(rest) - 1)
    least = _CHANGES if {"a", "A"} <= set(classes) else _CHANGES_IN_ONE_CASE
    return changes >= least and _bits(rest) >= _BITS


def _is_plain(part: str) -> bool:
    if _PLAIN.fullmatch(part):
        return True
    # Words in capitals and small letters with a number among them.
    return len(part) >= 16 and not part.islower() and sum(map(len, _SMALL.findall(part))) * 5 >= len(part) * 3


def _bits(text: str) -> float:
    """Return the Shannon entropy of a character."""
    shares = [text.count(char) / len(text) for char in set(text)]
    return -sum(share * log2(share) for share in shares)


#: Base64 of base64 is looked into, no deeper.
_DEPTH = 2

# The lookahead skips most words at once: no form is shorter.
_FORMS = re.compile(
    rf"{_IMAGE}|{BEGIN}(?=[A-Za-z0-9_.:/+=$-]{{6}})(?:{'|'.join(form.pattern for form in FORMS)})"
)
_WEBHOOKS = re.compile(
    rf"(?P<keep>https?:(?:\\?/){{2}})(?:{'|'.join(form.pattern for form in WEBHOOKS)})"
    r"(?!\[redacted)[^\s\"'<>\\]+"
)


def mask_secrets(text: str) -> str:
    """Return ``text`` with `MASK` in place of whatever looks like a secret."""
    return _masked_text(text, _DEPTH)


def _masked_text(text: str, depth: int) -> str:
    text = _replaced(_WEBHOOKS, _mask, text)
    text = _replaced(_FORMS, lambda found: found["image"] or MASK, mask_in_context(text))
    text = _replaced(_CARD, lambda found: MASK if is_card_number(found[0]) else found[0], text)
    text = _replaced(_PHRASE, _without_phrases, text)
    if depth:
        text = mask_encoded(text, lambda inner: _masked_text(inner, depth - 1) != inner, MASK)
    return mask_random(text, MASK)


# Masking secrets in JSON values, where keys tell more than texts do. Pure. Spec: 08 §17.


def mask_value(value: Any) -> Any:
    """Return a value with secrets masked in its texts, and the whole texts under keys that name a secret."""
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, dict):
        hidden = "value" if names_secret(value) else None
        return {
            key: _masked(item) if key == hidden or is_secret_member(key, item) else mask_value(item)
            for key, item in paced([*value.items()])
        }
    if isinstance(value, list):
        places = secret_places(value)
        return [_masked(item) if at in places else mask_value(item) for at, item in enumerate(paced(value))]
    return MASK if is_secret_number(value) else value


def secret_places(items: list[Any]) -> set[int]:
    """Return which items of a list are secrets because of the others: flags, headers, phrases."""
    if is_phrase(items):
        return set(range(len(items)))
    places = {at + 1 for at, item in enumerate(paced(items)) if is_secret_flag(item)}
    return places | ({1} if is_secret_header(items) else set())


def is_secret_number(value: Any, named: bool = False) -> bool:
    """Return whether a value is the number of a card; any longer number is a secret that is named as one."""
    return type(value) is int and value > 999 and (named or is_card_number(str(value)))


def _masked(value: Any) -> Any:
    """Mask all texts of a secret's value; in a dict only its own secrets: it may be a schema of one."""
    if isinstance(value, list):
        return [_masked(item) for item in paced(value)]
    if is_secret_number(value, named=True):
        return MASK
    return MASK if isinstance(value, str) and value else mask_value(value)
