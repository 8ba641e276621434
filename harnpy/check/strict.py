"""Strict types: what comes from outside is validated before it is looked into. Spec: 03 §8.5.

A pass of its own over an item, for it asks only where a value came from. What is bound to the result of a
boundary is tainted by its name, until a schema or an annotation has said what it is.
"""

from __future__ import annotations

from harnpy.check.environment import match_names
from harnpy.check.narrowing import SCHEMA_TESTS, exits, statement_exits, tests
from harnpy.syntax import ast
from harnpy.syntax.ast import bound_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from harnpy.check.findings import Findings

#: The builtins whose results nobody has validated.
BOUNDARIES = frozenset(
    """
    json_parse json_extract yaml_parse toml_parse llm_call llm_call_safe llm_completion
    http_get http_post http_put http_patch http_delete http_download http_request
    http_session_request http_stream_info sse_receive sse_server_mock_receive sse_server_response
    sse_server_status websocket_accept websocket_receive host_call connector_call host_tool_call mcp_call
    """.split()
)
#: Those that validate by themselves when their options, the third argument, have a schema.
_VALIDATING = ("llm_call", "llm_completion")
_ASSIGN_FIRST = "assign to a variable and validate with schema_expect() or a type annotation first"
_VALIDATE = "validate with schema_expect(), schema_is() in an if-condition, or add a shape type annotation"
_FUNCTIONS = ast.FnDecl | ast.ToolDecl | ast.Pipeline | ast.Override | ast.FnExpr


def check_strict(item: ast.Node, findings: Findings, own: Collection[str] = ()) -> None:
    """Warn of each look into an unvalidated value in a top-level item; ``own`` are the file's functions."""
    _Strict(findings, BOUNDARIES - set(own)).walk(item, _Scope(None))


class _Scope:
    """A block: by name the boundary that a variable's value came through, None for a validated one."""

    __slots__ = ("parent", "sources")

    def __init__(self, parent: _Scope | None, clean: Iterable[str] = ()) -> None:
        self.parent = parent
        self.sources: dict[str, str | None] = dict.fromkeys(clean)

    def source(self, name: str) -> str | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.sources:
                return scope.sources[name]
            scope = scope.parent
        return None


