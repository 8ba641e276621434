"""`Looks`: what requests that are handled in one turn of the event loop need not look for one by one."""

from __future__ import annotations

from asyncio import get_running_loop
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Looks:
    """What was found in a turn of the loop, by its key.

    Nobody is shown what was no longer so when the request arrived: `clear` stands in the loop's queue behind
    everything that had arrived before the look, and before all that comes.
    """

    def __init__(self) -> None:
        self._found: dict[Any, Any] = {}

    def find(self, key: Any, look: Callable[[Any], Any]) -> Any:
        """Return what ``look(key)`` returns, of this turn. What it raises isn't kept."""
        found = self._found
        if key not in found:
            if not found:
                get_running_loop().call_soon(found.clear)
            found[key] = look(key)
        return found[key]
