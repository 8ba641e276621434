"""The algebra of types: `Types` answers every question about the types of one file.

A type is a type node of the syntax; no type is None. What `Declared` holds decides. Answers that depend on
the declarations alone are remembered; modules that are rarely needed are loaded on first use. Spec: 03 §3,
§4, §7, §8.3, §13.
"""

from __future__ import annotations

from harnpy.check.types import type_nodes
from harnpy.check.types.declared import Aliases, Declared, substituted
from harnpy.check.types.fitting import Fitting, is_fresh, variances
from harnpy.check.types.type_nodes import shown
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

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
        return actual is expected or Fitting(self, params).fits(actual, expected)

    def accepts(self, expected: Type, node: ast.Node, actual: Type, params: Set[str] = _NONE) -> bool:
        """Return True if the value of ``node``, of type ``actual``, may flow into ``expected``.

        What a literal holds is compared item by item: `[1]` fits `list<int | nil>`, a `list<int>` doesn't.
        """
        return self.fits(actual, expected, params) or (
            is_fresh(node) and Fitting(self, params, fresh=True).fits(actual, expected)
        )

    def detail(self, actual: Type, expected: Type) -> str:
        """`` (missing field …)``: what a shape lacks of another, as messages end (03 §8.1); or nothing."""
        if not isinstance(actual, ast.TypeShape) or not isinstance(expected, ast.TypeShape):
            return ""
        given = {field.name: shown(field.type) for field in actual.fields}
        faults = []
        for field in expected.fields:
            wanted = shown(field.type)
            if field.optional:
                continue
            if field.name not in given:
                faults.append(f"missing field '{field.name}' ({wanted})")
            elif given[field.name] != wanted:
                faults.append(f"field '{field.name}' has type {given[field.name]}, expected {wanted}")
        return f" ({'; '.join(faults)})" if faults else ""

    def variances(self, name: str, count: int) -> tuple[str, ...]:
        """The variance of each of ``count`` arguments of ``name``: `out`, `in`, or nothing for invariant."""
        known = self._variances.get((name, count))
        if known is None:
            known = self._variances[name, count] = variances(self, name, count)
        return known

    def shape_of(self, type: ast.TypeName) -> ast.TypeShape | None:
        """The fields of a struct as a shape; None for any other name."""
        if type not in self._shapes:
            self._shapes[type] = self._struct_shape(type)
        return self._shapes[type]

    def _struct_shape(self, type: ast.TypeName) -> ast.TypeShape | None:
        from harnpy.check.types.fitting import arguments
        from harnpy.check.types.type_nodes import ANY

        declared = self.declared.structs.get(type.name)
        if declared is None:
            return None
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

    # Unions (03 §3.1, §6)

    def union(self, members: Iterable[Type]) -> Type:
        """The distinct ones in their order; a single one is that type, none is `never`."""
        return type_nodes.union(members)

    def without(self, type: Type, member: Type) -> Type:
        """A union without one of its members; `never` when nothing is left."""
        return type_nodes.without(type, member)

    def intersection(self, type: Type, other: Type) -> Type | None:
        """Return what a value of ``type`` is once it is known to be of ``other`` (03 §6); maybe `never`.

        None when that can't be said: an `unknown` stays one before a shape.
        """
        from harnpy.check.types.schemas import intersection

        return intersection(self, type, other)

    def tagged(self, type: Type) -> tuple[str, list[tuple[str | int, Type]]] | None:
        """The discriminant of a union of shapes (03 §6) and its variants: their literal, and the shape."""
        from harnpy.check.types.schemas import tagged

        return tagged(self, type)

    # Interfaces, generics, variance (03 §7)

    def unsatisfied(self, type: Type, interface: str, args: Sequence[Type] = ()) -> str | None:
        """Return why ``type`` does not satisfy an interface, in the words of 03 §7.1; None when it does."""
        key = (type, interface, tuple(args))
        if key not in self._satisfied:
            from harnpy.check.types.fitting import unsatisfied

            # A method that returns its own interface asks again: it is assumed to hold.
            self._satisfied[key] = None
            self._satisfied[key] = unsatisfied(self, type, interface, key[2])
        return self._satisfied[key]

    def bind(
        self, names: Set[str], expected: Type, actual: Type, bound: dict[str, Type]
    ) -> tuple[str, Type, Type] | None:
        """Bind the type parameters ``names`` of ``expected`` by matching it against ``actual`` (03 §7.2).

        ``bound`` is added to. Gives the first contradiction: the parameter, what it is bound to and what it
        should be bound to; the first binding stays.
        """
        from harnpy.check.types.fitting import bind

        return bind(self, names, expected, actual, bound)

    def substitute(self, type: Type, bound: Mapping[str, Type]) -> Type:
        """``type`` with each name in ``bound`` replaced by what it is bound to."""
        return substituted(type, bound)

    def settled(self, type: Type, names: Iterable[str], bound: Mapping[str, Type]) -> Type | None:
        """`substitute`, what stays unbound among ``names`` being `_`; None when nothing else is left."""
        from harnpy.check.types.fitting import settled

        return settled(type, names, bound)

    def applied(
        self, name: str, params: Sequence[ast.TypeParam], given: Iterable[tuple[Type, Type]]
    ) -> ast.TypeName:
        """The type of a value of a struct or enum: ``given`` are (declared, actual) types of its parts."""
        from harnpy.check.types.fitting import applied

        return applied(self, name, params, given)

    def variance_faults(self, node: ast.Node) -> Iterator[tuple[ast.Node, str]]:
        """Type parameters of a declaration in positions that their variance forbids (03 §7.3)."""
        from harnpy.check.types.fitting import variance_faults

        return variance_faults(self, node)

    # Schemas (03 §8.3)

    def schema(self, node: ast.Node, local: Callable[[str], ast.Node | None]) -> Type | None:
        """The type of the values that a schema expression accepts; None when it can't be read.

        ``local`` gives the literal dict that a variable is bound to, None for all other names.
        """
        from harnpy.check.types.schemas import schema

        return schema(self, node, local)

    def seen_as(
        self, expected: Type, node: ast.Node, actual: Type | None, local: Callable[[str], ast.Node | None]
    ) -> Type | None:
        """The type of an argument for a parameter of type ``expected``: schemas where it has `Schema<T>`."""
        from harnpy.check.types.schemas import seen_as

        return seen_as(self, expected, node, actual, local)

    # Members of values (03 §5)

    def method_result(self, receiver: Type | None, method: str) -> Type | None:
        """The type of `receiver.method(…)`; None when it isn't known."""
        from harnpy.check.types.methods import method_result

        return method_result(self, receiver, method)


__all__ = ["Declared", "Types"]
