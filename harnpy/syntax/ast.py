"""The typed syntax tree: one small immutable class a construct. Spec: 01 §6.

Every node carries ``start`` and ``end``, offsets (in characters) into the source text; all else is
in ``__slots__``, in source order. A field that holds several things is a tuple. Two nodes are equal
when they have the same shape, wherever they stand: positions take no part in ``==``.

Plain slotted classes, no dataclasses: this module is on the start-up path of a cold run.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Node:
    """A piece of syntax at ``source[start:end]``."""

    __slots__ = ("end", "start")
    start: int
    end: int

    def __init__(self, start: int, end: int, *values: Any) -> None:
        put = object.__setattr__
        put(self, "start", start)
        put(self, "end", end)
        for name, value in zip(self.__slots__, values, strict=True):
            put(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.__slots__)))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"

    def children(self) -> Iterator[Node]:
        """The nodes directly below this one, in source order."""
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, Node):
                yield value
            elif isinstance(value, tuple):
                for item in value:
                    if isinstance(item, Node):
                        yield item


# --- program and declarations ---------------------------------------------------------------------


class Program(Node):
    """A whole file: ``items`` are declarations and statements in source order."""

    __slots__ = ("items",)
    items: tuple[Node, ...]


class Block(Node):
    """``{ statements }``; an expression used as a statement stands in it as itself."""

    __slots__ = ("statements",)
    statements: tuple[Node, ...]


class Import(Node):
    """``import "path"`` (``names`` is None) or ``import { names } from "path"``."""

    __slots__ = ("names", "path", "pub")
    names: tuple[str, ...] | None
    path: str
    pub: bool


class AttrArg(Node):
    """``value`` or ``name: value``; the value is a literal node, a `Name` or a `List` of such."""

    __slots__ = ("name", "value")
    name: str | None
    value: Node


class Attribute(Node):
    __slots__ = ("name", "args")
    name: str
    args: tuple[AttrArg, ...]


class TypeParam(Node):
    """``variance`` is ``""``, ``"in"`` or ``"out"``."""

    __slots__ = ("name", "variance")
    name: str
    variance: str


class Param(Node):
    """``name: type = default``, or ``...name`` when ``rest``."""

    __slots__ = ("name", "type", "default", "rest")
    name: str
    type: Node | None
    default: Node | None
    rest: bool


class Pipeline(Node):
    __slots__ = ("attrs", "pub", "name", "params", "returns", "extends", "body")
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    params: tuple[str, ...]
    returns: Node | None
    extends: str | None
    body: Block


class Override(Node):
    __slots__ = ("name", "params", "body")
    name: str
    params: tuple[str, ...]
    body: Block


class FnDecl(Node):
    """``fn`` or ``gen fn`` with a name. ``where`` holds (type parameter, bound) pairs."""

    __slots__ = ("attrs", "pub", "gen", "name", "type_params", "params", "returns", "where", "body")
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
    __slots__ = ("attrs", "pub", "name", "params", "returns", "description", "body")
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    params: tuple[Param, ...]
    returns: Node | None
    description: str | None
    body: Block


class SkillField(Node):
    __slots__ = ("name", "value")
    name: str
    value: Node


class SkillDecl(Node):
    __slots__ = ("attrs", "pub", "name", "fields")
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    fields: tuple[SkillField, ...]


class EvalPack(Node):
    """``name`` is the binding's name (derived from the id when only an id is written)."""

    __slots__ = ("attrs", "pub", "name", "id", "fields", "body", "summarize")
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    id: str | None
    fields: tuple[SkillField, ...]
    body: tuple[Node, ...]
    summarize: Block | None


class Variant(Node):
    __slots__ = ("name", "params")
    name: str
    params: tuple[Param, ...]


class EnumDecl(Node):
    __slots__ = ("attrs", "pub", "name", "type_params", "variants")
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    type_params: tuple[TypeParam, ...]
    variants: tuple[Variant, ...]


class Field(Node):
    __slots__ = ("name", "optional", "type")
    name: str
    optional: bool
    type: Node | None


class StructDecl(Node):
    __slots__ = ("attrs", "pub", "name", "type_params", "fields")
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    type_params: tuple[TypeParam, ...]
    fields: tuple[Field, ...]


class AssocType(Node):
    """``type Name = default`` inside an interface."""

    __slots__ = ("name", "type")
    name: str
    type: Node | None


class MethodSig(Node):
    __slots__ = ("name", "type_params", "params", "returns")
    name: str
    type_params: tuple[TypeParam, ...]
    params: tuple[Param, ...]
    returns: Node | None


