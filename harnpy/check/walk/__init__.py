"""The walk over one item: where it is, what it has found, and what is done with each kind of node.

It binds names as the resolver does (`harnpy.syntax.names`), each with its type. The modules of this package
judge one construct a function, in the order in which the specification discovers faults (03 §8.1). Operators,
methods and properties lean to the left, thousands deep; the walk goes down that side in a loop and has the
type of the left side at hand when it judges what is built on it.
"""

from __future__ import annotations

from harnpy.check.agents import Agents
from harnpy.check.findings import Findings
from harnpy.check.inference import Inference, annotated, certain
from harnpy.check.scopes import Binding, Scope
from harnpy.check.types import type_nodes
from harnpy.check.types.type_nodes import INT, is_named
from harnpy.syntax import ast
from harnpy.syntax.names import Binder, declared_later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from harnpy.check.environment import Environment
    from harnpy.check.narrowing import Facts
    from harnpy.check.types import Types
    from harnpy.check.types.type_nodes import Type

    #: What is done with a node; true when control certainly leaves the block there.
    Visit = Callable[[Any, Any], object]
    #: What is done with a node whose left part, of the given type, has been visited.
    Above = Callable[[Any, Any, Type | None], None]


#: The left part of a node that leans to the left.
_LEFT: Mapping[type, str] = {
    ast.Binary: "left",
    ast.Unary: "operand",
    ast.MethodCall: "object",
    ast.Member: "object",
    ast.Index: "object",
    ast.Slice: "object",
    ast.Propagate: "value",
    ast.TryStar: "value",
    ast.Pipe: "left",
}


class Function:
    """The function around a place.

    ``gen``: a `gen fn`, whose stream has items of ``item`` if that is declared. ``type_params`` are the type
    parameters in scope, ``bounds`` the interfaces that `where` demands of them.
    """

    __slots__ = ("bounds", "gen", "item", "type_params")

    def __init__(
        self,
        *,
        gen: bool = False,
        item: Type | None = None,
        type_params: frozenset[str] = frozenset(),
        bounds: Mapping[str, str] | None = None,
    ) -> None:
        self.gen = gen
        self.item = item
        self.type_params = type_params
        self.bounds = bounds or {}

    def inner(self, type_params: Iterable[ast.TypeParam] = ()) -> Function:
        """Return what is around a closure, a body that runs by itself, or methods, inside this function."""
        params = self.type_params | {param.name for param in type_params}
        return Function(type_params=params, bounds=self.bounds)

    def declared(self, node: ast.FnDecl) -> Function:
        """Return what is around the body of a function inside this one."""
        params = self.type_params | {param.name for param in node.type_params}
        return Function(gen=node.gen, item=stream_item(node), type_params=params, bounds=dict(node.where))


def stream_item(node: ast.FnDecl) -> Type | None:
    """Return ``E`` of a `gen fn` that returns `Stream<E>`."""
    returns = node.returns
    is_stream = isinstance(returns, ast.TypeName) and returns.name in ("Stream", "stream")
    return returns.args[0] if node.gen and is_stream and len(returns.args) == 1 else None  # type: ignore[union-attr]


