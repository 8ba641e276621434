"""YAML texts to values, in time that grows with the text's length, or refused. Spec: 04 §11.5, 07 §13.1.

PyYAML, over libyaml where that is there, makes the events; the values are made here: without recursion, by
the core schema, and what an alias stands for is shared, not copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from harnpy.text.depth import DEEPEST, TOO_DEEP
from harnpy.text.display import display, type_name
from harnpy.text.yaml.errors import KeyTypeError, YamlError, index_of, refuse_characters, syntax_error
from harnpy.text.yaml.scalars import check_container_tag, plain_value, tagged_value

if TYPE_CHECKING:
    from collections.abc import Callable

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
