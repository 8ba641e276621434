"""The algebra of types: `Types` knows the types of one file, and which of them fit each other.

A type is a type node of the syntax; no type is None. What `Declared` holds decides. Answers that depend on
the declarations alone are remembered here; the modules of this package ask for them. What decides whether
types fit loads for the first question. Spec: 03 §3, §4, §7.
"""

from __future__ import annotations

from harnpy.check.types.declared import Aliases, Declared, substituted
from harnpy.check.types.type_nodes import ANY
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Set

    from harnpy.check.types.type_nodes import Type

_NONE: frozenset[str] = frozenset()


class Types:
    """The types of a file."""

    __slots__ = ("_satisfied", "_shapes", "_variances", "aliases", "declared")

    def __init__(self, declared: Declared) -> None:
        self.declared = declared
        self.aliases = Aliases(declared.aliases)
        self._satisfied: dict[tuple[Type, str, tuple[Type, ...]], str | None] = {}
        self._shapes: dict[ast.TypeName, ast.TypeShape | None] = {}
        self._variances: dict[tuple[str, int], tuple[str, ...]] = {}

    def inner(self, nodes: Iterable[ast.Node]) -> Types:
        """The types inside a body that has these statements: itself unless they declare some."""
        declared = self.declared.inner(nodes)
        return self if declared is self.declared else Types(declared)

    # Fitting (03 §4)

    def fits(self, actual: Type, expected: Type, params: Set[str] = _NONE) -> bool:
        """Return True if ``actual`` may flow into ``expected``; ``params``: the type parameters in scope."""
        if actual is expected:
            return True
        from harnpy.check.types.fitting import Fitting

        return Fitting(self, params).fits(actual, expected)

    def accepts(self, expected: Type, node: ast.Node, actual: Type, params: Set[str] = _NONE) -> bool:
        """Return True if the value of ``node``, of type ``actual``, may flow into ``expected``.

        What a literal holds is compared item by item: `[1]` fits `list<int | nil>`, a `list<int>` doesn't.
        """
        from harnpy.check.types.fitting import Fitting, is_fresh

        return self.fits(actual, expected, params) or (
            is_fresh(node) and Fitting(self, params, fresh=True).fits(actual, expected)
        )

    def variances(self, name: str, count: int) -> tuple[str, ...]:
        """The variance of each of ``count`` arguments of ``name``: `out`, `in`, or nothing for invariant."""
        known = self._variances.get((name, count))
        if known is None:
            from harnpy.check.types.fitting import variances

            known = self._variances[name, count] = variances(self, name, count)
        return known

    def shape_of(self, type: ast.TypeName) -> ast.TypeShape | None:
        """The fields of a struct as a shape; None for any other name."""
        if type not in self._shapes:
            self._shapes[type] = self._struct_shape(type)
        return self._shapes[type]

    def _struct_shape(self, type: ast.TypeName) -> ast.TypeShape | None:
        declared = self.declared.structs.get(type.name)
        if declared is None:
            return None
        from harnpy.check.types.fitting import arguments

        bound = arguments(declared.type_params, type.args)
        fields = [
            ast.ShapeField(0, 0, field.name, field.optional, substituted(field.type or ANY, bound))
            for field in declared.fields
        ]
        return ast.TypeShape(0, 0, tuple(fields))

    # Aliases (03 §3.3)

    def unfolded(self, type: Type) -> Type:
        """``type`` without the aliases at its head; its parts may be aliases."""
        return self.aliases.unfolded(type)

    def members(self, type: Type) -> tuple[Type, ...]:
        """The members of a union, those of aliases among them; any other type is its own only member."""
        return self.aliases.members(type)

    # Interfaces (03 §7)

    def unsatisfied(self, type: Type, interface: str, args: Sequence[Type] = ()) -> str | None:
        """Return why ``type`` does not satisfy an interface, in the words of 03 §7.1; None when it does."""
        key = (type, interface, tuple(args))
        if key not in self._satisfied:
            from harnpy.check.types.fitting import unsatisfied

            # A method that returns its own interface asks again: it is assumed to hold.
            self._satisfied[key] = None
            self._satisfied[key] = unsatisfied(self, type, interface, key[2])
        return self._satisfied[key]


__all__ = ["Declared", "Types"]
