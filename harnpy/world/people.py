"""People: whoever can be asked while a program runs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class People:
    """``ask(request)`` puts a request to a person and returns the response, or a coroutine that does
    (docs/embedding.md). It is None when nobody is there, as in the real world by default."""

    def __init__(self, ask: Callable[[dict[str, Any]], Any] | None = None) -> None:
        self.ask = ask
