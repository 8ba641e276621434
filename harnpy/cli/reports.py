"""The reports of `check` and `lint`: for people, as JSON, as SARIF, as GitHub's workflow commands.

Spec: 09 §4.6.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from harnpy.check.explanations import Explanation, explanations
from harnpy.cli import console
from harnpy.cli.console import has_colour
from harnpy.formats.secrets.forms import hidden
from harnpy.formats.visible import visible
from harnpy.syntax.diagnostic import Diagnostic, Edit, Fix, Lines, Related, SourceFault, Span, rendered
from harnpy.version import __version__

# A diagnostic as data: what `--json` prints, a line each. Spec: 09 §4.6.


def line_of_json(found: Diagnostic, lines: Lines, file: str) -> str:
    """The diagnostic as a JSON object on one line."""
    return json.dumps(as_dict(found, lines, file), ensure_ascii=True)


def as_dict(found: Diagnostic, lines: Lines, file: str) -> dict[str, Any]:
    """The diagnostic with all it has; ``lines`` are those of ``file``."""
    fix = tellable(found.fix)
    return {
        "file": file,
        **(region(lines, found.span.start, found.span.end) if found.span else _NOWHERE),
        "severity": found.severity,
        "code": found.code,
        "message": found.message,
        "help": found.help,
        "notes": list(found.notes),
        "related": [_json_related(related, lines, file) for related in found.related],
        "fix": fix and {"safe": fix.safe, "edits": [_edit(edit, lines) for edit in fix.edits]},
    }


def tellable(fix: Fix | None) -> Fix | None:
    """A fix, unless its text repeats a secret of the source."""
    return None if fix is None or any(hidden(edit.text) != edit.text for edit in fix.edits) else fix


def region(lines: Lines, start: int, end: int) -> dict[str, int]:
    """Return the lines and columns of ``source[start:end]``, from 1; the end is the column behind it."""
    line, column = lines.locate(start)
    end_line, end_column = lines.locate(max(start, end))
    return {"line": line, "column": column, "end_line": end_line, "end_column": end_column}


_NOWHERE = dict.fromkeys(["line", "column", "end_line", "end_column"])


def _json_related(related: Related, lines: Lines, file: str) -> dict[str, Any]:
    own = lines if related.file is None else related.lines
    place = region(own, related.span.start, related.span.end) if own and related.span else _NOWHERE
    return {"file": related.file or file, **place, "message": related.message}


def _edit(edit: Edit, lines: Lines) -> dict[str, Any]:
    return {**region(lines, edit.start, edit.end), "text": edit.text}


# A diagnostic as a workflow command of GitHub, which shows it beside the line of a change. Spec: 09 §4.6.


_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
_IN_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES = {**_IN_DATA, ord(":"): "%3A", ord(","): "%2C"}


def workflow_command(found: Diagnostic, lines: Lines, file: str) -> str:
    """``::error file=a.harn,line=3,endLine=3,col=5,endColumn=8,title=CODE::MESSAGE`` and the help."""
    properties = {"file": file}
    if found.span is not None:
        line, column = found.span.line, found.span.column
        end_line, end_column = lines.locate(max(found.span.start, found.span.end))
        properties |= {"line": str(line), "endLine": str(end_line)}
        if line == end_line:
            properties |= {"col": str(column), "endColumn": str(end_column)}
    if found.code is not None:
        properties["title"] = found.code
    said = [found.message, *([f"help: {found.help}"] if found.help else []), *found.notes]
    given = ",".join(f"{name}={_escaped(value, _IN_PROPERTIES)}" for name, value in properties.items())
    return f"::{_COMMANDS[found.severity]} {given}::{_escaped(chr(10).join(said), _IN_DATA)}"


def _escaped(text: str, table: dict[int, str]) -> str:
    return visible(text).translate(table)


# Diagnostics as a SARIF 2.1.0 log, for the tools that collect findings of many checkers. Spec: 09 §4.6.


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class SarifLog:
    """One run: its results, and the rules that they break."""

    def __init__(self) -> None:
        self._results: list[dict[str, Any]] = []
        #: The number of each rule by its code, in order of appearance.
        self._rules: dict[str, int] = {}

    def add(self, file: str, lines: Lines, found: Iterable[Diagnostic]) -> None:
        self._results += [self._result(file, lines, each) for each in found]

    def text(self) -> str:
        driver = {"name": "harnpy", "version": __version__, "rules": [_rule(code) for code in self._rules]}
        run = {
            "tool": {"driver": driver},
            "columnKind": "unicodeCodePoints",
            "invocations": [{"executionSuccessful": True}],
            "results": self._results,
        }
        return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)

    def _result(self, file: str, lines: Lines, found: Diagnostic) -> dict[str, Any]:
        text = "\n".join([found.message, *([f"help: {found.help}"] if found.help else []), *found.notes])
        result: dict[str, Any] = {
            "level": found.severity,
            "message": {"text": text},
            "locations": [{"physicalLocation": _place(file, lines, found.span)}],
        }
        if found.code is not None:
            result["ruleId"] = found.code
            result["ruleIndex"] = self._rules.setdefault(found.code, len(self._rules))
        related = list(_sarif_related(file, lines, found))
        if related:
            result["relatedLocations"] = related
        fix = tellable(found.fix)
        if fix is not None:
            result["fixes"] = [_fix(file, lines, fix)]
        return result


def _rule(code: str) -> dict[str, Any]:
    found = explanations().get(code)
    if found is None:
        return {"id": code}
    return {
        "id": code,
        "shortDescription": {"text": found.summary},
        "fullDescription": {"text": f"{found.what}\n\n{found.why}"},
        "help": {"text": _help(found, "{}"), "markdown": _help(found, "```harn\n{}\n```")},
        "properties": {"tags": [found.family]},
    }


def _help(found: Explanation, block: str) -> str:
    wrong, right = (block.format(program.rstrip("\n")) for program in (found.wrong, found.right))
    return f"{found.what}\n\n{found.why}\n\nWrong:\n\n{wrong}\n\nRight:\n\n{right}"


def _sarif_related(file: str, lines: Lines, found: Diagnostic) -> Iterator[dict[str, Any]]:
    for number, related in enumerate(found.related):
        own = lines if related.file is None else related.lines
        yield {
            "id": number,
            "message": {"text": related.message},
            "physicalLocation": _place(related.file or file, own, related.span),
        }


def _place(file: str, lines: Lines | None, span: Span | None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": _artifact(file)}
    if lines is not None and span is not None:
        place["region"] = _region(lines, span.start, span.end)
    return place


def _artifact(file: str) -> dict[str, str]:
    """A relative path is one below the root of the sources."""
    path = Path(file)
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {"uri": quote(path.as_posix().encode("utf-8", "replace")), "uriBaseId": "%SRCROOT%"}


def _region(lines: Lines, start: int, end: int) -> dict[str, int]:
    place = region(lines, start, end)
    return {
        "startLine": place["line"],
        "startColumn": place["column"],
        "endLine": place["end_line"],
        "endColumn": place["end_column"],
    }


def _fix(file: str, lines: Lines, fix: Fix) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(lines, edit.start, edit.end), "insertedContent": {"text": edit.text}}
        for edit in fix.edits
    ]
    text = "mends the cause" if fix.safe else "mends the cause, and may change what the program does"
    return {
        "description": {"text": text},
        "artifactChanges": [{"artifactLocation": _artifact(file), "replacements": replacements}],
    }


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
            sys.stderr.write(console.rendered_error(error))

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
        "json": "Print one JSON object per diagnostic, one per line.",
    }
    for form, help in helps.items():
        command = click.option(f"--{form}", "form", flag_value=form, help=help)(command)
    return command


def report(form: str | None) -> Report:
    """The report in a form of `report_options`; None is for people."""
    return _FORMS[form]()
