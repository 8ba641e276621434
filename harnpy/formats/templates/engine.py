"""The engine of templates: cut up, parsed to nodes, rendered. Spec: 04 §23.1–23.3, §23.5."""

from __future__ import annotations

import os.path
import re

from harnpy.formats.templates import assets
from harnpy.formats.templates.expressions import (
    NAME,
    ExpressionParser,
    TemplateError,
    TemplateFault,
    count,
    expression,
    shown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar

    from harnpy.formats.templates.expressions import Expression, Operations
    from harnpy.world.files import Files

    Position = tuple[int, int]
    Scope = dict[str, Any]
    T = TypeVar("T")

# Cuts a template into literal text and directives; trims white space where `-` says so. Spec: 04 §23.2.


_ENDRAW = re.compile(r"\{\{-?\s*endraw\s*(-?)\}\}")
_PLAIN = re.compile(r"[^\"'}]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)


class Segment:
    """Literal text, or the trimmed inside of a directive; ``at`` is the line and column it begins at."""

    __slots__ = ("at", "is_directive", "text")

    def __init__(self, text: str, at: tuple[int, int], is_directive: bool) -> None:
        self.text = text
        self.at = at
        self.is_directive = is_directive


def segments(source: str) -> Iterator[Segment]:
    """Yield the template's pieces in order, without comments. Raises `TemplateError`."""
    locate = _locator(source)
    at, trims_next = 0, False
    while True:
        start = source.find("{{", at)
        trims = start >= 0 and source.startswith("-", start + 2)
        text = _trimmed(source[at : start if start >= 0 else len(source)], trims_next, trims)
        if text:
            yield Segment(text, locate(at), False)
        if start < 0:
            return
        here, inside = locate(start), start + 2 + trims
        if source.startswith("#", inside):
            at, trims_next = _found(source.find("#}}", inside), "unterminated comment", here) + 3, False
            continue
        end = _found(_end(source, inside), "unterminated directive", here)
        body, at = source[inside:end], end + 2
        trims_next = body.endswith("-")
        body = body.removesuffix("-").strip()
        if body == "raw":
            closing = _ENDRAW.search(source, at)
            if closing is None:
                raise TemplateError("unterminated `{{ raw }}` block", here)
            if at < closing.start():
                yield Segment(source[at : closing.start()], locate(at), False)
            at, trims_next = closing.end(), bool(closing[1])
        else:
            yield Segment(body, here, True)


def _locator(source: str) -> Callable[[int], tuple[int, int]]:
    """Return a function from offset to line and column; offsets must not decrease."""
    line, line_start, at = 1, 0, 0

    def locate(offset: int) -> tuple[int, int]:
        nonlocal line, line_start, at
        line += source.count("\n", at, offset)
        line_start = max(line_start, source.rfind("\n", at, offset) + 1)
        at = offset
        return line, offset - line_start + 1

    return locate


def _found(at: int, otherwise: str, here: tuple[int, int]) -> int:
    if at < 0:
        raise TemplateError(otherwise, here)
    return at


def _trimmed(text: str, front: bool, back: bool) -> str:
    """Return the text without the blanks at an end and the newline next to them, where asked."""
    if front:
        text = text.lstrip(" \t")
        text = text.removeprefix("\n") if text.startswith("\n") else text.removeprefix("\r\n")
    if back:
        text = text.rstrip(" \t")
        if text.endswith("\n"):
            text = text[:-1].removesuffix("\r")
    return text


def _end(source: str, at: int) -> int:
    """Return where the first `}}` outside quotes begins, -1 if there is none."""
    while True:
        plain = _PLAIN.match(source, at)
        at = plain.end() if plain else at
        if source.startswith("}}", at):
            return at
        if at == len(source):
            return -1
        if source[at] == "}":
            at += 1
            continue
        string = _STRING.match(source, at)
        if string is None:
            return -1
        at = string.end()


# One render of a template: the text so far, where each piece came from, and what is being included.


_MOST_SHOWN = 80


class Node:
    """A part of a template, and where it stands.

    Scopes are never changed: a body that binds names gets a scope of its own.
    """

    __slots__ = ("at",)

    def __init__(self, at: Position) -> None:
        self.at = at

    def render(self, run: Rendering, scope: Scope) -> None:
        raise NotImplementedError

    def fail(self, message: str) -> TemplateError:
        return TemplateError(message, self.at)


class Rendering:
    """``root`` is the outermost template's directory, ``including`` the files entered and not left.

    ``parse`` makes the nodes of an included text that lies in a directory. With ``records`` the spans say
    which directive gave which bytes.
    """

    def __init__(
        self,
        files: Files,
        root: str,
        operations: Operations,
        parse: Callable[[str, str], Sequence[Node]],
        records: bool,
    ) -> None:
        self.files = files
        self.root = root
        self.operations = operations
        self.parse = parse
        self.including: list[str] = []
        self.spans: list[dict[str, Any]] = []
        self.written = 0
        self._pieces: list[str] = []
        self._size = 0
        self._records = records

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def write(self, text: str) -> None:
        self._pieces.append(text)
        self.written += len(text)
        if self._records:
            self._size += len(text.encode())

    def piece(self, kind: str, at: Position, text: str, shown: str | None = None) -> None:
        """Write the text of one directive; ``shown`` is the value it stands for."""
        span = self.begin(kind, at)
        if shown is not None:
            short = shown[: _MOST_SHOWN - 1] + "…" if len(shown) > _MOST_SHOWN else shown
            span["bound_value"] = short
        self.write(text)
        self.end(span)

    def begin(self, kind: str, at: Position) -> dict[str, Any]:
        """Begin a span; it is listed before the spans inside it."""
        line, column = at
        span: dict[str, Any] = {
            "kind": kind,
            "template_line": line,
            "template_col": column,
            "output_start": self._size,
        }
        if self._records:
            self.spans.append(span)
        return span

    def end(self, span: dict[str, Any]) -> None:
        span["output_end"] = self._size


# What the parts of a template do when rendered. Spec: 04 §23.3, §23.5.


_DEPTH_LIMIT = 32


def _value(expression: Expression, scope: Scope, at: Position) -> Any:
    try:
        return expression(scope)
    except TemplateFault as fault:
        raise TemplateError(str(fault), at) from None


#: Nodes between two looks at whether to go on.
_BATCH = 256


def render_all(nodes: Sequence[Node], run: Rendering, scope: Scope) -> None:
    for at, node in enumerate(nodes):
        if at % _BATCH == _BATCH - 1:
            run.operations.go_on(run.written)
        node.render(run, scope)


class Text(Node):
    __slots__ = ("text",)

    def __init__(self, at: Position, text: str) -> None:
        super().__init__(at)
        self.text = text

    def render(self, run: Rendering, scope: Scope) -> None:
        run.piece("text", self.at, self.text)


class Bare(Node):
    """`{{ name }}`, which stays as written when the name is unbound."""

    __slots__ = ("name",)

    def __init__(self, at: Position, name: str) -> None:
        super().__init__(at)
        self.name = name

    def render(self, run: Rendering, scope: Scope) -> None:
        if self.name in scope:
            text = shown(run.operations, scope[self.name])
            run.piece("legacy_bare", self.at, text, text)
        else:
            run.piece("legacy_bare", self.at, "{{" + self.name + "}}")


class Hole(Node):
    """`{{ expression }}`"""

    __slots__ = ("expression",)

    def __init__(self, at: Position, expression: Expression) -> None:
        super().__init__(at)
        self.expression = expression

    def render(self, run: Rendering, scope: Scope) -> None:
        text = shown(run.operations, _value(self.expression, scope, self.at))
        run.piece("expr", self.at, text, text)


class If(Node):
    """``branches`` are conditions, where they stand, and bodies; ``otherwise`` is the body of `else`."""

    __slots__ = ("branches", "otherwise")

    def __init__(
        self,
        at: Position,
        branches: Sequence[tuple[Expression, Position, Sequence[Node]]],
        otherwise: Sequence[Node],
    ) -> None:
        super().__init__(at)
        self.branches = branches
        self.otherwise = otherwise

    def render(self, run: Rendering, scope: Scope) -> None:
        span = run.begin("if", self.at)
        render_all(self._chosen(run, scope), run, scope)
        run.end(span)

    def _chosen(self, run: Rendering, scope: Scope) -> Sequence[Node]:
        for condition, at, body in self.branches:
            if run.operations.truthy(_value(condition, scope, at)):
                return body
        return self.otherwise


class For(Node):
    """``key`` is None in the form with one variable."""

    __slots__ = ("body", "key", "otherwise", "source", "variable")

    def __init__(
        self,
        at: Position,
        key: str | None,
        variable: str,
        source: Expression,
        body: Sequence[Node],
        otherwise: Sequence[Node],
    ) -> None:
        super().__init__(at)
        self.key = key
        self.variable = variable
        self.source = source
        self.body = body
        self.otherwise = otherwise

    def render(self, run: Rendering, scope: Scope) -> None:
        source = _value(self.source, scope, self.at)
        length, entries = self._entries(source, run)
        for i, (key, item) in enumerate(entries):
            run.operations.go_on(run.written)
            inner = {**scope, self.variable: item, "loop": _loop(i, length)}
            if self.key is not None:
                inner[self.key] = key
            span = run.begin("for_iteration", self.at)
            render_all(self.body, run, inner)
            run.end(span)
        if length == 0:
            render_all(self.otherwise, run, scope)

    def _entries(self, source: Any, run: Rendering) -> tuple[int, Iterator[tuple[Any, Any]]]:
        """Return how many iterations there are, and the key and item of each."""
        if source is None:
            return 0, iter(())
        if type(source) is dict:
            return len(source), iter([(key, source[key]) for key in sorted(source)])
        items = run.operations.items(source)
        if items is None:
            name = run.operations.type_name(source)
            raise self.fail(f"cannot iterate over {name} — expected list, dict, set, or range")
        return count(items), enumerate(items)


def _loop(i: int, length: int) -> Scope:
    return {"index": i + 1, "index0": i, "first": i == 0, "last": i == length - 1, "length": length}


class Include(Node):
    """``directory`` is that of the template it stands in."""

    __slots__ = ("bindings", "directory", "path")

    def __init__(
        self, at: Position, path: Expression, bindings: list[tuple[str, Expression]], directory: str
    ) -> None:
        super().__init__(at)
        self.path = path
        self.bindings = bindings
        self.directory = directory

    def render(self, run: Rendering, scope: Scope) -> None:
        path = _value(self.path, scope, self.at)
        if type(path) is not str:
            raise self.fail(f"include path must be a string (got {run.operations.type_name(path)})")
        target = self._target(path, run)
        inner = {**scope, **{name: _value(bound, scope, self.at) for name, bound in self.bindings}}
        nodes = self._nodes(target, run)
        run.operations.go_on(run.written)
        run.including.append(target)
        span = run.begin("include", self.at)
        render_all(nodes, run, inner)
        run.end(span)
        run.including.pop()

    def _target(self, path: str, run: Rendering) -> str:
        try:
            target = assets.resolve(run.files, path, self.directory)
        except assets.AssetError as error:
            raise self.fail(str(error)) from None
        if not assets.is_anchored(path) and not _is_below(target, run.root):
            raise self.fail(f"include path {path} escapes template root {run.root}")
        if target in run.including:
            circle = [*run.including[run.including.index(target) :], target]
            raise self.fail(f"circular include detected: {' → '.join(circle)}")
        if len(run.including) >= _DEPTH_LIMIT:
            raise self.fail(f"include depth exceeded ({_DEPTH_LIMIT} levels)")
        return target

    def _nodes(self, target: str, run: Rendering) -> Sequence[Node]:
        try:
            source = assets.read(run.files, target)
        except assets.AssetError as error:
            raise self.fail(f"failed to read included template {target}: {error}") from None
        try:
            return run.parse(source, os.path.dirname(target))
        except TemplateError as error:
            raise TemplateError(error.message, error.at, target) from None


def _is_below(path: str, root: str) -> bool:
    return os.path.commonpath([path, root]) == root


# From a template's text to its nodes. Spec: 04 §23.2, §23.5.


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


def render(
    source: str,
    bindings: dict[str, Any],
    directory: str,
    files: Files,
    operations: Operations,
    records: bool = False,
) -> Rendering:
    """Return the rendered template that lies in ``directory``. Raises `TemplateError`."""

    def parsed(text: str, where: str) -> Sequence[Node]:
        return parse(text, where, operations)

    run = Rendering(files, directory, operations, parsed, records)
    render_all(parsed(source, directory), run, bindings)
    return run
