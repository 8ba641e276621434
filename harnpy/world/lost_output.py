"""What could not be written to a standard stream. Spec: 09 §1.3."""

from __future__ import annotations


class OutputLost(OSError):
    """Writing to ``stream`` failed; no program can catch this."""

    def __init__(self, stream: str, error: OSError) -> None:
        super().__init__(error.errno, error.strerror)
        self.stream = stream

    def __str__(self) -> str:
        return f"cannot write to {self.stream}: {self.strerror} (os error {self.errno})"
