"""Finding what no form and no name gives away: runs of characters that only a generator of keys makes. Pure.

Words, also in `camelCase` or glued to numbers, change between lower case, upper case and digits rarely; a
random run does at about every second character, one without capitals or small letters at every fifth. Hashes,
UUIDs, versions and ids with a known prefix are random, too, but harmless. A run of more than `_MOST`
characters is data. Spec: 08 §17.
"""

from __future__ import annotations

import re
from itertools import pairwise
from math import log2

_LEAST, _MOST = 20, 180
_RUN = re.compile(r"[A-Za-z0-9+/_=-]{20,}")

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
    return _RUN.sub(lambda found: mask if _is_key(found) else found[0], text)


def _is_key(found: re.Match[str]) -> bool:
    run = found[0].strip("=-_/+")
    if not _LEAST <= len(run) <= _MOST or _HARMLESS.fullmatch(run):
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
