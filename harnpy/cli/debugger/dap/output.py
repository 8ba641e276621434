"""The program's output as events of the protocol. Spec: 09 §15.6."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnpy.cli.debugger.dap.wire import Wire


class Output(io.TextIOBase):
    """A text stream whose texts are ``output`` events; ``category`` is ``"stdout"`` or ``"stderr"``."""

    def __init__(self, wire: Wire, category: str) -> None:
        super().__init__()
        self._wire = wire
        self._category = category

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text:
            self._wire.event("output", {"category": self._category, "output": text})
        return len(text)