class InterfaceDecl(Node):
    __slots__ = ("attrs", "name", "type_params", "members")
    attrs: tuple[Attribute, ...]
    name: str
    type_params: tuple[TypeParam, ...]
    members: tuple[Node, ...]


class ImplDecl(Node):
    __slots__ = ("attrs", "name", "methods")
    attrs: tuple[Attribute, ...]
    name: str
    methods: tuple[FnDecl, ...]


class TypeDecl(Node):
    __slots__ = ("attrs", "name", "type_params", "type")
    attrs: tuple[Attribute, ...]
    name: str
    type_params: tuple[TypeParam, ...]
    type: Node


# --- patterns of let, var and for -----------------------------------------------------------------


class NamePattern(Node):
    """A plain target; ``_`` discards."""

    __slots__ = ("name",)
    name: str


class PatternEntry(Node):
    """One entry of a dict pattern (``key: name = default``) or list pattern (``key`` is None)."""

    __slots__ = ("key", "name", "default")
    key: str | None
    name: str
    default: Node | None


class DictPattern(Node):
    __slots__ = ("entries", "rest")
    entries: tuple[PatternEntry, ...]
    rest: str | None


class ListPattern(Node):
    __slots__ = ("entries", "rest")
    entries: tuple[PatternEntry, ...]
    rest: str | None


class PairPattern(Node):
    """``(first, second)``, only in a ``for`` header."""

    __slots__ = ("first", "second")
    first: str
    second: str


# --- statements -----------------------------------------------------------------------------------


class Let(Node):
    """``let`` (or ``var`` when ``mutable``) ``target: type = value``."""

    __slots__ = ("target", "type", "value", "mutable")
    target: Node
    type: Node | None
    value: Node
    mutable: bool


class Assign(Node):
    """``target op value``; ``op`` is ``=`` or a compound such as ``+=``; target: Name, Member, Index."""

    __slots__ = ("target", "op", "value")
    target: Node
    op: str
    value: Node


class For(Node):
    __slots__ = ("pattern", "iterable", "body")
    pattern: Node
    iterable: Node
    body: Block


class While(Node):
    __slots__ = ("cond", "body")
    cond: Node
    body: Block


class Return(Node):
    __slots__ = ("value",)
    value: Node | None


class Throw(Node):
    __slots__ = ("value",)
    value: Node


class Yield(Node):
    __slots__ = ("value",)
    value: Node | None


class Emit(Node):
    __slots__ = ("value",)
    value: Node


class Break(Node):
    __slots__ = ()


class Continue(Node):
    __slots__ = ()


class Guard(Node):
    __slots__ = ("cond", "otherwise")
    cond: Node
    otherwise: Block


class Require(Node):
    __slots__ = ("cond", "message")
    cond: Node
    message: Node | None


class Defer(Node):
    __slots__ = ("body",)
    body: Block


class Mutex(Node):
    __slots__ = ("body",)
    body: Block


class SelectCase(Node):
    """``kind`` is ``"receive"`` (``name from source``), ``"timeout"`` (``source``) or ``"default"``."""

    __slots__ = ("kind", "name", "source", "body")
    kind: str
    name: str | None
    source: Node | None
    body: Block


class Select(Node):
    __slots__ = ("cases",)
    cases: tuple[SelectCase, ...]


# --- expressions with blocks ----------------------------------------------------------------------


class If(Node):
    """``otherwise`` is a Block, another If (``else if``), or None."""

    __slots__ = ("cond", "then", "otherwise")
    cond: Node
    then: Block
    otherwise: Node | None


class Arm(Node):
    """``p1 | p2 if guard -> { body }``; patterns are expressions, given a meaning by 01 §7.7."""

    __slots__ = ("patterns", "guard", "body")
    patterns: tuple[Node, ...]
    guard: Node | None
    body: Block


class Match(Node):
    __slots__ = ("value", "arms")
    value: Node
    arms: tuple[Arm, ...]


class Catch(Node):
    """``catch (name: type) { body }``; both are optional."""

    __slots__ = ("name", "type", "body")
    name: str | None
    type: Node | None
    body: Block


class Try(Node):
    __slots__ = ("body", "catch", "finally_")
    body: Block
    catch: Catch | None
    finally_: Block | None


class TryStar(Node):
    __slots__ = ("value",)
    value: Node


class Retry(Node):
    __slots__ = ("count", "body")
    count: Node
    body: Block


class Deadline(Node):
    __slots__ = ("duration", "body")
    duration: Node
    body: Block


class Spawn(Node):
    __slots__ = ("body",)
    body: Block


