"""How a text can fail to be a program. Spec: 01 §9, §10."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.diagnostic import Diagnostic


class SourceFault(Exception):
    """A program was refused before it ran.

    ``message`` is the message form of the first error, ``diagnostics`` holds all of them in source
    order, ``source`` and ``file`` are what they refer to.
    """

    def __init__(self, message: str, diagnostics: list[Diagnostic], source: str, file: str) -> None:
        super().__init__(message)
        self.message = message
        self.diagnostics = diagnostics
        self.source = source
        self.file = file

    def render(self, colour: bool = False) -> str:
        """The diagnostic form of every error, as the command line prints it."""
        from harnpy.syntax.rendering import rendered
        from harnpy.syntax.span import Lines

        lines = Lines(self.source)
        return "".join(rendered(found, lines, self.file, colour=colour) for found in self.diagnostics)


class SyntaxFault(SourceFault):
    """The text does not lex or parse: ``Expected X, got T at L:C`` and its kin (01 §9.1)."""


class LexFault(SyntaxFault):
    """Not even tokens: reported alone."""


class CompileFault(SourceFault):
    """The tree breaks a rule of structure: ``Compile error at line N: TEXT`` (01 §10)."""

    def __init__(self, line: int, text: str, diagnostics: list[Diagnostic], source: str, file: str) -> None:
        super().__init__(f"Compile error at line {line}: {text}", diagnostics, source, file)
        self.line = line
        self.text = text
