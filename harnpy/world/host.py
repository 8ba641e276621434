"""The host: what the Python program that embeds a Vm offers to Harn programs. By default, nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    class ToolBridge(Protocol):
        """Tools that the embedder runs, for `host_tool_list` and `host_tool_call`."""

        def list(self) -> list[dict[str, Any]]: ...

        def call(self, name: str, arguments: dict[str, Any]) -> Any: ...


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
