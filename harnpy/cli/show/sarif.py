"""Diagnostics as a SARIF 2.1.0 log, for the tools that collect findings of many checkers. Spec: 09 §4.6."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from harnpy.check.explanations.reading import explanations
from harnpy.cli.show.json_diagnostics import region, tellable
from harnpy.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.check.explanations.reading import Explanation
    from harnpy.syntax.diagnostic import Diagnostic, Fix
    from harnpy.syntax.span import Lines, Span

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
        related = list(_related(file, lines, found))
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


def _related(file: str, lines: Lines, found: Diagnostic) -> Iterator[dict[str, Any]]:
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
