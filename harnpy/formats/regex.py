"""The regular expressions of Harn: the dialect, rewritten for the `regex` library, and matching.

Spec: 04 §13.
"""

from __future__ import annotations

import regex  # type: ignore[import-untyped]

from harnpy.faults import Fault, TooLarge, look, paced

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, NoReturn

    Pattern = re.Pattern[str]
    Match = re.Match[str]

# Harn's regular expressions, rewritten for the `regex` library. Spec: 04 §13.
#
# The dialect is the one of linear-time engines: no look-around, no back-references, quantifiers nest. The
# rewriting walks the pattern once, knows which inline flags are on where, and writes anchors, dots and
# classes so that they don't depend on the library's flags; only ``i`` is left to it.


FLAGS = "imsx"

#: Groups and classes inside each other; the library compiles them by recursion.
_DEPTH_LIMIT = 100

#: Atoms of a pattern with its counted repetitions written out, as the library does, and members of classes.
_SIZE_LIMIT = 200_000
#: What reading an atom costs, in items.
_ATOM = 8

#: A group named after a dollar; a dollar alone and two of them are one.
_REFERENCE = regex.compile(r"\$(?:\$|\{([^}]+)\}|([A-Za-z0-9_]+))?")
#: Letters that stand for a class or an assertion, and the library's spelling.
_CLASSES = frozenset("dDsSwWpP")
_ASSERTIONS = {"A": r"\A", "z": r"\Z", "b": r"\b", "B": r"\B"}
_CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_HEX_LENGTHS = {"x": 2, "u": 4, "U": 8}
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t\x20",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": r"\x20-~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r\x20",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


class PatternError(ValueError):
    """A text that is no pattern of the dialect."""


def compiled(pattern: str, flags: str = "") -> re.Pattern[str]:
    """Return the pattern, compiled with the flag letters. Raises `PatternError`."""
    for flag in flags:
        if flag not in FLAGS:
            raise PatternError(f"unsupported regex flag '{flag}', expected one of i/m/s/x")
    text = _Rewriter(pattern, flags).rewritten()
    try:
        # Without full case folding `(?i)ß` doesn't match "ss".
        fold = regex.IGNORECASE if "i" in flags else 0
        found: re.Pattern[str] = regex.compile("(?-f)" + text, regex.VERSION1 | fold)
        return found
    except regex.error:
        _Rewriter(pattern, flags, diagnoses=True).rewritten()
        raise PatternError("it can't be compiled") from None


def _literal(character: str) -> str:
    return character if character.isalnum() or not character.isascii() else "\\" + character


