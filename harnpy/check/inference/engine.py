"""What is asked for the type of an expression. Spec: 03 §5.

Operators, methods and properties lean to the left, thousands deep: what stands leftmost is inferred first,
and the rest goes upward from there. So no chain recurses, and each of its links is looked at once.
"""

from __future__ import annotations

from harnpy.check.narrowing.facts import facts_of
from harnpy.check.scopes import Scope
from harnpy.check.types.names import named
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from harnpy.check.environment import Environment
    from harnpy.check.narrowing.facts import Facts
    from harnpy.check.types import Types
    from harnpy.check.types.names import Type

    #: The type of a node whose left part has the given one; the type of any other node.
    Step = Callable[[Any, Any, Type | None, Scope], Type | None]
    Whole = Callable[[Any, Any, Scope], Type | None]


class Inference:
    """Infers types in one file. ``types`` are those in force: a body may declare more."""

    def __init__(
        self, environment: Environment, steps: Mapping[type, tuple[str, Step]], whole: Mapping[type, Whole]
    ) -> None:
        self._steps = steps
        self._whole = whole
        self.environment = environment
        self.types: Types = environment.types
        self.tries: dict[int, Type] | None = None
        """What was inferred of each `try` in the outermost one that is being inferred, by identity."""

    def of(self, node: ast.Node, scope: Scope) -> Type | None:
        """The type of ``node``; None if it has none."""
        chain = []
        while (step := self._steps.get(type(node))) is not None and not self.begins(node, scope):
            chain.append((step[1], node))
            node = getattr(node, step[0])
        whole = self._whole.get(type(node))
        found = self.variant(node, scope) if whole is None else whole(self, node, scope)
        for follow, above in reversed(chain):
            found = follow(self, above, found, scope)
        return found

    def follow(self, node: ast.Node, left: Type | None, scope: Scope) -> Type | None:
        """The type of a link of a chain, whose left side has the type ``left``."""
        step = self._steps.get(type(node))
        return None if step is None else step[1](self, node, left, scope)

    def begins(self, node: ast.Node, scope: Scope) -> bool:
        """Whether a chain ends with ``node`` though it has something on its left: a variant of an enum."""
        return isinstance(node, ast.Member | ast.MethodCall) and self.enum_of(node, scope) is not None

    def enum_of(self, node: ast.Member | ast.MethodCall, scope: Scope) -> ast.EnumDecl | None:
        """The enum of ``E.V`` or ``E.V(…)``."""
        if not isinstance(node.object, ast.Name) or node.optional:
            return None
        found = self.types.declared.enums.get(node.object.name)
        return found if found is not None and scope.find(found.name) is None else None

    def variant(self, node: ast.Node, scope: Scope) -> Type | None:
        """The type of ``E.V`` and ``E.V(…)``; None for every other node."""
        if not isinstance(node, ast.Member | ast.MethodCall):
            return None
        enum = self.enum_of(node, scope)
        if enum is None or not enum.type_params:
            return enum and named(enum.name)
        params = next((v.params for v in enum.variants if v.name == node.name), ())
        args = node.args if isinstance(node, ast.MethodCall) else ()
        given = [
            (param.type, actual)
            for param, arg in zip(params, args, strict=False)
            if param.type is not None and (actual := self.of(arg, scope)) is not None
        ]
        return self.types.applied(enum.name, enum.type_params, given)

    def sides(self, cond: ast.Node, scope: Scope) -> tuple[Facts, Facts]:
        """What holds where ``cond`` is true, and where it is false."""
        return facts_of(cond, scope.type_of, self.schemas(scope), self.types)

    def schemas(self, scope: Scope) -> Callable[[ast.Node], Type | None]:
        """What reads a schema that an expression stands for: variables may hold one."""
        return lambda node: self.types.schema(node, scope.value_of)

    def narrowed(self, facts: Facts, scope: Scope) -> Scope:
        """A scope inside ``scope`` in which ``facts`` hold."""
        inner = Scope(scope)
        inner.narrow(facts.types, facts.ruled_out)
        return inner
