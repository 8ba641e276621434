"""What the names of type aliases stand for. Spec: 03 §3.3.

An applied alias takes its arguments by substitution, and distributes over those that are unions:
`Box<A | B>` is `Box<A> | Box<B>`. An alias inside itself stays a name.
"""

from __future__ import annotations

from harnpy.check.types.names import rebuilt
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harnpy.check.types.names import Type

#: An application that would distribute into more members than these takes its unions whole.
_MOST_MEMBERS = 256
#: Aliases of aliases below this depth stay names: `type A<T> = A<list<T>>` has no end.
_DEEPEST = 100


class Aliases:
    """The aliases of one `Declared`."""

    __slots__ = ("_unfolded", "_whole", "declared")

    def __init__(self, declared: Mapping[str, ast.TypeDecl]) -> None:
        self.declared = declared
        self._unfolded: dict[ast.TypeName, Type] = {}
        self._whole: dict[ast.TypeName, Type] = {}

    def unfolded(self, type: Type) -> Type:
        """``type`` with the aliases at its head taken away: what remains is no alias, its parts may be."""
        if not isinstance(type, ast.TypeName) or type.name not in self.declared:
            return type
        known = self._unfolded.get(type)
        if known is None:
            known = self._unfolded[type] = self._unfold(type)
        return known

    def _unfold(self, type: Type) -> Type:
        seen: set[Type] = set()
        while isinstance(type, ast.TypeName) and type not in seen and len(seen) < _DEEPEST:
            seen.add(type)
            type = self._applied(type)
        return type

    def undistributed(self, type: Type) -> Type | None:
        """The body of an alias with its arguments as they are; None unless some of them are unions."""
        declared = self.declared.get(type.name) if isinstance(type, ast.TypeName) else None
        if declared is None or not isinstance(type, ast.TypeName):
            return None
        if len(type.args) != len(declared.type_params) or len(self._choices(type.args)) == 1:
            return None
        if type not in self._whole:
            self._whole[type] = substituted(declared.type, _by_name(declared, type.args))
        return self._whole[type]

    def members(self, type: Type) -> tuple[Type, ...]:
        """The members of a union, those of aliases among them; any other type is its own only member."""
        found: dict[Type, None] = {}
        self._add_members(type, found, set())
        return tuple(found)

    def _add_members(self, type: Type, found: dict[Type, None], within: set[Type]) -> None:
        unfolded = self.unfolded(type)
        if not isinstance(unfolded, ast.TypeUnion) or len(within) > _DEEPEST:
            found[type] = None
        elif type not in within:
            within.add(type)
            for member in unfolded.members:
                self._add_members(member, found, within)

    def _applied(self, type: Type) -> Type:
        """One step: the body of an alias with its arguments, or the union that distribution makes of it."""
        declared = self.declared.get(type.name) if isinstance(type, ast.TypeName) else None
        if declared is None or not isinstance(type, ast.TypeName):
            return type
        if len(type.args) != len(declared.type_params):
            return type
        if not type.args:
            return declared.type
        choices = self._choices(type.args)
        if len(choices) > 1:
            return ast.TypeUnion(0, 0, tuple(ast.TypeName(0, 0, type.name, args) for args in choices))
        return substituted(declared.type, _by_name(declared, choices[0]))

    def _choices(self, args: Sequence[Type]) -> list[tuple[Type, ...]]:
        """Every way to take one member of each argument; the arguments themselves when those are too many."""
        choices: list[tuple[Type, ...]] = [()]
        for arg in args:
            members = self.members(arg)
            if len(choices) * len(members) > _MOST_MEMBERS:
                return [tuple(args)]
            # An alias of anything but a union is passed on by its name.
            choices = [(*choice, member) for choice in choices for member in members]
        return choices


def _by_name(declared: ast.TypeDecl, args: Sequence[Type]) -> dict[str, Type]:
    return {param.name: arg for param, arg in zip(declared.type_params, args, strict=True)}


def substituted(type: Type, bound: Mapping[str, Type]) -> Type:
    """``type`` with each name in ``bound`` replaced by what it is bound to."""
    if not bound:
        return type
    if isinstance(type, ast.TypeName) and not type.args and type.name in bound:
        return bound[type.name]
    return rebuilt(type, lambda part: substituted(part, bound))
