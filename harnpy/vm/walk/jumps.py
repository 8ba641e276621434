"""What leaves a block early. These pass through Harn's `catch`, which catches failures only. Spec: 02 §11."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Jump(BaseException):
    """Unwinds up to the loop or function that it leaves; `finally` and `defer` run on the way."""


class BreakLoop(Jump):
    """`break`"""


class ContinueLoop(Jump):
    """`continue`"""


class Return(Jump):
    """`return`, or a `?` that met an `Err`."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value
