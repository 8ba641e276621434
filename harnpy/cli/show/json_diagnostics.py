"""A diagnostic as data: what `--json` prints, a line each. Spec: 09 §4.6."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harnpy.text.secrets.literals import hidden

if TYPE_CHECKING:
    from harnpy.syntax.diagnostic import Diagnostic, Edit, Fix, Related
    from harnpy.syntax.span import Lines


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
        "related": [_related(related, lines, file) for related in found.related],
        "fix": fix and {"safe": fix.safe, "edits": [_edit(edit, lines) for edit in fix.edits]},
    }


def tellable(fix: Fix | None) -> Fix | None:
    """A fix, unless its text repeats a secret of the source."""
    return None if fix is None or any(hidden(edit.text) != edit.text for edit in fix.edits) else fix


def region(lines: Lines, start: int, end: int) -> dict[str, int]:
    """Where ``source[start:end]`` is: lines and columns from 1, the end is the column behind it."""
    line, column = lines.locate(start)
    end_line, end_column = lines.locate(max(start, end))
    return {"line": line, "column": column, "end_line": end_line, "end_column": end_column}


_NOWHERE = dict.fromkeys(["line", "column", "end_line", "end_column"])


def _related(related: Related, lines: Lines, file: str) -> dict[str, Any]:
    own = lines if related.file is None else related.lines
    place = region(own, related.span.start, related.span.end) if own and related.span else _NOWHERE
    return {"file": related.file or file, **place, "message": related.message}


def _edit(edit: Edit, lines: Lines) -> dict[str, Any]:
    return {**region(lines, edit.start, edit.end), "text": edit.text}
