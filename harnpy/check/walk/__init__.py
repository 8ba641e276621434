"""The walk over one item: where it is, what it has found, and what is done with each kind of node.

The modules of this package judge one construct a function, in the order in which the specification discovers
faults (03 §8.1). Operators, methods and properties lean to the left, thousands deep; the walk goes down that
side in a loop and has the type of the left side at hand when it judges what is built on it.
"""

from __future__ import annotations

from harnpy.check.agents import Agents
from harnpy.check.findings import Findings
from harnpy.check.inference import STEPS, WHOLE, Inference
from harnpy.check.narrowing import expected_by
from harnpy.check.scopes import Scope
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from harnpy.check.environment import Environment
    from harnpy.check.narrowing import Facts
    from harnpy.check.types import Types
    from harnpy.check.types.type_nodes import Type

    #: What is done with a node; whether control certainly leaves the block there.
    Visit = Callable[[Any, Any], bool | None]
    #: What is done with a node whose left part, of the given type, has been visited.
    Above = Callable[[Any, Any, Type | None], None]


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

    def inner(self) -> Function:
        """A closure, or a body that runs by itself, inside this function."""
        return Function(type_params=self.type_params, bounds=self.bounds)


class Walk:
    """``item`` is one of the file's.

    What is found goes to `findings`; what is wrong with names to `reported`, which is the same but inside
    ``${…}``, where nothing else is judged. ``quiet``: an error would be handled here, so what the
    specification doesn't ask for stays unsaid.
    """

    def __init__(
        self,
        environment: Environment,
        item: ast.Node,
        visits: Mapping[type, Visit],
        above: Mapping[type, tuple[str, Above]],
    ) -> None:
        self._visits = visits
        self._above = above
        self.environment = environment
        self.inference = Inference(environment, STEPS, WHOLE)
        self.item = item
        self.reported = Findings()
        self.findings = self.reported
        self.deprecations = Findings()
        self.file_scope = Scope(None)
        self.file_scope.names = environment.bindings
        self.base = self.scope = Scope(self.file_scope)
        self.function = Function()
        self.depth = 0
        """How many functions are around."""
        self.quiet = 0
        self.agents = Agents(environment.knowledge, self.reported, environment.brings_providers)

    @property
    def at_file_level(self) -> bool:
        """Whether what is declared here belongs to the file, which knows it already."""
        return self.scope is self.base

    @property
    def in_order(self) -> bool:
        """Whether this runs where it stands among the items of the file."""
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
        """Whether the value of ``node``, of type ``actual``, may flow into ``expected``."""
        return self.types.accepts(expected, node, actual, self.function.type_params)

    def visit(self, node: ast.Node) -> bool | None:
        """Judge ``node`` and all below it; whether control certainly leaves the block there."""
        chain = []
        while (part := self._above.get(type(node))) is not None and not self.inference.begins(
            node, self.scope
        ):
            chain.append((part[1], node))
            node = getattr(node, part[0])
        visit = self._visits.get(type(node))
        leaves = None
        if visit is not None:
            leaves = visit(self, node)
        else:
            self.children(node)
        if not chain:
            return leaves
        found = self.type(node)
        for judge, above in reversed(chain):
            judge(self, above, found)
            found = self.inference.follow(above, found, self.scope)
        return None

    def children(self, node: ast.Node) -> None:
        for child in node.children():
            self.visit(child)

    def optional(self, node: ast.Node | None) -> None:
        if node is not None:
            self.visit(node)

    def block(self, block: ast.Block, facts: Facts | None = None, scope: Scope | None = None) -> bool:
        """Visit a block in a scope of its own, or in ``scope``; whether it certainly leaves."""
        inner = Scope(self.scope) if scope is None else scope
        outer, self.scope = self.scope, inner
        if facts is not None:
            self.learn(facts)
        leaves = self.statements(block.statements)
        self.scope = outer
        return leaves

    def statements(self, statements: Sequence[ast.Node]) -> bool:
        """Visit statements up to the one after which nothing runs."""
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
            self.learn(expected_by(statement, self.inference.schemas(self.scope)))
        self.inference.types = types
        return leaves

    def learn(self, facts: Facts) -> None:
        """Let facts hold from here to the end of the block."""
        self.scope.narrow(facts.types, facts.ruled_out)

    def predeclare(self, statements: Sequence[ast.Node]) -> None:
        """Note what a block will declare, for functions that are called later (02 §7.4)."""
        later = self.scope.later
        for node in statements:
            if isinstance(node, ast.FnDecl):
                later[node.name] = node
            elif isinstance(node, ast.Let) and isinstance(node.target, ast.NamePattern):
                later.setdefault(node.target.name, node)

    def in_function(self, function: Function, scope: Scope, visit: Callable[[], object]) -> None:
        """Do what ``visit`` does inside another function."""
        outer = self.function, self.scope
        self.function, self.scope = function, scope
        self.depth += 1
        visit()
        self.depth -= 1
        self.function, self.scope = outer

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
