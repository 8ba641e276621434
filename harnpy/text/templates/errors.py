"""How a template fails. Spec: 04 §23.7."""

from __future__ import annotations


class TemplateFault(Exception):
    """What is wrong, raised where the position isn't known."""


class TemplateError(Exception):
    """What is wrong, and at which directive. ``path`` is the included template's, None in the outermost."""

    def __init__(self, message: str, at: tuple[int, int], path: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.path = path

    def text(self, path: str | None) -> str:
        """Return the thrown text; ``path`` is the file of the outermost template (None: inline)."""
        where = self.path or path
        prefix = f"{where} " if where else ""
        line, column = self.at
        return f"{prefix}at {line}:{column}: {self.message}"
