"""Being asked to stop, by SIGINT or SIGTERM, with something left to finish first."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Stopping(Protocol):
        def before(self, begin: Callable[[Callable[[], None]], None], seconds: float) -> Callable[[], None]:
            """Have ``begin(done)`` called once the process is asked to stop.

            It then stops after ``done()`` was called, or when ``seconds`` are over. ``begin`` is called
            between any two instructions of the main thread, and must return at once. Returns a function
            that ends this.
            """


class NeverAsked:
    """The process is the embedder's, and so are its signals."""

    def before(self, begin: Callable[[Callable[[], None]], None], seconds: float) -> Callable[[], None]:
        return lambda: None
