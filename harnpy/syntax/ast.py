"""The typed syntax tree: one small immutable class for each construct. Spec: 01 §6.

Plain slotted classes, no dataclasses: this module is on the start-up path of a cold run.

Every node carries ``start`` and ``end``, offsets (in characters) into the source text. Everything else is a
field, which its class annotates in source order and has as a slot. A field that holds several things is a
tuple. Two nodes are equal when they have the same shape, wherever they stand: positions take no part in
``==``.
"""

from __future__ import annotations

import sys
from itertools import repeat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


class NodeType(type):
    """A class of nodes: the fields that it annotates are its slots."""

    def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> NodeType:
        space["__slots__"] = tuple(space.get("__annotations__", ()))
        return super().__new__(cls, name, bases, space)


class Node(metaclass=NodeType):
    """A piece of syntax at ``source[start:end]``."""

    start: int
    end: int

    if TYPE_CHECKING:
        __slots__: tuple[str, ...]

    def __init__(self, start: int, end: int, *values: Any) -> None:
        put = object.__setattr__
        put(self, "start", start)
        put(self, "end", end)
        for name, value in zip(self.__slots__, values, strict=True):
            put(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        # No recursion: a sum of twenty thousand terms is a tree that deep.
        pairs: list[tuple[Any, Any]] = [(self, other)]
        for one, two in pairs:
            for name in one.__slots__:
                mine, theirs = getattr(one, name), getattr(two, name)
                if mine is not theirs and not _may_equal(mine, theirs, pairs):
                    return False
        return True

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.__slots__)))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"

    def children(self) -> list[Node]:
        """Return the nodes directly below this one, in source order."""
        children: list[Node] = []
        for name in self.__slots__:
            value = getattr(self, name)
            kind = type(value)
            if type(kind) is NodeType:  # half as long as `isinstance`, which asks the metaclass
                children.append(value)
            elif kind is tuple:
                children += [item for item in value if type(type(item)) is NodeType]
        return children


def _may_equal(mine: Any, theirs: Any, pairs: list[tuple[Any, Any]]) -> bool:
    """Return True if two fields are equal, if the nodes in them are, which are added to ``pairs``."""
    if isinstance(mine, Node):
        pairs.append((mine, theirs))
        return type(mine) is type(theirs)
    if type(mine) is tuple and type(theirs) is tuple:
        return len(mine) == len(theirs) and all(map(_may_equal, mine, theirs, repeat(pairs)))
    return bool(mine == theirs)


def walk(node: Node, closed: tuple[type[Node], ...] = ()) -> Iterator[Node]:
    """Yield ``node`` and all below it, each before its children; nothing inside of ``closed`` classes.

    No recursion: a sum of twenty thousand terms is a tree that deep.
    """
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        if not isinstance(top, closed):
            stack += top.children()[::-1]


class NodeTable(dict):  # type: ignore[type-arg]
    """What is done with each class of node: functions, or their places in ``package``, ``"module.function"``.

    A module is loaded for the first node that needs it: a short program, which needs few of them, starts
    sooner. A class without an entry has None.
    """

    def __init__(self, package: str, entries: Mapping[type[Node], Any]) -> None:
        super().__init__()
        self.package = package
        self.entries = entries

    def with_entries(self, more: Mapping[type[Node], Any]) -> NodeTable:
        """Return a table like this one in which other things are done with some classes."""
        return NodeTable(self.package, {**self.entries, **more})

    def __missing__(self, kind: type[Node]) -> Any:
        entry = self.entries.get(kind)
        if type(entry) is str:
            module, _, name = entry.rpartition(".")
            module = f"{self.package}.{module}"
            __import__(module)
            entry = getattr(sys.modules[module], name)
        self[kind] = entry
        return entry


class Block(Node):
    """``{ statements }``; an expression used as a statement is one of them."""

    statements: tuple[Node, ...]


class Param(Node):
    """``name: type = default``, or ``...name`` when ``rest``."""

    name: str
    type: Node | None
    default: Node | None
    rest: bool


# Expressions.


class Name(Node):
    name: str


class Int(Node):
    value: int


class Float(Node):
    value: float


class Str(Node):
    """A string without interpolation, escapes and dedent done; ``raw`` for ``r"…"``."""

    value: str
    raw: bool


class Interp(Node):
    """``"a${x}b"``: ``parts`` are `Str` nodes and expressions, dedent already done."""

    parts: tuple[Node, ...]


class Bool(Node):
    value: bool


class Nil(Node):
    """``nil``."""


class Duration(Node):
    """A literal such as ``5s``, in milliseconds."""

    ms: int


class List(Node):
    """Items are expressions or `Spread`."""

    items: tuple[Node, ...]


class DictEntry(Node):
    """``key`` is a Str for written keys, any other expression for ``[computed]`` ones."""

    key: Node
    value: Node
    computed: bool


