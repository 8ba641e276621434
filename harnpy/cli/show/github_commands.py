"""A diagnostic as a workflow command of GitHub, which shows it beside the line of a change. Spec: 09 §4.6."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.text.visible import visible

if TYPE_CHECKING:
    from harnpy.syntax.diagnostic import Diagnostic
    from harnpy.syntax.span import Lines

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
