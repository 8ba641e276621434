"""Expressions."""

from __future__ import annotations

from harnpy.syntax.ast.node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.ast.node import Block, Param


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
