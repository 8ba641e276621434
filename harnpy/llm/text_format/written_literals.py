"""Values as models write them: JavaScript literals and heredocs. Spec: 07 §6.6, "Argument values"."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from harnpy.llm.text_format.heredocs import Heredocs

#: The same limit as for nested JSON anywhere else.
_DEPTH_LIMIT = 128
#: No int of 64 bits has more characters, including the sign.
_INT_DIGITS = 20

# What may fail after its beginning is repeated in an atomic group: CPython before 3.11.5 (gh-106052).
_GAP = r"(?:\s++|//[^\n]*+)*+"
SPACE = re.compile(rf"{_GAP}(?>(?:/\*(?s:.*?)\*/{_GAP})*)")
STRINGS = {
    quote: re.compile(rf"{quote}([^{quote}\\]*+(?:\\.[^{quote}\\]*+)*+){quote}", re.DOTALL)
    for quote in "\"'`"
}
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![\w.])")
_ESCAPE = re.compile(
    r"\\(?:u\{(?P<code>[0-9a-fA-F]{1,6})\}|u(?P<four>[0-9a-fA-F]{4})|x(?P<two>[0-9a-fA-F]{2})"
    r"|(?P<simple>[ntr0bf/\\'\"`]))"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f"}
_WORDS = {"true": True, "false": False, "null": None, "undefined": None}


class LiteralError(ValueError):
    """``str()`` is the problem, worded for the model."""


class NotAnObject(LiteralError):
    """The argument of a call is not an object literal."""


class LiteralReader:
    """Recursive descent over ``text``; ``at`` is the next character. Raises `LiteralError`."""

    def __init__(self, text: str, heredocs: Heredocs, at: int = 0) -> None:
        self.text = text
        self.heredocs = heredocs
        self.at = at
        self.depth = 0

    def arguments(self) -> dict[str, Any]:
        """Read what is between the parentheses of a call; ``at`` is behind the opening one."""
        found = self.peek()
        arguments: dict[str, Any] = {}
        if found != ")":
            if found != "{":
                raise NotAnObject("the argument is no object literal")
            arguments = self.value()
            if self.peek() != ")":
                self.fail("expected `)` after the object")
        self.at += 1
        return arguments

    def peek(self) -> str:
        """The next character behind white space and comments, "" at the end."""
        space = SPACE.match(self.text, self.at)
        assert space is not None
        self.at = space.end()
        return self.text[self.at : self.at + 1]

    def fail(self, expected: str) -> NoReturn:
        rest = self.text[self.at : self.at + 20]
        raise LiteralError(f"{expected}, got `{rest}`" if rest else f"{expected}, but the text ends")

    def value(self) -> Any:
        first = self.peek()
        if first == "{" or first == "[":
            if self.depth == _DEPTH_LIMIT:
                raise LiteralError(f"the value is nested more than {_DEPTH_LIMIT} levels deep")
            self.depth += 1
            self.at += 1
            value: Any = self.entries() if first == "{" else self.items()
            self.depth -= 1
            return value
        if first in STRINGS:
            return self.string(first)
        if first == "<":
            return self.heredoc()
        return self.number() if first and first in "+-.0123456789" else self.word()

    def entries(self) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        while self.peek() != "}":
            key = self.key()
            if self.peek() != ":":
                self.fail(f"expected `:` after the key `{key}`")
            self.at += 1
            entries[key] = self.value()
            self.comma("}")
        self.at += 1
        return entries

    def items(self) -> list[Any]:
        items: list[Any] = []
        while self.peek() != "]":
            items.append(self.value())
            self.comma("]")
        self.at += 1
        return items

    def comma(self, close: str) -> None:
        """Skip the comma behind an item, which the last item may omit."""
        found = self.peek()
        if found == ",":
            self.at += 1
        elif found != close:
            self.fail(f"expected `,` or `{close}`")

    def key(self) -> str:
        if (quote := self.peek()) in ('"', "'"):
            return self.string(quote)
        word = _WORD.match(self.text, self.at)
        if word is None:
            self.fail("expected a key")
        self.at = word.end()
        return word[0]

    def string(self, quote: str) -> str:
        string = STRINGS[quote].match(self.text, self.at)
        if string is None:
            raise LiteralError(
                f"the string that begins with {self.text[self.at : self.at + 20]} is not closed"
            )
        self.at = string.end()
        return unescape(string[1])

    def heredoc(self) -> str:
        heredoc = self.heredocs.at(self.at)
        if heredoc is None:
            self.fail("expected a heredoc with its closing tag on a line of its own")
        self.at = heredoc.end
        return heredoc.content

    def number(self) -> int | float:
        number = _NUMBER.match(self.text, self.at)
        if number is None:
            self.fail("expected a number")
        self.at = number.end()
        return _number(number[0])

    def word(self) -> bool | None:
        word = _WORD.match(self.text, self.at)
        if word is None or word[0] not in _WORDS:
            self.fail("expected a value")
        self.at = word.end()
        return _WORDS[word[0]]


def unescape(text: str) -> str:
    """The text of a string literal; unknown escapes stay as they are."""
    if "\\" in text:
        text = _ESCAPE.sub(_character, text)
    if _SURROGATE.search(text):  # surrogate pairs make one character, a lone surrogate makes none
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _character(escape: re.Match[str]) -> str:
    simple = escape["simple"]
    if simple is not None:
        return _SIMPLE.get(simple, simple)
    code = int(escape["code"] or escape["four"] or escape["two"], 16)
    return chr(code) if code <= 0x10FFFF else escape[0]


def _number(text: str) -> int | float:
    """An int when 64 bits hold it, else a float."""
    try:
        if "x" in text.lower():
            value: int | float = int(text, 16)
        else:
            value = int(text) if len(text) <= _INT_DIGITS and text.lstrip("+-").isdigit() else float(text)
        if type(value) is float or not -(2**63) <= value < 2**63:
            value = float(value)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise LiteralError("a number is too large")
    return value
