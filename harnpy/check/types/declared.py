"""The types that a file declares and imports, and what the names of its aliases stand for.

Declarations at file level and directly inside pipelines are collected before anything is checked; those in
the body of a function hold from where they stand on, in a `Declared` of their own (`inner`).
Spec: 03 §3.2, §3.3.
"""

from __future__ import annotations

from harnpy.check.types.type_nodes import ANY, KNOWN, named, rebuilt
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set
    from typing import Any, Protocol

    from harnpy.check.types.type_nodes import Type

    class Questions(Protocol):
        """See `Types`, which has all of these."""

        declared: Declared
        aliases: Aliases

        def fits(self, actual: Type, expected: Type, params: Set[str] = ..., /) -> bool: ...
        def unfolded(self, type: Type, /) -> Type: ...
        def members(self, type: Type, /) -> tuple[Type, ...]: ...
        def variances(self, name: str, count: int, /) -> tuple[str, ...]: ...
        def shape_of(self, type: ast.TypeName, /) -> ast.TypeShape | None: ...
        def unsatisfied(self, type: Type, interface: str, args: Sequence[Type] = ..., /) -> str | None: ...

# What the names of type aliases stand for. Spec: 03 §3.3.
#
# An applied alias takes its arguments by substitution, and distributes over those that are unions:
# `Box<A | B>` is `Box<A> | Box<B>`. An alias inside itself stays a name.


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


#: A declaration that has a name, type parameters and, perhaps, variances.
Generic = ast.StructDecl | ast.EnumDecl | ast.TypeDecl | ast.InterfaceDecl


def _payload(name: str, type: str) -> ast.Param:
    return ast.Param(0, 0, name, named(type), None, False)


#: `enum Result<out T, out E> { Ok(value: T), Err(error: E) }`.
RESULT = ast.EnumDecl(
    0,
    0,
    (),
    False,
    "Result",
    (ast.TypeParam(0, 0, "T", "out"), ast.TypeParam(0, 0, "E", "out")),
    (
        ast.Variant(0, 0, "Ok", (_payload("value", "T"),)),
        ast.Variant(0, 0, "Err", (_payload("error", "E"),)),
    ),
)


class Declared:
    """``structs``, ``enums``, ``aliases``, ``interfaces`` by name; ``impls`` by the name of their type.

    ``foreign`` are names of imported types: of their `impl` nothing is known. ``open``: there may be others,
    since not all that the imports bring is known; a name that isn't declared is then read as `any`.
    """

    __slots__ = ("aliases", "enums", "foreign", "impls", "interfaces", "open", "structs")

    def __init__(self) -> None:
        self.structs: dict[str, ast.StructDecl] = {}
        self.enums: dict[str, ast.EnumDecl] = {"Result": RESULT}
        self.aliases: dict[str, ast.TypeDecl] = {}
        self.interfaces: dict[str, ast.InterfaceDecl] = {}
        self.impls: dict[str, dict[str, ast.FnDecl]] = {}
        self.foreign: set[str] = set()
        self.open = False

    def enter(self, node: ast.Node) -> None:
        """Enter a declaration; it takes the place of what had its name. Anything else is passed over."""
        if isinstance(node, ast.ImplDecl):
            self.impls[node.name] = {method.name: method for method in node.methods}
        elif isinstance(node, Generic):
            for table in (self.structs, self.enums, self.aliases, self.interfaces):
                table.pop(node.name, None)
            self.foreign.discard(node.name)
            if isinstance(node, ast.StructDecl):
                self.structs[node.name] = node
            elif isinstance(node, ast.EnumDecl):
                self.enums[node.name] = node
            elif isinstance(node, ast.TypeDecl):
                self.aliases[node.name] = node
            else:
                self.interfaces[node.name] = node

    def enter_imported(self, types: Mapping[str, ast.Node]) -> None:
        """Enter what the imports bring, before the file's own declarations.

        A name that they use and that isn't imported along with them means nothing here: it is read as `any`.
        """
        known = KNOWN | types.keys()
        for node in types.values():
            self.enter(_freed(node, known))
        self.foreign.update(types)

    def inner(self, nodes: Iterable[ast.Node]) -> Declared:
        """Return what is declared inside a body with these statements; itself when they declare no type."""
        declarations = [node for node in nodes if isinstance(node, ast.ImplDecl | Generic)]
        if not declarations:
            return self
        inner = Declared()
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(inner, name, value if type(value) is bool else value.copy())
        for node in declarations:
            inner.enter(node)
        return inner

    def is_open(self, name: str) -> bool:
        """Return True if ``name`` may be a type that nothing is known of."""
        return self.open and name not in KNOWN and self.generic(name) is None

    def generic(self, name: str) -> Generic | None:
        """The declaration of a name, whatever its kind."""
        return (
            self.structs.get(name)
            or self.enums.get(name)
            or self.aliases.get(name)
            or self.interfaces.get(name)
        )


def _freed(value: Any, known: Set[str]) -> Any:
    """A declaration, or a part of one, in which every type whose name isn't ``known`` is `any`."""
    if type(value) is tuple:
        return tuple([_freed(item, known) for item in value])
    if not isinstance(value, ast.Node):
        return value
    if isinstance(value, ast.TypeName) and value.name not in known:
        return ANY
    if isinstance(value, Generic | ast.MethodSig):
        known = known | {param.name for param in value.type_params}
    if isinstance(value, ast.InterfaceDecl):
        known = known | {member.name for member in value.members if isinstance(member, ast.AssocType)}
    parts = [_freed(getattr(value, name), known) for name in value.__slots__]
    return type(value)(value.start, value.end, *parts)
