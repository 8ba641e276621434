"""What a node is, and the nodes that several kinds of constructs share.

Every node carries ``start`` and ``end``, offsets (in characters) into the source text. All else are its
fields, which its class annotates in source order and has as slots. A field that holds several things is a
tuple. Two nodes are equal when they have the same shape, wherever they stand: positions take no part in
``==``.
"""

from __future__ import annotations

from itertools import repeat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
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


def _may_equal(mine: Any, theirs: Any, pairs: list[tuple[Any, Any]]) -> bool:
    """Whether two fields are equal, if the nodes in them are, which are added to ``pairs``."""
    if isinstance(mine, Node):
        pairs.append((mine, theirs))
        return type(mine) is type(theirs)
    if type(mine) is tuple and type(theirs) is tuple:
        return len(mine) == len(theirs) and all(map(_may_equal, mine, theirs, repeat(pairs)))
    return bool(mine == theirs)


class Block(Node):
    """``{ statements }``; an expression used as a statement is one of them."""

    statements: tuple[Node, ...]


class Param(Node):
    """``name: type = default``, or ``...name`` when ``rest``."""

    name: str
    type: Node | None
    default: Node | None
    rest: bool