class _Rewriter:
    """Reads ``pattern`` from ``at``; ``out`` has one piece for each atom, which a quantifier may follow."""

    def __init__(self, pattern: str, flags: str, *, diagnoses: bool = False) -> None:
        self.pattern = pattern
        self.diagnoses = diagnoses
        self.at = 0
        self.depth = 0
        self.size = 0
        self.members = 0
        self.on = frozenset(flags)
        self.names: set[str] = set()

    def rewritten(self) -> str:
        text = self.alternatives()
        if self.at < len(self.pattern):
            self.fail("unopened group")
        return text

    def fail(self, why: str) -> NoReturn:
        raise PatternError(f"{why} at position {self.at}")

    def compiles(self, text: str, otherwise: str) -> str:
        """Return a part that is whole by itself. Of a refused pattern, the library must take each alone."""
        if self.diagnoses:
            try:
                regex.compile(text, regex.VERSION1)
            except regex.error:
                self.fail(otherwise)
        return text

    def peek(self, count: int = 1) -> str:
        return self.pattern[self.at : self.at + count]

    def take(self, wanted: str) -> bool:
        """Step over ``wanted`` if it comes next."""
        found = self.pattern.startswith(wanted, self.at)
        self.at += len(wanted) * found
        return found

    def next(self) -> str:
        if self.at == len(self.pattern):
            self.fail("incomplete pattern")
        self.at += 1
        return self.pattern[self.at - 1]

    def skip_blanks(self) -> None:
        """Skip white space and comments under ``x``."""
        while "x" in self.on:
            if self.peek().isspace():
                self.at += 1
            elif self.peek() == "#":
                end = self.pattern.find("\n", self.at)
                self.at = len(self.pattern) if end < 0 else end
            else:
                return

    def alternatives(self) -> str:
        """Read up to the end of the group or pattern; flags set inside end there."""
        outside = self.on
        out: list[str] = []
        while True:
            self.skip_blanks()
            if self.peek() in ("", ")"):
                self.on = outside
                return "".join(out)
            if self.take("|"):
                out.append("|")
            elif self.peek() in "*+?{":
                self.fail("repetition operator missing expression")
            else:
                out.append(self.quantified())

    def quantified(self) -> str:
        """Read an atom and its quantifiers; each applies to all before it."""
        look(_ATOM)
        size = self.size
        atom = self.atom()
        self.grow(self.size + 1)
        is_quantified = False
        while True:
            self.skip_blanks()
            quantifier, copies = self.quantifier()
            if not quantifier:
                return atom
            if not atom:
                self.fail("repetition operator missing expression")
            self.grow(size + (self.size - size) * copies)
            atom = (f"(?:{atom})" if is_quantified else atom) + quantifier
            is_quantified = True

    def grow(self, size: int) -> None:
        """Take note of the size that the pattern has up to here."""
        self.size = size
        self.bound(size)

    def bound(self, size: int) -> None:
        if size > _SIZE_LIMIT:
            self.fail("compiled pattern is too large")

    def quantifier(self) -> tuple[str, int]:
        """Return the next quantifier ("" if there is none), and how many copies of its atom it makes."""
        if self.peek() and self.peek() in "*+?":
            sign, copies = self.next(), 1
        elif self.take("{"):
            sign, copies = self.counts()
        else:
            return "", 1
        return sign + "?" if self.take("?") else sign, copies

    def counts(self) -> tuple[str, int]:
        """Read what follows a quantifier's ``{``."""
        end = self.pattern.find("}", self.at)
        least, comma, most = self.pattern[self.at : max(end, self.at)].replace(" ", "").partition(",")
        digits = least + most
        if not (digits.isascii() and digits.isdecimal()) or not (least or comma):
            self.fail("repetition quantifier expects a valid decimal")
        bounds = [bound.lstrip("0") for bound in (least, most)]
        if most and (len(bounds[0]), bounds[0]) > (len(bounds[1]), bounds[1]):
            self.fail("invalid repetition count range")
        self.at = end + 1
        # Seven digits exceed the limit anyway, and `int` refuses thousands.
        copies = max(int(bound[:7] or 0) for bound in bounds)
        return f"{{{least or 0}{comma}{most}}}", max(copies, 1)

    def atom(self) -> str:
        character = self.next()
        if character == "(":
            return self.group()
        if character == "[":
            return self.char_class()
        if character == ".":
            return "(?s:.)" if "s" in self.on else r"[^\n]"
        if character == "^":
            return "(?m:^)" if "m" in self.on else r"\A"
        if character == "$":
            return "(?m:$)" if "m" in self.on else r"\Z"
        if character == "\\":
            return self.assertion() or self.escape()
        return _literal(character)

    def assertion(self) -> str:
        """Read an assertion after a backslash; "" if it isn't one."""
        anchor = _ASSERTIONS.get(self.peek(), "")
        self.at += bool(anchor)
        return anchor

    def group(self) -> str:
        """Read what follows ``(``. An inline flag group such as ``(?i)`` is no atom: it gives ""."""
        if not self.take("?"):
            return self.body("(")
        for opener in ("P<", "<"):
            if self.take(opener):
                return self.body(f"(?P<{self.group_name()}>")
        return self.flag_group()

    def body(self, opener: str) -> str:
        self.enter()
        text = opener + self.alternatives()
        if not self.take(")"):
            self.fail("unclosed group")
        self.depth -= 1
        return text + ")"

    def enter(self) -> None:
        self.depth += 1
        if self.depth > _DEPTH_LIMIT:
            self.fail("nested too deeply")

    def group_name(self) -> str:
        end = self.pattern.find(">", self.at)
        name = self.pattern[self.at : max(end, self.at)]
        if not name.isidentifier():
            self.fail("look-around is not supported" if self.peek() in ("=", "!") else "invalid group name")
        if name in self.names:
            self.fail("duplicate group name")
        self.names.add(name)
        self.at = end + 1
        return name

    def flag_group(self) -> str:
        """Read what follows ``(?``: ``:…)``, ``flags)`` or ``flags:…)``."""
        on, switch = set(self.on), True
        while True:
            flag = self.next()
            if flag in FLAGS:
                (on.add if switch else on.discard)(flag)
            elif flag == "-" and switch:
                switch = False
            else:
                break
        folding = "i" if "i" in on else "-i"
        if flag == ")":
            self.on = frozenset(on)
            return f"(?{folding})"
        if flag != ":":
            self.at -= 1
            self.fail("look-around is not supported" if flag in "=!<" else "unrecognized flag")
        outside, self.on = self.on, frozenset(on)
        text = self.body(f"(?{folding}:")
        self.on = outside
        return text

    def escape(self) -> str:
        """Read what follows a backslash, in a class or outside one."""
        letter = self.next()
        if letter in _CLASSES:
            if letter not in "pP":
                return "\\" + letter
            return self.compiles("\\" + letter + self.property_name(), "Unicode property not found")
        if letter in _CONTROLS:
            return _literal(_CONTROLS[letter])
        if letter in _HEX_LENGTHS:
            return _literal(self.hex_character(_HEX_LENGTHS[letter]))
        if letter.isdigit():
            self.fail("backreferences are not supported")
        if letter.isalpha() or letter in "<>" or not letter.isascii():
            self.fail("unrecognized escape sequence")
        return "\\" + letter

    def property_name(self) -> str:
        if not self.take("{"):
            return "{" + self.next() + "}"
        end = self.pattern.find("}", self.at)
        if end < 0:
            self.fail("invalid Unicode property")
        name = self.pattern[self.at : end]
        self.at = end + 1
        return "{" + name + "}"

    def hex_character(self, length: int) -> str:
        if self.take("{"):
            end = self.pattern.find("}", self.at)
            digits = self.pattern[self.at : max(end, self.at)]
            self.at = end + 1
        else:
            digits = self.peek(length)
            self.at += length
            if len(digits) < length:
                self.fail("incomplete escape sequence")
        if not digits or not _HEX_DIGITS.issuperset(digits) or int(digits, 16) > 0x10FFFF:
            self.fail("invalid hexadecimal escape")
        return chr(int(digits, 16))

    def char_class(self) -> str:
        """Read what follows ``[``."""
        self.enter()
        out = "[^" if self.take("^") else "["
        is_first = True
        while True:
            look(_ATOM)
            self.members += 1
            self.bound(self.members)
            self.skip_blanks()
            character = self.next()
            if character == "]" and not is_first:
                self.depth -= 1
                return self.compiles(out + "]", "invalid character class")
            is_first = False
            if character == "[":
                out += self.posix_class() if self.peek() == ":" else self.char_class()
            elif character == "\\":
                out += r"\x08" if self.take("b") else self.escape()
            elif self.pattern[self.at - 1 : self.at + 1] in ("&&", "--", "~~"):
                out += character + self.next()
            else:
                out += character if character == "-" else _literal(character)

    def posix_class(self) -> str:
        end = self.pattern.find(":]", self.at)
        name = self.pattern[self.at + 1 : max(end, self.at)]
        negated = name.startswith("^")
        if name.removeprefix("^") not in _POSIX:
            self.fail("unrecognized ASCII class")
        self.at = end + 2
        return ("[^" if negated else "[") + _POSIX[name.removeprefix("^")] + "]"


