"""How a template fails. Spec: 04 §23.7."""

from __future__ import annotations


class TemplateFault(Exception):
    """What is wrong; whoever knows the directive adds where."""


class TemplateError(Exception):
    """What is wrong at which directive; ``path`` is set where it is not the outermost template's."""

    def __init__(self, message: str, at: tuple[int, int], path: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.path = path

    def text(self, path: str | None) -> str:
        """The thrown text, for an outermost template from the file ``path`` (None: inline)."""
        where = self.path or path
        prefix = f"{where} " if where else ""
        line, column = self.at
        return f"{prefix}at {line}:{column}: {self.message}"
