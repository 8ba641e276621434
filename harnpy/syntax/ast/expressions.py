"""Expressions."""

from __future__ import annotations

from harnpy.syntax.ast.node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.ast.node import Block, Param


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