class _Strict:
    def __init__(self, findings: Findings, boundaries: Collection[str]) -> None:
        self._findings = findings
        self._boundaries = boundaries

    def walk(self, node: ast.Node, scope: _Scope) -> None:
        """Walk ``node`` and what is below it, in source order."""
        # A stack of our own: a sum of twenty thousand terms is a tree that deep.
        places = [(node, scope)]
        while places:
            node, scope = places.pop()
            if isinstance(node, ast.Block):
                self._block(node, _Scope(scope))
            else:
                self._look(node, scope)
                places += reversed(self._below(node, scope))

    def _block(self, block: ast.Block, scope: _Scope) -> None:
        for statement in block.statements:
            self.walk(statement, scope)
            self._learn(statement, scope)
            if statement_exits(statement):
                return

    def _below(self, node: ast.Node, scope: _Scope) -> list[tuple[ast.Node, _Scope]]:
        """The parts of a node, each with the scope that it stands in."""
        if isinstance(node, ast.Interp):
            return []
        if isinstance(node, ast.Assign):
            return [(node.value, scope)]
        if isinstance(node, _FUNCTIONS):
            return [(child, _Scope(None)) for child in node.children()]
        if isinstance(node, ast.If | ast.Ternary | ast.While):
            cond, then, *otherwise = node.children()
            places = [(cond, scope), (then, _Scope(scope, _validated(cond, True)))]
            return places + [(part, _Scope(scope, _validated(cond, False))) for part in otherwise]
        if isinstance(node, ast.Guard):
            return [(node.cond, scope), (node.otherwise, _Scope(scope, _validated(node.cond, False)))]
        names = _names(node)
        inner = _Scope(scope, names) if names else scope
        return [(child, inner) for child in node.children()]

    def _look(self, node: ast.Node, scope: _Scope) -> None:
        """Warn when ``node`` looks into a value that came through a boundary."""
        if not isinstance(node, ast.Member | ast.Index):
            return
        value = node.object
        member = isinstance(node, ast.Member)
        boundary = self._boundary(value)
        if boundary is not None:
            self._findings.warn(
                "unvalidated-access",
                node,
                f"Direct {'property' if member else 'subscript'} access on unvalidated `{boundary}()` result",
                help=_ASSIGN_FIRST,
            )
        source = scope.source(value.name) if isinstance(value, ast.Name) else None
        if isinstance(value, ast.Name) and source is not None:
            self._findings.warn(
                "unvalidated-access",
                node,
                f"{'Accessing property' if member else 'Subscript access'} on unvalidated value"
                f" '{value.name}' from `{source}`",
                help=_VALIDATE,
            )

    def _learn(self, statement: ast.Node, scope: _Scope) -> None:
        """Note what a statement does to the variables of its block."""
        if isinstance(statement, ast.Let):
            names = bound_names(statement.target)
            scope.sources.update(dict.fromkeys(names))
            if isinstance(statement.target, ast.NamePattern) and names and not _is_concrete(statement.type):
                scope.sources[names[0]] = self._source(statement.value, scope)
        elif isinstance(statement, ast.Assign) and isinstance(statement.target, ast.Name):
            scope.sources[statement.target.name] = None
        elif isinstance(statement, ast.Call) and statement.name == "schema_expect" and statement.args:
            scope.sources.update(dict.fromkeys(_named(statement.args[0])))
        elif isinstance(statement, ast.Guard | ast.Require):
            scope.sources.update(dict.fromkeys(_validated(statement.cond, True)))
        elif isinstance(statement, ast.If) and exits(statement.then):
            scope.sources.update(dict.fromkeys(_validated(statement.cond, False)))

    def _source(self, value: ast.Node, scope: _Scope) -> str | None:
        if isinstance(value, ast.Name):
            return scope.source(value.name)
        return self._boundary(value)

    def _boundary(self, node: ast.Node) -> str | None:
        """The boundary that a call is of, unless it validates its result by itself."""
        if not isinstance(node, ast.Call) or node.name not in self._boundaries:
            return None
        return None if node.name in _VALIDATING and _has_schema(node.args) else node.name


def _has_schema(args: Collection[ast.Node]) -> bool:
    options = list(args)[2:3]
    return any(
        isinstance(entry, ast.DictEntry)
        and isinstance(entry.key, ast.Str)
        and entry.key.value in ("schema", "output_schema")
        for option in options
        if isinstance(option, ast.Dict)
        for entry in option.entries
    )


def _validated(cond: ast.Node, holds: bool) -> list[str]:
    """The variables that match a schema when ``cond`` is ``holds``."""
    return [
        name
        for test, true in tests(cond, holds)
        if true and isinstance(test, ast.Call) and test.name in SCHEMA_TESTS and test.args
        for name in _named(test.args[0])
    ]


def _named(node: ast.Node) -> list[str]:
    return [node.name] if isinstance(node, ast.Name) else []


def _is_concrete(type: ast.Node | None) -> bool:
    """Return True if an annotation says what a value is: anything but `dict`, `any`, `_` and unions."""
    if type is None or isinstance(type, ast.TypeUnion):
        return False
    return not isinstance(type, ast.TypeName) or bool(type.args) or type.name not in ("dict", "any", "_")


def _names(node: ast.Node) -> list[str]:
    """The names that a construct binds for its own parts."""
    if isinstance(node, ast.Closure):
        return [param.name for param in node.params]
    if isinstance(node, ast.For):
        return bound_names(node.pattern)
    if isinstance(node, ast.Parallel):
        return [node.param] if node.param else []
    if isinstance(node, ast.Catch | ast.SelectCase):
        return [node.name] if node.name else []
    if isinstance(node, ast.Arm):
        return [name for pattern in node.patterns for name in match_names(pattern)]
    return []
