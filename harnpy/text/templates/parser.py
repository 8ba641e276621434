"""From a template's text to its nodes. Spec: 04 §23.2, §23.5."""

from __future__ import annotations

import re

from harnpy.text.templates.errors import TemplateError, TemplateFault
from harnpy.text.templates.expressions import NAME, ExpressionParser, expression
from harnpy.text.templates.nodes import Bare, For, Hole, If, Include, Text
from harnpy.text.templates.segments import segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from harnpy.text.templates.expressions import Expression
    from harnpy.text.templates.operations import Operations
    from harnpy.text.templates.rendering import Node
    from harnpy.text.templates.segments import Segment

    T = TypeVar("T")

#: A word that opens a block or includes a file, unless a path or a filter follows.
_OPENER = re.compile(r"(if|for|include)(?![\w.|\[])")
_CLOSER = re.compile(r"(elif)(?![\w.|\[])|(?:end|else)\Z")
_LOOP = re.compile(r"(.*?)\bin\b(.*)", re.DOTALL)


def parse(source: str, directory: str, operations: Operations) -> Sequence[Node]:
    """Return the nodes of a template that lies in ``directory``. Raises `TemplateError`."""
    parser = _Parser(source, directory, operations)
    nodes, closer = parser.nodes()
    if closer is not None:
        raise _unexpected(closer)
    return nodes


class _Parser:
    def __init__(self, source: str, directory: str, operations: Operations) -> None:
        self.segments: list[Segment] = []
        self.at = 0
        self.directory = directory
        self.operations = operations
        for segment in segments(source):
            self.segments.append(segment)
            operations.go_on(0)

    def nodes(self) -> tuple[list[Node], Segment | None]:
        """Return the nodes up to the directive that closes or divides the block, and that directive."""
        nodes: list[Node] = []
        while self.at < len(self.segments):
            segment = self.segments[self.at]
            self.at += 1
            self.operations.go_on(0)
            if segment.is_directive and _CLOSER.match(segment.text):
                return nodes, segment
            nodes.append(self.node(segment))
        return nodes, None

    def node(self, segment: Segment) -> Node:
        if not segment.is_directive:
            return Text(segment.at, segment.text)
        opener = _OPENER.match(segment.text)
        if opener is None:
            if NAME.fullmatch(segment.text):
                return Bare(segment.at, segment.text)
            return Hole(segment.at, self.read(segment, segment.text, expression))
        text = segment.text[opener.end() :]
        if opener[0] == "if":
            return self.if_block(segment, text)
        if opener[0] == "for":
            return self.for_block(segment, text)
        path, bindings = self.read(segment, text, _included)
        return Include(segment.at, path, bindings, self.directory)

    def if_block(self, opener: Segment, text: str) -> If:
        branches = []
        condition_at = opener
        while True:
            condition = self.read(condition_at, text, expression)
            body, closer = self.nodes()
            branches.append((condition, condition_at.at, body))
            if closer is None:
                raise _unclosed("if", opener)
            if not closer.text.startswith("elif"):
                return If(opener.at, branches, self.rest(closer))
            condition_at, text = closer, closer.text.removeprefix("elif")

    def for_block(self, opener: Segment, text: str) -> For:
        parts = _LOOP.fullmatch(text)
        if parts is None:
            raise TemplateError("expected `in` in for-loop", opener.at)
        key, variable = _loop_names(opener, parts[1].split(","))
        source = self.read(opener, parts[2], expression)
        body, closer = self.nodes()
        if closer is None:
            raise _unclosed("for", opener)
        if closer.text.startswith("elif"):
            raise _unexpected(closer)
        return For(opener.at, key, variable, source, body, self.rest(closer))

    def rest(self, closer: Segment) -> Sequence[Node]:
        """Return the body of `else` if ``closer`` is one."""
        if closer.text == "end":
            return ()
        body, end = self.nodes()
        if end is None:
            raise _unclosed("else", closer)
        if end.text != "end":
            raise _unexpected(end)
        return body

    def read(self, segment: Segment, text: str, reader: Callable[[str, Operations], T]) -> T:
        try:
            return reader(text, self.operations)
        except TemplateFault as fault:
            raise TemplateError(str(fault), segment.at) from None


def _loop_names(opener: Segment, names: list[str]) -> tuple[str | None, str]:
    stripped = [name.strip() for name in names]
    if len(names) > 2 or not all(NAME.fullmatch(name) for name in stripped):
        raise TemplateError(f"invalid for-loop variable{'s' if len(names) > 1 else ''}", opener.at)
    return (stripped[0] if len(names) == 2 else None), stripped[-1]


def _included(text: str, operations: Operations) -> tuple[Expression, list[tuple[str, Expression]]]:
    """Read ``path [with {key: value, …}]``."""
    parser = ExpressionParser(text, operations)
    path = parser.filtered()
    bindings = []
    if parser.take("with"):
        parser.expect("{", "expected `{ ... }` after `with`")
        while not parser.take("}"):
            kind, key = parser.next()
            if kind != "name":
                raise TemplateFault("invalid include binding key")
            parser.expect(":", "expected `key: value` in include bindings")
            bindings.append((key, parser.filtered()))
            if not parser.take(","):
                parser.expect("}", "expected `{ ... }` after `with`")
                break
    parser.finish()
    return path, bindings


def _unexpected(closer: Segment) -> TemplateError:
    word = "elif" if closer.text.startswith("elif") else closer.text
    return TemplateError(f"unexpected `{{{{ {word} }}}}`", closer.at)


def _unclosed(word: str, opener: Segment) -> TemplateError:
    return TemplateError(f"`{{{{ {word} }}}}` missing matching `{{{{ end }}}}`", opener.at)
