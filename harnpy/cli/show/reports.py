"""What `check` and `lint` say of files, for people or in a form that a tool reads. Spec: 09 §4.6."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from harnpy.cli.console import has_colour
from harnpy.cli.show import error_text
from harnpy.cli.show.github_commands import workflow_command
from harnpy.cli.show.json_diagnostics import line_of_json
from harnpy.syntax.errors import SourceFault
from harnpy.syntax.rendering import rendered
from harnpy.syntax.span import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.syntax.diagnostic import Diagnostic


class Report:
    """The form for people: diagnostics on stderr, what is said of clean files on stdout."""

    def add(self, file: str, source: str, found: Sequence[Diagnostic]) -> None:
        """Report what was found in a file."""
        lines, colour = Lines(source), has_colour(sys.stderr)
        sys.stderr.write("".join(rendered(each, lines, file, colour=colour) for each in found))

    def say(self, line: str) -> None:
        """Tell people what no tool wants to know: ``a.harn: ok``."""
        click.echo(line)

    def fail(self, error: SourceFault | OSError) -> None:
        """Report a file that is no program, or can't be read."""
        if isinstance(error, SourceFault):
            self.add(error.file, error.source, error.diagnostics)
        else:
            sys.stderr.write(error_text.render(error))

    def end(self) -> None:
        """All files have been reported."""


class _Silent(Report):
    """The forms for tools: all on stdout, and nothing of what is clean."""

    def say(self, line: str) -> None:
        """No tool wants to know."""


class _JsonLines(_Silent):
    def add(self, file: str, source: str, found: Sequence[Diagnostic]) -> None:
        lines = Lines(source)
        for each in found:
            click.echo(line_of_json(each, lines, file))


class _Github(_Silent):
    def add(self, file: str, source: str, found: Sequence[Diagnostic]) -> None:
        lines = Lines(source)
        for each in found:
            click.echo(workflow_command(each, lines, file))


class _Sarif(_Silent):
    def __init__(self) -> None:
        from harnpy.cli.show.sarif import SarifLog

        self._log = SarifLog()

    def add(self, file: str, source: str, found: Sequence[Diagnostic]) -> None:
        self._log.add(file, Lines(source), found)

    def end(self) -> None:
        click.echo(self._log.text())


_FORMS: dict[str | None, type[Report]] = {
    None: Report,
    "json": _JsonLines,
    "sarif": _Sarif,
    "github": _Github,
}


def report_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--json`, `--sarif` and `--github`, which are its parameter ``form`` for `report`."""
    helps = {
        "github": "Print annotations for a GitHub workflow.",
        "sarif": "Print one SARIF 2.1.0 log.",
        "json": "Print a JSON object per diagnostic and line.",
    }
    for form, help in helps.items():
        command = click.option(f"--{form}", "form", flag_value=form, help=help)(command)
    return command


def report(form: str | None) -> Report:
    """The report in a form of `report_options`; None is for people."""
    return _FORMS[form]()