class Parallel(Node):
    """``kind``: ``"count"``, ``"each"`` or ``"settle"``; ``stream`` only with ``each``."""

    __slots__ = ("kind", "source", "max_concurrent", "param", "body", "stream")
    kind: str
    source: Node
    max_concurrent: Node | None
    param: str | None
    body: Block
    stream: bool


# --- expressions ----------------------------------------------------------------------------------


class Name(Node):
    __slots__ = ("name",)
    name: str


class Int(Node):
    __slots__ = ("value",)
    value: int


class Float(Node):
    __slots__ = ("value",)
    value: float


class Str(Node):
    """A string without interpolation, escapes and dedent done; ``raw`` for ``r"…"``."""

    __slots__ = ("value", "raw")
    value: str
    raw: bool


class Interp(Node):
    """``"a${x}b"``: ``parts`` are `Str` nodes and expressions, dedent already done."""

    __slots__ = ("parts",)
    parts: tuple[Node, ...]


class Bool(Node):
    __slots__ = ("value",)
    value: bool


class Nil(Node):
    __slots__ = ()


class Duration(Node):
    """A literal such as ``5s``, in milliseconds."""

    __slots__ = ("ms",)
    ms: int


class List(Node):
    """Items are expressions or `Spread`."""

    __slots__ = ("items",)
    items: tuple[Node, ...]


class DictEntry(Node):
    """``key`` is a Str for written keys, any other expression for ``[computed]`` ones."""

    __slots__ = ("key", "value", "computed")
    key: Node
    value: Node
    computed: bool


class Dict(Node):
    """Entries are `DictEntry` or `Spread`."""

    __slots__ = ("entries",)
    entries: tuple[Node, ...]


class StructLit(Node):
    __slots__ = ("name", "entries")
    name: str
    entries: tuple[Node, ...]


class Spread(Node):
    __slots__ = ("value",)
    value: Node


class Closure(Node):
    """``{ params -> statements }``."""

    __slots__ = ("params", "body")
    params: tuple[Param, ...]
    body: Block


class FnExpr(Node):
    """``fn(params) { … }``."""

    __slots__ = ("params", "body")
    params: tuple[Param, ...]
    body: Block


class Unary(Node):
    """``op`` is ``!`` or ``-``."""

    __slots__ = ("op", "operand")
    op: str
    operand: Node


class Binary(Node):
    """``op``: ``+ - * / % ** == != < > <= >= && || ?? in`` or ``not in``.

    ``|`` too: an or-pattern where none is allowed is a structure error, not a syntax error.
    """

    __slots__ = ("op", "left", "right")
    op: str
    left: Node
    right: Node


class Ternary(Node):
    __slots__ = ("cond", "then", "otherwise")
    cond: Node
    then: Node
    otherwise: Node


class RangeTo(Node):
    __slots__ = ("first", "last", "exclusive")
    first: Node
    last: Node
    exclusive: bool


class Pipe(Node):
    """``left |> right``."""

    __slots__ = ("left", "right")
    left: Node
    right: Node


class Call(Node):
    """``name(args)`` or ``name<T>(args)``; a call always names its callee (01 §7.4)."""

    __slots__ = ("name", "type_args", "args")
    name: str
    type_args: tuple[Node, ...]
    args: tuple[Node, ...]


class MethodCall(Node):
    __slots__ = ("object", "name", "args", "optional")
    object: Node
    name: str
    args: tuple[Node, ...]
    optional: bool


class Member(Node):
    __slots__ = ("object", "name", "optional")
    object: Node
    name: str
    optional: bool


class Index(Node):
    __slots__ = ("object", "index", "optional")
    object: Node
    index: Node
    optional: bool


class Slice(Node):
    __slots__ = ("object", "first", "last")
    object: Node
    first: Node | None
    last: Node | None


class Propagate(Node):
    """``value?``."""

    __slots__ = ("value",)
    value: Node


# --- types ----------------------------------------------------------------------------------------


class TypeName(Node):
    """``int``, ``list<T>`` (also written ``[T]``), ``nil``; ``true`` and ``false`` read as ``bool``."""

    __slots__ = ("name", "args")
    name: str
    args: tuple[Node, ...]


class TypeUnion(Node):
    __slots__ = ("members",)
    members: tuple[Node, ...]


class TypeLiteral(Node):
    __slots__ = ("value",)
    value: str | int


class ShapeField(Node):
    __slots__ = ("name", "optional", "type")
    name: str
    optional: bool
    type: Node


class TypeShape(Node):
    __slots__ = ("fields",)
    fields: tuple[ShapeField, ...]


class TypeFn(Node):
    __slots__ = ("params", "returns")
    params: tuple[Node, ...]
    returns: Node