class Dict(Node):
    """Entries are `DictEntry` or `Spread`."""

    entries: tuple[Node, ...]


class StructLit(Node):
    name: str
    entries: tuple[Node, ...]


class Spread(Node):
    value: Node


class Closure(Node):
    """``{ params -> statements }``."""

    params: tuple[Param, ...]
    body: Block


class FnExpr(Node):
    """``fn(params) { … }``."""

    params: tuple[Param, ...]
    body: Block


class Unary(Node):
    """``op`` is ``!`` or ``-``."""

    op: str
    operand: Node


class Binary(Node):
    """``op``: ``+ - * / % ** == != < > <= >= && || ?? in`` or ``not in``.

    ``|`` too: an or-pattern where none is allowed is a structure error, not a syntax error.
    """

    op: str
    left: Node
    right: Node


class Ternary(Node):
    cond: Node
    then: Node
    otherwise: Node


class RangeTo(Node):
    first: Node
    last: Node
    exclusive: bool


class Pipe(Node):
    """``left |> right``."""

    left: Node
    right: Node


class Call(Node):
    """``name(args)`` or ``name<T>(args)``; a call always names its callee (01 §7.4)."""

    name: str
    type_args: tuple[Node, ...]
    args: tuple[Node, ...]


class MethodCall(Node):
    object: Node
    name: str
    args: tuple[Node, ...]
    optional: bool


class Member(Node):
    object: Node
    name: str
    optional: bool


class Index(Node):
    object: Node
    index: Node
    optional: bool


class Slice(Node):
    object: Node
    first: Node | None
    last: Node | None


class Propagate(Node):
    """``value?``."""

    value: Node


# Expressions with blocks.


class If(Node):
    """``otherwise`` is a Block, another If (``else if``), or None."""

    cond: Node
    then: Block
    otherwise: Node | None


class Arm(Node):
    """``p1 | p2 if guard -> { body }``; patterns are expressions, given a meaning by 01 §7.7."""

    patterns: tuple[Node, ...]
    guard: Node | None
    body: Block


class Match(Node):
    value: Node
    arms: tuple[Arm, ...]


class Catch(Node):
    """``catch (name: type) { body }``; both are optional."""

    name: str | None
    type: Node | None
    body: Block


class Try(Node):
    body: Block
    catch: Catch | None
    finally_: Block | None


class TryStar(Node):
    value: Node


class Retry(Node):
    count: Node
    body: Block


class Deadline(Node):
    duration: Node
    body: Block


class Spawn(Node):
    body: Block


class Parallel(Node):
    """``kind``: ``"count"``, ``"each"`` or ``"settle"``; ``stream`` only with ``each``."""

    kind: str
    source: Node
    max_concurrent: Node | None
    param: str | None
    body: Block
    stream: bool


# Statements.


class Let(Node):
    """``let`` (or ``var`` when ``mutable``) ``target: type = value``."""

    target: Node
    type: Node | None
    value: Node
    mutable: bool


class Assign(Node):
    """``target op value``; ``op`` is ``=`` or a compound such as ``+=``; target: Name, Member, Index."""

    target: Node
    op: str
    value: Node


class For(Node):
    pattern: Node
    iterable: Node
    body: Block


class While(Node):
    cond: Node
    body: Block


class Return(Node):
    value: Node | None


class Throw(Node):
    value: Node


class Yield(Node):
    value: Node | None


class Emit(Node):
    value: Node


class Break(Node):
    """``break``."""


class Continue(Node):
    """``continue``."""


class Guard(Node):
    cond: Node
    otherwise: Block


class Require(Node):
    cond: Node
    message: Node | None


class Defer(Node):
    body: Block


class Mutex(Node):
    body: Block


class SelectCase(Node):
    """``kind`` is ``"receive"`` (``name from source``), ``"timeout"`` (``source``) or ``"default"``."""

    kind: str
    name: str | None
    source: Node | None
    body: Block


class Select(Node):
    cases: tuple[SelectCase, ...]


# Patterns of `let`, `var` and `for`.


class NamePattern(Node):
    """A plain target; ``_`` discards."""

    name: str


class PatternEntry(Node):
    """One entry of a dict pattern (``key: name = default``) or list pattern (``key`` is None)."""

    key: str | None
    name: str
    default: Node | None


class DictPattern(Node):
    entries: tuple[PatternEntry, ...]
    rest: str | None


class ListPattern(Node):
    entries: tuple[PatternEntry, ...]
    rest: str | None


class PairPattern(Node):
    """``(first, second)``, only in a ``for`` header."""

    first: str
    second: str


def bound_places(pattern: Node) -> list[tuple[Node, str]]:
    """The names of a `let` or `for` pattern in order, `_` too, each with the node that has it."""
    match pattern:
        case NamePattern(name=name):
            return [(pattern, name)]
        case PairPattern(first=first, second=second):
            return [(pattern, first), (pattern, second)]
        case DictPattern(entries=entries, rest=rest) | ListPattern(entries=entries, rest=rest):
            found: list[tuple[Node, str]] = [(entry, entry.name) for entry in entries]
            return [*found, (pattern, rest)] if rest else found
    return []