class Walk(Binder):
    """``item`` is one of the file's.

    What is found goes to `findings`; what is wrong with names to `reported`, which is the same but inside
    ``${…}``, where nothing else is judged. ``quiet``: an error would be handled here, so what the
    specification doesn't ask for stays unsaid.
    """

    def __init__(
        self,
        environment: Environment,
        item: ast.Node,
        visits: ast.NodeTable,
        above: ast.NodeTable,
    ) -> None:
        super().__init__(visits)
        self._above = above
        self.enums = environment.enums_anywhere
        self.environment = environment
        self.inference = Inference(environment)
        self.item = item
        self.reported = Findings()
        self.findings = self.reported
        self.deprecations = Findings()
        file_scope = Scope(None)
        file_scope.names = environment.bindings
        self.base = self.scope = Scope(file_scope)
        self.function = Function()
        self._functions: list[Function] = []
        self.quiet = 0
        self.agents = Agents(environment.knowledge, self.reported, environment.brings_providers)

    @property
    def at_file_level(self) -> bool:
        """Return True if what is declared here belongs to the file, which knows it already."""
        return self.scope is self.base

    @property
    def in_order(self) -> bool:
        """Return True if this runs where it stands among the items of the file."""
        return not self.depth and (self.environment.is_script or isinstance(self.item, ast.Let))

    @property
    def types(self) -> Types:
        return self.inference.types

    def type(self, node: ast.Node) -> Type | None:
        """The type of an expression here."""
        return self.inference.of(node, self.scope)

    def fits(self, actual: Type, expected: Type) -> bool:
        return self.types.fits(actual, expected, self.function.type_params)

    def accepts(self, expected: Type, node: ast.Node, actual: Type) -> bool:
        """Return True if the value of ``node``, of type ``actual``, may flow into ``expected``."""
        return self.types.accepts(expected, node, actual, self.function.type_params)

    def visit(self, node: ast.Node) -> object:
        """Judge ``node`` and all below it; return what is true if control certainly leaves the block."""
        chain = []
        while (part := _LEFT.get(type(node))) is not None and not self.inference.begins(node, self.scope):
            chain.append(node)
            node = getattr(node, part)
        visit: Visit | None = self._visits[type(node)]
        leaves = None
        if visit is not None:
            leaves = visit(self, node)
        else:
            self.children(node)
        if not chain:
            return leaves
        found = self.type(node)
        for above in reversed(chain):
            judge: Above | None = self._above[type(above)]
            if judge is not None:
                judge(self, above, found)
            found = self.inference.follow(above, found, self.scope)
        return None

    def block(self, block: ast.Block, facts: Facts | None = None) -> bool:
        """Visit a block in a scope of its own, where ``facts`` hold; return True if it certainly leaves."""
        self.open_scope(block)
        if facts is not None:
            self.learn(facts)
        leaves = self.statements(block.statements)
        self.close_scope()
        return leaves

    def statements(self, statements: Sequence[ast.Node]) -> bool:
        """Visit statements up to the one after which nothing runs; return True if there is one."""
        types = self.types
        if self.depth:
            self.inference.types = types.inner(statements)
        self.predeclare(statements)
        leaves = False
        for statement in statements:
            if leaves:
                self.findings.warn("unreachable-code", statement, "unreachable code")
                break
            leaves = bool(self.visit(statement))
            if type(statement) is ast.Call and statement.name == "schema_expect":
                from harnpy.check.narrowing import expected_by

                self.learn(expected_by(statement, self.inference.schemas(self.scope)))
        self.inference.types = types
        return leaves

    def learn(self, facts: Facts) -> None:
        """Let facts hold from here to the end of the block."""
        self.scope.narrow(facts.types, facts.ruled_out)

    # --- scopes and what is bound in them ----------------------------------------------------------

    def predeclare(self, statements: Sequence[ast.Node]) -> None:
        later = self.scope.later
        for name, node in declared_later(statements):
            if isinstance(node, ast.FnDecl):
                later[name] = node
            else:
                later.setdefault(name, node)

    def open_scope(self, node: ast.Node) -> None:
        self.scope = Scope(self.scope)
        if isinstance(node, ast.For | ast.While):
            self.scope.repeat(node.body)

    def close_scope(self) -> None:
        assert self.scope.parent
        self.scope = self.scope.parent

    @property
    def depth(self) -> int:
        """Return how many functions are around."""
        return len(self._functions)

    def enter_function(self, node: ast.Node, name: str | None) -> None:
        self._functions.append(self.function)
        if isinstance(node, ast.FnDecl):
            self.function = self.function.declared(node)
        else:
            self.function = self.function.inner()
        # A nested function sees what is around it by name alone (03 §5).
        self.scope = Scope(self.scope, function=True, opaque=isinstance(node, ast.FnDecl | ast.ToolDecl))

    def leave_function(self) -> None:
        self.close_scope()
        self.function = self._functions.pop()

    def attributes(self, node: Any) -> None:
        if getattr(node, "attrs", ()):
            from harnpy.check.walk.attributes import check_attributes

            check_attributes(node, self.findings)

    def bind(
        self,
        node: ast.Node,
        place: ast.Node,
        name: str,
        role: str,
        mutable: bool = False,
        value: ast.Node | None = None,
    ) -> None:
        if self.at_file_level and role in ("fn", "tool", "skill"):
            return
        if role == "let":
            binding = self._variable(node, name, mutable, value)  # type: ignore[arg-type]
        elif role == "for":
            binding = self._of_loop(node, place, name)  # type: ignore[arg-type]
        elif isinstance(place, ast.Param):
            sure = None if place.type is None or place.rest else annotated(self.inference, place.type)
            binding = Binding(name, place, place.type, certain=sure)
        elif isinstance(node, ast.Parallel):
            item = INT if node.kind == "count" else type_nodes.element(self._around(node.source))
            binding = Binding(name, node, item)
        elif isinstance(node, ast.Catch):
            binding = Binding(name, node, node.type)
        else:
            binding = Binding(name, place, mutable=mutable, fn=node if isinstance(node, ast.FnDecl) else None)
        self.scope.declare(binding)

    def _variable(self, node: ast.Let, name: str, mutable: bool, value: ast.Node | None) -> Binding:
        """The names of a pattern have no type, nor have here those of the file."""
        if value is None or self.at_file_level:
            return Binding(name, node.target, mutable=mutable)
        type = node.type or self.type(value)
        sure = None
        if not mutable and node.type is None:
            sure = certain(self.inference, value, self.scope)
        elif node.type is not None:
            sure = annotated(self.inference, node.type)
        return Binding(
            name,
            node.target,
            type,
            mutable=mutable,
            value=None if mutable else value,
            certain=sure,
            inferred=node.type is None,
            widens=mutable and node.type is None and is_named(type, "nil"),
        )

    def _of_loop(self, node: ast.For, place: ast.Node, name: str) -> Binding:
        pattern = node.pattern
        if isinstance(pattern, ast.NamePattern):
            type = type_nodes.element(self._around(node.iterable))
        elif isinstance(pattern, ast.PairPattern):
            both = type_nodes.pair(self._around(node.iterable))
            type = both[1] if name == pattern.second else both[0]
        else:
            return Binding(name, pattern)
        return Binding(name, pattern, type, inferred=True)

    def _around(self, node: ast.Node) -> Type | None:
        """Return the type of an expression that stands before the scope that has just been opened."""
        assert self.scope.parent
        return self.inference.of(node, self.scope.parent)

    def quietly(self, visit: Callable[[], object]) -> None:
        """Do what ``visit`` does where an error may be handled."""
        self.quiet += 1
        visit()
        self.quiet -= 1

    def names_only(self, visit: Callable[[], object]) -> None:
        """Do what ``visit`` does where nothing but names is judged (03 §1.1)."""
        findings, self.findings = self.findings, Findings()
        visit()
        self.findings = findings