#: Seconds of computing that a search may take, and all the matches of a text together: some patterns take
#: exponential time on some texts.
MOST_SECONDS = 10.0

_BETWEEN_LOOKS = 256


class SearchTimeout(Fault):
    """A search took longer than it may."""

    def __init__(self) -> None:
        super().__init__("Regex took too long: the pattern needs too many steps on this text")


def found(pattern: Pattern, text: str, seconds: float = MOST_SECONDS) -> Match | None:
    """Return the first match. Raises `SearchTimeout`."""
    search: Any = pattern.search
    try:
        return search(text, timeout=seconds)  # type: ignore[no-any-return]
    except TimeoutError:
        raise SearchTimeout from None


def matches(
    pattern: Pattern,
    text: str,
    seconds: float,
    look: Callable[[], object],
    timeout: Callable[[], Exception] = SearchTimeout,
) -> Iterator[Match]:
    """Yield the matches from left to right, but no empty one right where the one before ended.

    ``look`` is called now and then, and before a ``timeout`` is raised; what it raises ends the search.
    """
    iterate: Any = pattern.finditer
    at, last_end, until_look = 0, -1, 1
    try:
        while at <= len(text):
            for match in iterate(text, at, timeout=seconds):
                until_look -= 1
                if not until_look:
                    look()
                    until_look = _BETWEEN_LOOKS
                begin, end = match.span()
                if begin == end == last_end:
                    break
                yield match
                last_end = end
                if begin == end:
                    break
            else:
                return
            at = last_end + 1  # behind an empty match the library would go on in its own way
    except TimeoutError:
        look()
        raise timeout() from None


def replaced(found: Iterable[Match], replacement: str, text: str, most: int) -> str:
    """Return ``text`` with every match replaced; ``$1``, ``$name`` and ``${name}`` stand for groups.

    Raises TooLarge when that has more than ``most`` characters.
    """
    out, at, added = [], 0, 0
    template = _template(replacement)
    for match in found:
        pieces = [_filled(part, match) for part in paced(template)]
        added += sum(map(len, pieces))
        if added > most:
            raise TooLarge(f"more than {most} characters", most)
        out += [text[at : match.start()], *pieces]
        at = match.end()
    return "".join([*out, text[at:]])


def split(found: Iterable[Match], text: str) -> list[str]:
    """Return the pieces of ``text`` between the matches, empty ones too."""
    pieces, at = [], 0
    for match in found:
        pieces.append(text[at : match.start()])
        at = match.end()
    return [*pieces, text[at:]]


def _template(replacement: str) -> list[tuple[str, str]]:
    """Return ``(text, group)`` pieces: a text, then the group whose match follows it."""
    parts, at = [], 0
    for found in _REFERENCE.finditer(replacement):
        look(_ATOM)
        text, name = replacement[at : found.start()], found[1] or found[2]
        parts.append((text, name) if name else (text + "$", ""))
        at = found.end()
    return [*parts, (replacement[at:], "")]


def _filled(part: tuple[str, str], match: Match) -> str:
    text, name = part
    if not name:
        return text
    try:
        return text + (match[int(name) if name.isascii() and name.isdecimal() else name] or "")
    except (IndexError, ValueError):  # no such group, or thousands of digits
        return text
