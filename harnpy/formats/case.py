"""Words and the case of their letters: snake, kebab, camel, Pascal and title case. Spec: 04 §4.2."""

from __future__ import annotations

from harnpy.faults import paced

#: Unicode's White_Space; Python's own idea of it adds the separators U+001C to U+001F.
WHITESPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def words(s: str, sep: str) -> list[str]:
    """Return the words between the separators, lowercased."""
    return [word.lower() for word in paced(s.split(sep)) if word]


def humps(s: str) -> list[str]:
    """Return the words of a camel or Pascal name, lowercased: `http`, `server` for `HTTPServer`."""
    found, start = [], 0
    for i in paced(range(1, len(s))):
        if s[i].isupper() and _begins_word(s[i - 1], s[i + 1 : i + 2]):
            found.append(s[start:i].lower())
            start = i
    return [*found, s[start:].lower()]


def _begins_word(before: str, after: str) -> bool:
    """Return whether an uppercase letter between these two begins a word; at an acronym's end it does."""
    return before.islower() or before in "0123456789" or (before.isupper() and after.islower())


def titled(s: str) -> str:
    """Return every word between white space with its first character in upper case, the rest in lower."""
    starts_word, out = True, []
    for character in paced(s):
        out.append(character.upper() if starts_word else character.lower())
        starts_word = character in WHITESPACE
    return "".join(out)


def upper_first(s: str) -> str:
    return s[:1].upper() + s[1:]


def lower_first(s: str) -> str:
    return s[:1].lower() + s[1:]


def pascal(parts: list[str]) -> str:
    return "".join([upper_first(word) for word in paced(parts)])


def camel(parts: list[str]) -> str:
    return "".join(parts[:1]) + pascal(parts[1:])
