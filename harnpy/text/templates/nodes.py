"""What the parts of a template do when rendered. Spec: 04 §23.3, §23.5."""

from __future__ import annotations

import os.path

from harnpy.text.templates import assets
from harnpy.text.templates.errors import TemplateError, TemplateFault
from harnpy.text.templates.operations import count, shown
from harnpy.text.templates.rendering import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from harnpy.text.templates.expressions import Expression
    from harnpy.text.templates.rendering import Position, Rendering, Scope

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
