"""YAML 1.2 for data: texts to values, by the core schema, or what is wrong with them.

Spec: 04 §11.5, 07 §13.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from harnpy.formats.display import display, type_name
from harnpy.formats.nesting import DEEPEST, TOO_DEEP

if TYPE_CHECKING:
    from yaml._yaml import Mark as LibyamlMark  # a PyYAML without libyaml has none

# What is wrong with a YAML text, in our own words, whatever parser refuses it. Spec: 04 §11.5.
#
# Of what a parser raises, only the places count, which hardly differ between the releases of PyYAML, with and
# without libyaml. The texts do.


_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: Characters of the source that a message quotes.
_QUOTED = 40
_OPENED = {"[": "list", "{": "dict", "'": "string", '"': "string"}


class Place(NamedTuple):
    """Counted from 0, as a parser's marks are."""

    line: int
    column: int


class YamlError(ValueError):
    """``<detail> at line L column C``."""

    def __init__(self, detail: str, place: Place | yaml.Mark | LibyamlMark | None = None) -> None:
        where = "" if place is None else f" at line {place.line + 1} column {place.column + 1}"
        super().__init__(f"{detail}{where}")


class KeyTypeError(YamlError):
    """A key is no string."""


def refuse_characters(text: str) -> None:
    """Raise YamlError for a character that may stand in no YAML text."""
    found = _FORBIDDEN.search(text)
    if found:
        raise YamlError(f"the character U+{ord(found[0]):04X} is not allowed", _place(text, found.start()))


def syntax_error(text: str, error: yaml.YAMLError, openers: list[int]) -> YamlError:
    """Return what a parser refuses; ``openers``: where what is open begins, the innermost last."""
    index = index_of(error, "problem_mark")
    if index is None:
        return YamlError("this is no YAML")
    if index < len(text):
        return YamlError(f"unexpected {_near(text, index)}", _place(text, index))
    quote = index_of(error, "context_mark")
    if quote is not None and text[quote : quote + 1] in ("'", '"'):
        return _unclosed(text, quote)
    for opener in reversed(openers):
        if opener >= 0 and text[opener] in "[{":
            return _unclosed(text, opener)
    return YamlError("unexpected end of text", _place(text, index))


def _unclosed(text: str, index: int) -> YamlError:
    return YamlError(f"the {_OPENED[text[index]]} is never closed", _place(text, index))


def index_of(error: yaml.YAMLError, mark: str) -> int | None:
    """Return where in the text a mark of a parser's error stands."""
    found: Any = getattr(error, mark, None)
    return None if found is None else found.index


def _near(text: str, index: int) -> str:
    if text[index] == "\t":
        return "tab"
    rest = _BREAK.split(text[index : index + _QUOTED], maxsplit=1)[0].rstrip()
    return f"input near '{rest}'" if rest else "end of line"


def _place(text: str, index: int) -> Place:
    breaks = list(_BREAK.finditer(text, 0, index))
    return Place(len(breaks), index - (breaks[-1].end() if breaks else 0))


# What a plain scalar means by the core schema of YAML 1.2. Spec: 04 §11.5.
#
# `yes`, `on`, `1:30` and dates are texts, as they are in JSON.


_NIL = frozenset(["", "~", "null", "Null", "NULL"])
_BOOLS = {word: word.lower() == "true" for word in "true True TRUE false False FALSE".split()}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
_NAN = frozenset([".nan", ".NaN", ".NAN"])
_BASES = {"0o": 8, "0x": 16}
#: The digits of the longest int.
_LONGEST_INT = 21

_TAG = "tag:yaml.org,2002:"
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}


def plain_value(text: str) -> Any:
    """Return what a plain scalar means; an integer of more than 64 bits is a float, as in JSON."""
    if text in _NIL:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INT.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return float("nan") if text in _NAN else text


def _integer(text: str) -> int | float:
    if len(text) <= _LONGEST_INT:
        number = int(text, _BASES.get(text[:2], 10))
        if -(2**63) <= number < 2**63:
            return number
    if text[:2] in _BASES:
        raise ValueError(f"integer out of range: {text[:_LONGEST_INT]}")
    return float(text)


def tagged_value(tag: str, text: str) -> Any:
    """Return what a scalar with a tag means. Raises ValueError."""
    kind = tag.removeprefix(_TAG)
    if kind in ("!", "str"):
        return text
    if kind not in _TYPES:
        raise ValueError(f"unsupported tag '{_short(tag)}'")
    value = plain_value(text)
    if type(value) not in _TYPES[kind]:
        raise ValueError(f"'{text}' is no value of the tag '{_short(tag)}'")
    return float(value) if kind == "float" else value


