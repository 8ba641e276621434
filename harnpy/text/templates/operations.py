"""What the engine must know of the values in a template; each language implements it for its own.

`None`, `bool`, `int`, `float`, `str`, `list` and `dict` stand for what they do in JSON.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Operations(Protocol):
        def truthy(self, value: Any) -> bool: ...

        def text(self, value: Any) -> str:
            """Return what a hole shows; the engine itself shows nothing for `None`."""

        def type_name(self, value: Any) -> str: ...

        def equal(self, a: Any, b: Any) -> bool: ...

        def compare(self, a: Any, b: Any) -> int:
            """Return a negative number, 0 or a positive one, for two numbers or two texts."""

        def items(self, value: Any) -> list[Any] | range | None:
            """Return what a list, a set or a range consists of; None for other values."""

        def json(self, value: Any, pretty: bool) -> str: ...

        def go_on(self, written: int) -> None:
            """Called again and again, with the characters so far; may raise.

            At every directive that is read, at every turn of a loop, every include, and between many nodes.
            """


def shown(operations: Operations, value: Any) -> str:
    """Return the text of a value, nothing for `None`."""
    return "" if value is None else operations.text(value)


def count(items: list[Any] | range) -> int:
    """Return how many items there are, also in a range too long for `len`."""
    return max(0, items.stop - items.start) if isinstance(items, range) else len(items)
