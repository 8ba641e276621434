"""The host: what the Python program that embeds a Vm offers to Harn programs.

These are operations and tools, people who can be asked, and whether the process is asked to stop. By default
there is nothing: no operation, nobody to ask, and signals are the embedder's.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    class ToolBridge(Protocol):
        """Tools that the embedder runs, for `host_tool_list` and `host_tool_call`."""

        def list(self) -> list[dict[str, Any]]: ...

        def call(self, name: str, arguments: dict[str, Any]) -> Any: ...

    class Stopping(Protocol):
        def before(self, begin: Callable[[Callable[[], None]], None], seconds: float) -> Callable[[], None]:
            """Have ``begin(done)`` called once the process is asked to stop.

            It then stops after ``done()`` was called, or when ``seconds`` are over. ``begin`` is called
            between any two instructions of the main thread, and must return at once. Returns a function
            that ends this.
            """


class Host:
    """``operations`` are those of `host_call` by ``"capability.operation"``; ``bridge`` runs tools.

    Both may return coroutines.
    """

    def __init__(
        self,
        operations: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
        bridge: ToolBridge | None = None,
    ) -> None:
        self.operations = operations or {}
        self.bridge = bridge


class People:
    """``ask(request)`` puts a request to a person and returns the response, or a coroutine that does
    (docs/embedding.md). It is None when nobody is there, as in the real world by default."""

    def __init__(self, ask: Callable[[dict[str, Any]], Any] | None = None) -> None:
        self.ask = ask


class NeverAsked:
    """The process is the embedder's, and so are its signals."""

    def before(self, begin: Callable[[Callable[[], None]], None], seconds: float) -> Callable[[], None]:
        return lambda: None