def check_container_tag(tag: str | None, kind: str) -> None:
    """Raise ValueError unless the tag of a ``"seq"`` or ``"map"`` says no more than that."""
    if tag not in (None, "!", _TAG + kind):
        raise ValueError(f"unsupported tag '{_short(tag)}'")


def _short(tag: str | None) -> str:
    return (tag or "").replace(_TAG, "!!")


# YAML texts to values, in time that grows with the text's length, or refused. Spec: 04 §11.5, 07 §13.1.
#
# PyYAML, over libyaml where that is there, makes the events; the values are made here: without recursion, by
# the core schema, and what an alias stands for is shared, not copied.


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(text: str, *, aliases: bool = True, look: Callable[[], object] = int) -> Any:
    """Return the one value in a text, None if there is none. Raises YamlError.

    Without ``aliases``, no part of the value is there twice. ``look`` is called at every part, and may raise
    to stop.
    """
    text = text.removeprefix("\ufeff")
    refuse_characters(text)
    reader = _Reader(aliases)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            look()
            reader.take(event)
    except yaml.YAMLError as error:
        _refuse_deep(text[: index_of(error, "problem_mark")], look)
        raise syntax_error(text, error, reader.openers()) from None
    return reader.value


def _refuse_deep(text: str, look: Callable[[], object]) -> None:
    """Raise YamlError if what a parser read before it refused a text is too deep.

    A parser reads ahead, and some have a limit of their own: ours comes first.
    """
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            look()
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > DEEPEST:
                    raise YamlError(TOO_DEEP, event.start_mark)
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError:
        pass  # It ends too early.


class _Open(NamedTuple):
    """A list or dict whose end has not come; ``keys`` has at most one key, which waits for its value."""

    parts: list[Any] | dict[str, Any]
    keys: list[str]
    event: yaml.CollectionStartEvent


class _Reader:
    def __init__(self, aliases: bool) -> None:
        self.value: Any = None
        self._aliases = aliases
        self._documents = 0
        self._open: list[_Open] = []
        self._anchored: dict[str, Any] = {}

    def openers(self) -> list[int]:
        """Return where the signs stand that open what is open, such as a bracket or the first `-`."""
        return [getattr(open.event.end_mark, "index", 0) - 1 for open in self._open]

    def take(self, event: yaml.Event) -> None:
        try:
            self._take(event)
        except YamlError:
            raise
        except ValueError as error:
            raise YamlError(str(error), event.start_mark) from None

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._add(_scalar(event), event.anchor, event)
        elif isinstance(event, yaml.SequenceStartEvent):
            check_container_tag(event.tag, "seq")
            self._begin([], event)
        elif isinstance(event, yaml.MappingStartEvent):
            check_container_tag(event.tag, "map")
            self._begin({}, event)
        elif isinstance(event, yaml.CollectionEndEvent):
            ended = self._open.pop()
            self._add(ended.parts, ended.event.anchor, event)
        elif isinstance(event, yaml.AliasEvent):
            self._add(self._referred(event.anchor or ""), None, event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise ValueError("more than one document")

    def _begin(self, parts: list[Any] | dict[str, Any], event: yaml.CollectionStartEvent) -> None:
        if len(self._open) == DEEPEST:
            raise ValueError(TOO_DEEP)
        if self._expects_key():
            raise KeyTypeError(f"a key must be a string, not a {type_name(parts)}", event.start_mark)
        self._open.append(_Open(parts, [], event))

    def _expects_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].parts, dict) and not self._open[-1].keys

    def _referred(self, anchor: str) -> Any:
        if not self._aliases:
            raise ValueError("aliases are not supported")
        if anchor not in self._anchored:
            raise ValueError(f"unknown alias '{anchor}'")
        return self._anchored[anchor]

    def _add(self, value: Any, anchor: str | None, event: yaml.Event) -> None:
        """Put a whole value where it belongs."""
        if anchor:
            self._anchored[anchor] = value
        if not self._open:
            self.value = value
            return
        parts, keys, _ = self._open[-1]
        if isinstance(parts, list):
            parts.append(value)
        elif keys:
            parts[keys.pop()] = value
        else:
            keys.append(_key(value, parts, event))


def _key(value: Any, known: dict[str, Any], event: yaml.Event) -> str:
    if not isinstance(value, str):
        raise KeyTypeError(f"a key must be a string, not {display(value)}", event.start_mark)
    if value in known:
        raise ValueError(f"the key '{value}' is there twice")
    return value


def _scalar(event: yaml.ScalarEvent) -> Any:
    if event.tag is not None:
        return tagged_value(event.tag, event.value)
    return plain_value(event.value) if event.implicit[0] else event.value
