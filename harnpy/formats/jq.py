"""jq's expressions, from text to one function: any number of values out of one. Spec: 04 §11.4.

From loose to tight: `|`, `,`, `and` and `or`, one comparison, `not`, and what stands alone. What each does is
in `jq_filters`.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harnpy.faults import look
from harnpy.formats import jq_filters
from harnpy.formats.json import JsonError, parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.formats.jq_filters import Filter

#: How deep expressions may be nested.
_DEEPEST = 64
#: The characters of the rest of an expression that a message shows.
_SHOWN = 40
#: What reading a term costs, in items.
_TERM = 8

_SPACE = re.compile(r"[ \t\r\n]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_NUMBER = re.compile(r"[0-9-][0-9A-Za-z.]*(?:(?<=[eE])[+-][0-9A-Za-z.]*)?")
_INTEGER = re.compile(r"-?[0-9]{1,18}(?![0-9A-Za-z_.])")
_COMPARISON = re.compile(r"==|!=|<(?!=)|>(?!=)")

_CONSTANTS = {"true": True, "false": False, "null": None, "nil": None}
_PLAIN: dict[str, Filter] = {
    "length": jq_filters.length,
    "keys": jq_filters.keys,
    "values": jq_filters.values,
    "type": jq_filters.kind,
}
_WITH_ARGUMENT: dict[str, Callable[[Filter], Filter]] = {
    "map": jq_filters.mapped,
    "select": jq_filters.selected,
}


class JqError(ValueError):
    """A text is no expression."""


def parse(text: str) -> Filter:
    """Return what an expression does. Raises JqError."""
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def whole(self) -> Filter:
        filter = self._pipe()
        if self._rest():
            raise self._error("unexpected input")
        return filter

    def _rest(self) -> str:
        """Return what is left, after white space."""
        self.at = self._match(_SPACE, self.at).end()
        return self.text[self.at : self.at + _SHOWN]

    def _match(self, pattern: re.Pattern[str], at: int) -> re.Match[str]:
        found = pattern.match(self.text, at)
        assert found is not None
        return found

    def _error(self, problem: str) -> JqError:
        return JqError(f"{problem} near '{self._rest()}'")

    def _takes(self, mark: str) -> bool:
        """Return whether the mark comes next, and pass it then."""
        taken = self._rest().startswith(mark)
        self.at += len(mark) * taken
        return taken

    def _taken(self, pattern: re.Pattern[str]) -> str:
        """Return what matches the pattern here and pass it, ``""`` if nothing does."""
        self._rest()
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def _takes_word(self, *words: str) -> str:
        before = self.at
        word = self._taken(_NAME)
        if word in words:
            return word
        self.at = before
        return ""

    def _expect(self, mark: str) -> None:
        if not self._takes(mark):
            raise self._error(f"expected '{mark}'")

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise JqError("recursion limit exceeded")
        yield
        self.depth -= 1

    # --- from loose to tight -------------------------------------------------------------------------

    def _pipe(self, *, commas: bool = True) -> Filter:
        operand = self._commas if commas else self._logic
        with self._deeper():
            stages = [operand()]
            while self._takes("|"):
                stages.append(operand())
        return jq_filters.in_turn(stages)

    def _commas(self) -> Filter:
        found = [self._logic()]
        while self._takes(","):
            found.append(self._logic())
        return jq_filters.side_by_side(found)

    def _logic(self) -> Filter:
        first, others = self._comparison(), []
        while word := self._takes_word("and", "or"):
            others.append((word, self._comparison()))
        return jq_filters.logical(first, others)

    def _comparison(self) -> Filter:
        left = self._prefixed()
        operator = self._taken(_COMPARISON)
        return jq_filters.compared(operator, left, self._prefixed()) if operator else left

    def _prefixed(self) -> Filter:
        negations = 0
        while self._takes_word("not"):
            negations += 1
        found = self._chain()
        if negations:
            found = jq_filters.negated(found)
        return jq_filters.negated(found) if negations and negations % 2 == 0 else found

    def _chain(self) -> Filter:
        """Read what stands alone, and the fields, items and slices that are taken of it."""
        steps = [self._primary()]
        while True:
            look(_TERM)
            if self._takes("["):
                steps.append(self._brackets())
            elif self._takes("."):
                steps.append(self._brackets() if self._takes("[") else jq_filters.field(self._field_name()))
            else:
                return jq_filters.in_turn(steps)

    # --- what stands alone ---------------------------------------------------------------------------

    def _primary(self) -> Filter:
        look(_TERM)
        next_ = self._rest()[:1]
        if next_ == ".":
            return self._from_dot()
        if next_ == '"':
            return jq_filters.literal(self._string())
        if next_.isascii() and (next_.isdigit() or next_ == "-"):
            return jq_filters.literal(self._number())
        if self._takes("("):
            return self._closed_by(")", self._pipe())
        if self._takes("{"):
            return self._object()
        word = self._taken(_NAME)
        if not word or word in ("and", "or"):
            self.at -= len(word)
            raise self._error("expected expression")
        return self._named(word)

    def _from_dot(self) -> Filter:
        if self._takes(".."):
            return jq_filters.descendants
        self.at += 1
        name = _NAME.match(self.text, self.at)
        return jq_filters.field(self._field_name()) if name else jq_filters.identity

    def _named(self, word: str) -> Filter:
        if word in _CONSTANTS:
            return jq_filters.literal(_CONSTANTS[word])
        if word in _PLAIN:
            return _PLAIN[word]
        if word in _WITH_ARGUMENT:
            self._expect("(")
            return _WITH_ARGUMENT[word](self._closed_by(")", self._pipe()))
        raise JqError(f"unknown identifier '{word}'")

    def _closed_by(self, mark: str, filter: Filter) -> Filter:
        self._expect(mark)
        return filter

    def _field_name(self) -> str:
        name = _NAME.match(self.text, self.at)
        if name is None:
            raise self._error("expected field name")
        self.at = name.end()
        return name[0]

    def _brackets(self) -> Filter:
        """Read what is in brackets: nothing, a key, an index or the bounds of a slice."""
        if self._takes("]"):
            return jq_filters.each
        if self._rest().startswith('"'):
            return self._closed_by("]", jq_filters.field(self._string()))
        start = self._bound()
        if self._takes(":"):
            found = jq_filters.part(start, None if self._rest().startswith("]") else self._bound())
        elif start is None:
            raise JqError("expected array index or slice bound")
        else:
            found = jq_filters.index(start)
        return self._closed_by("]", found)

    def _bound(self) -> int | None:
        """An integer, None before a colon."""
        text = self._taken(_INTEGER)
        if not text and not self._rest().startswith(":"):
            raise JqError("expected array index or slice bound")
        return int(text) if text else None

    def _object(self) -> Filter:
        fields: dict[str, Filter] = {}
        if self._takes("}"):
            return jq_filters.built(fields)
        while True:
            key = self._key()
            self._expect(":")
            fields[key] = self._pipe(commas=False)
            if not self._takes(","):
                return self._closed_by("}", jq_filters.built(fields))

    def _key(self) -> str:
        if self._rest().startswith('"'):
            return self._string()
        name = self._taken(_NAME)
        if not name:
            raise self._error("expected object key")
        return name

    def _string(self) -> str:
        text = self._taken(_STRING)
        if not text:
            raise JqError("unterminated string literal")
        try:
            found: str = parse_json(text)
        except JsonError:
            self.at -= len(text)
            raise self._error("invalid string literal") from None
        return found

    def _number(self) -> Any:
        text = self._taken(_NUMBER)
        try:
            return parse_json(text)
        except JsonError:
            self.at -= len(text)
            raise self._error("invalid number") from None
