"""Type nodes: the types of the language by name, how types are made, joined and taken apart. Spec: 03 §3, §5.

A type is a node of the syntax. What is made here stands nowhere: its offsets are 0.
"""

from __future__ import annotations

from _operator import is_  # `operator` costs a start a hundredth

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Type = ast.Node


def named(name: str, *args: Type) -> ast.TypeName:
    """`name`, or `name<args>`."""
    return ast.TypeName(0, 0, name, args)


INT = named("int")
FLOAT = named("float")
STRING = named("string")
BOOL = named("bool")
NIL = named("nil")
LIST = named("list")
DICT = named("dict")
CLOSURE = named("closure")
DURATION = named("duration")
RANGE = named("range")
ANY = named("any")
UNKNOWN = named("unknown")
NEVER = named("never")
#: A type argument that nothing determines; it is compatible with everything.
HOLE = named("_")

#: The lazy sequences, each with the other spelling of its name; they are covariant.
LAZY = {
    "iter": "iter",
    "Iter": "iter",
    "generator": "Generator",
    "Generator": "Generator",
    "stream": "Stream",
    "Stream": "Stream",
}
_BASES = {**LAZY, "pair": "Pair"}

#: Every name that means something without a declaration.
KNOWN = frozenset(_BASES) | frozenset(
    """
    int float string bool nil bytes list dict set closure duration range
    any unknown never _ Result Pair Schema
    """.split()
)


def base(name: str) -> str:
    """The one name of a type that has two spellings (`Iter`, `iter`)."""
    return _BASES.get(name, name)


def list_of(item: Type) -> ast.TypeName:
    return named("list", item)


def dict_of(key: Type, value: Type) -> ast.TypeName:
    return named("dict", key, value)


def iter_of(item: Type) -> ast.TypeName:
    return named("iter", item)


def pair_of(first: Type, second: Type) -> ast.TypeName:
    return named("Pair", first, second)


def result_of_types(value: Type, error: Type) -> ast.TypeName:
    return named("Result", value, error)


def schema_for(type: Type) -> ast.TypeName:
    """The type of a schema whose values are of ``type``."""
    return named("Schema", type)


def shape(fields: Mapping[str, Type], optional: Iterable[str] = ()) -> ast.TypeShape:
    """A shape with these fields in this order; those named in ``optional`` may be absent."""
    left_out = frozenset(optional)
    return ast.TypeShape(
        0, 0, tuple(ast.ShapeField(0, 0, name, name in left_out, type) for name, type in fields.items())
    )


def function(params: Iterable[Type], returns: Type) -> ast.TypeFn:
    return ast.TypeFn(0, 0, tuple(params), returns)


def literal(value: str | int) -> ast.TypeLiteral:
    return ast.TypeLiteral(0, 0, value)


def is_named(type: Type | None, name: str) -> bool:
    """Return True if a type is the bare name ``name``."""
    return isinstance(type, ast.TypeName) and type.name == name and not type.args


def rebuilt(type: Type, change: Callable[[Type], Type]) -> Type:
    """A type with ``change`` made to each of its direct parts; itself when that changes none."""
    if isinstance(type, ast.TypeName):
        args = tuple(map(change, type.args)) if type.args else ()
        return type if _same(args, type.args) else ast.TypeName(type.start, type.end, type.name, args)
    if isinstance(type, ast.TypeUnion):
        members = tuple(map(change, type.members))
        return type if _same(members, type.members) else ast.TypeUnion(type.start, type.end, flat(members))
    if isinstance(type, ast.TypeShape):
        fields = tuple(_rebuilt_field(field, change) for field in type.fields)
        return type if _same(fields, type.fields) else ast.TypeShape(type.start, type.end, fields)
    if isinstance(type, ast.TypeFn):
        params, returns = tuple(map(change, type.params)), change(type.returns)
        if returns is type.returns and _same(params, type.params):
            return type
        return ast.TypeFn(type.start, type.end, params, returns)
    return type


def flat(types: Iterable[Type]) -> tuple[Type, ...]:
    """The types with unions replaced by their members: no union is a member of another."""
    members: list[Type] = []
    for type in types:
        members += flat(type.members) if isinstance(type, ast.TypeUnion) else (type,)
    return tuple(members)


def _rebuilt_field(field: ast.ShapeField, change: Callable[[Type], Type]) -> ast.ShapeField:
    type = change(field.type)
    if type is field.type:
        return field
    return ast.ShapeField(field.start, field.end, field.name, field.optional, type)


def _same(new: Sequence[Type], old: Sequence[Type]) -> bool:
    return all(map(is_, new, old))


def shown(type: Type) -> str:
    """A type as messages show it: as it was written, but for the second names of lazy sequences."""
    from harnpy.syntax.print_literals import type_text

    return type_text(_spelled(type))


def _spelled(type: Type) -> Type:
    type = rebuilt(type, _spelled)
    if isinstance(type, ast.TypeName) and type.args and type.name in LAZY:
        return named(LAZY[type.name], *type.args)
    return type


def union(types: Iterable[Type]) -> Type:
    """The distinct ones among ``types`` in their order, unions by their members; `never` when there is none.

    A single one is that type.
    """
    members = dict.fromkeys(flat(types))
    members.pop(NEVER, None)
    if len(members) == 1:
        return next(iter(members))
    return ast.TypeUnion(0, 0, tuple(members)) if members else NEVER


def without(type: Type, member: Type) -> Type:
    """A union without one of its members; any other type as it is, but `never` when it is that member."""
    if type == member:
        return NEVER
    if isinstance(type, ast.TypeUnion) and member in type.members:
        return union(part for part in type.members if part != member)
    return type


# What is inside values: items, entries, fields. Spec: 03 §5.
#
# A part of type `any` has no type: it may be used freely. Aliases are not unfolded here.


def element(type: Type | None) -> Type | None:
    """The type of a loop's variable that runs over values of ``type``."""
    if not isinstance(type, ast.TypeName):
        return None
    if type.name == "string":
        return STRING
    if type.name == "range":
        return INT
    if (type.name == "list" or type.name in LAZY) and len(type.args) == 1:
        return known(type.args[0])
    return None


def pair(type: Type | None) -> tuple[Type | None, Type | None]:
    """The types of ``(a, b)`` in a loop over values of ``type``."""
    item = element(type)
    return field(item, "first"), field(item, "second")


def field(type: Type | None, name: str) -> Type | None:
    """The type of ``value.name``: of a field of a shape, or a part of a pair."""
    if isinstance(type, ast.TypeShape):
        return next((known(field.type) for field in type.fields if field.name == name), None)
    if name not in ("first", "second") or not isinstance(type, ast.TypeName):
        return None
    return known(type.args[name == "second"]) if type.name == "Pair" and len(type.args) == 2 else None


def item(type: Type | None, index: ast.Node) -> Type | None:
    """The type of ``value[index]``."""
    if isinstance(type, ast.TypeShape):
        return field(type, index.value) if isinstance(index, ast.Str) else None
    if not isinstance(type, ast.TypeName):
        return None
    if type.name == "string":
        return STRING
    if type.name == "list" and len(type.args) == 1:
        return known(type.args[0])
    if type.name == "dict" and len(type.args) == 2:
        return known(type.args[1])
    return None


def part(type: Type | None) -> Type | None:
    """The type of ``value[a:b]``."""
    return type if isinstance(type, ast.TypeName) and type.name in ("list", "string") else None


def known(type: Type) -> Type | None:
    """A type, or None for `any` and `_`."""
    return None if is_named(type, "any") or is_named(type, "_") else type
