"""How deep the containers of a value are nested. Spec: 04 §11.1, §11.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: As in JSON.
DEEPEST = 128
TOO_DEEP = "recursion limit exceeded"


def list_items(value: Any) -> list[Any] | None:
    """Return the items of a list, None for anything else."""
    return value if isinstance(value, list) else None


def refuse_deep(value: Any, items: Callable[[Any], list[Any] | None] = list_items) -> None:
    """Raise ValueError for containers in more than `DEEPEST` levels; ``items``: those of a list or set."""

    level = [value]
    for _ in range(DEEPEST):
        inner = {id(item): item for outer in level for item in _parts(outer, items)}
        level = [item for item in inner.values() if isinstance(item, dict) or items(item) is not None]
        if not level:
            return
    raise ValueError(TOO_DEEP)


def _parts(container: Any, items: Callable[[Any], list[Any] | None]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else items(container) or ()