def bound_names(pattern: Node) -> list[str]:
    """The names that a `let` or `for` pattern binds, in order; `_` binds nothing."""
    return [name for _, name in bound_places(pattern) if name != "_"]


# Types, as they are written.


class TypeName(Node):
    """``int``, ``list<T>`` (also written ``[T]``), ``nil``; ``true`` and ``false`` read as ``bool``."""

    name: str
    args: tuple[Node, ...]


class TypeUnion(Node):
    members: tuple[Node, ...]


class TypeLiteral(Node):
    value: str | int


class ShapeField(Node):
    name: str
    optional: bool
    type: Node


class TypeShape(Node):
    fields: tuple[ShapeField, ...]


class TypeFn(Node):
    params: tuple[Node, ...]
    returns: Node


# Files and what they declare: functions, pipelines, tools, types, imports.


class Program(Node):
    """A whole file: ``items`` are declarations and statements in source order."""

    items: tuple[Node, ...]


class Import(Node):
    """``import "path"`` (``names`` is None) or ``import { names } from "path"``."""

    names: tuple[str, ...] | None
    path: str
    pub: bool


class AttrArg(Node):
    """``value`` or ``name: value``; the value is a literal node, a `Name` or a `List` of such."""

    name: str | None
    value: Node


class Attribute(Node):
    name: str
    args: tuple[AttrArg, ...]


class TypeParam(Node):
    """``variance`` is ``""``, ``"in"`` or ``"out"``."""

    name: str
    variance: str


class Pipeline(Node):
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    params: tuple[str, ...]
    returns: Node | None
    extends: str | None
    body: Block


class Override(Node):
    name: str
    params: tuple[str, ...]
    body: Block


class FnDecl(Node):
    """``fn`` or ``gen fn`` with a name. ``where`` holds (type parameter, bound) pairs."""

    attrs: tuple[Attribute, ...]
    pub: bool
    gen: bool
    name: str
    type_params: tuple[TypeParam, ...]
    params: tuple[Param, ...]
    returns: Node | None
    where: tuple[tuple[str, str], ...]
    body: Block


class ToolDecl(Node):
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    params: tuple[Param, ...]
    returns: Node | None
    description: str | None
    body: Block


class SkillField(Node):
    name: str
    value: Node


class SkillDecl(Node):
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    fields: tuple[SkillField, ...]


class EvalPack(Node):
    """``name`` is the binding's name (derived from the id when only an id is written)."""

    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    id: str | None
    fields: tuple[SkillField, ...]
    body: tuple[Node, ...]
    summarize: Block | None


class Variant(Node):
    name: str
    params: tuple[Param, ...]


class EnumDecl(Node):
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    type_params: tuple[TypeParam, ...]
    variants: tuple[Variant, ...]


class Field(Node):
    name: str
    optional: bool
    type: Node | None


class StructDecl(Node):
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    type_params: tuple[TypeParam, ...]
    fields: tuple[Field, ...]


class AssocType(Node):
    """``type Name = default`` inside an interface."""

    name: str
    type: Node | None


class MethodSig(Node):
    name: str
    type_params: tuple[TypeParam, ...]
    params: tuple[Param, ...]
    returns: Node | None


class InterfaceDecl(Node):
    attrs: tuple[Attribute, ...]
    name: str
    type_params: tuple[TypeParam, ...]
    members: tuple[Node, ...]


class ImplDecl(Node):
    attrs: tuple[Attribute, ...]
    name: str
    methods: tuple[FnDecl, ...]


class TypeDecl(Node):
    attrs: tuple[Attribute, ...]
    name: str
    type_params: tuple[TypeParam, ...]
    type: Node


# Trees as nested tuples, which marshal can write, and back.
#
# A node is ``(number of its class, start, end, field, …)``. No other tuple in a tree begins with an int.


_CLASSES = [
    value
    for value in list(globals().values())
    if isinstance(value, type) and issubclass(value, Node) and value is not Node
]
_NUMBERS = {cls: number for number, cls in enumerate(_CLASSES)}


def pack(value: Any) -> Any:
    """``value``, a node or a field of one, as plain data. Raises RecursionError on very deep trees."""
    number = _NUMBERS.get(type(value))
    if number is not None:
        fields = [pack(getattr(value, name)) for name in value.__slots__]
        return (number, value.start, value.end, *fields)
    return tuple([pack(item) for item in value]) if type(value) is tuple else value


def unpack(value: Any) -> Any:
    """The inverse of `pack`."""
    if type(value) is not tuple:
        return value
    items = [unpack(item) for item in value]
    return _CLASSES[items[0]](*items[1:]) if items and type(items[0]) is int else tuple(items)
