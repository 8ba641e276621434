"""What is wrong with a document, as editors show it. Spec: 12 §3.1, 03."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from harnpy.lsp.document import Document
from harnpy.lsp.workspace import Workspace
from harnpy.syntax import ast
from harnpy.syntax.structure import check_structure

if TYPE_CHECKING:
    from harnpy.check.edits import Item
    from harnpy.check.findings import Finding, Place
    from harnpy.syntax.diagnostic import Diagnostic

_SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}
_POSITION = re.compile(r" at \d+:\d+$", re.MULTILINE)
_SOURCE = "harn"
_NEVER_REACHED = frozenset(["unreachable-code", "dead-code-after-return", "skipped-statement"])


def diagnostics(workspace: Workspace, document: Document) -> list[lsp.Diagnostic]:
    """Return the syntax errors, and what is found in the parts that parse."""
    return [
        *syntax_errors(document),
        *(_shown(document, *fault) for fault in misplaced(document)),
        *(of_finding(workspace, document, finding) for finding in findings(document)),
    ]


def findings(document: Document) -> list[Finding]:
    """Return what the checker says of a document, and the linter as far as it has looked.

    Where something else has been said, the linter needn't.
    """
    found, advice = document.findings, document.standing_advice()
    if not advice:
        return found
    told = {finding.start for finding in found}.union(start for start, _, _ in misplaced(document))
    return [*found, *(one for one in advice if one.start not in told)]


def syntax_errors(document: Document) -> Iterator[lsp.Diagnostic]:
    pieces = document.checked.draft.pieces
    for piece in document.checked.draft.broken:
        # Not at the beginning of what comes next.
        last = piece.start + len(piece.text.rstrip())
        for fault in piece.faults:
            if fault.span is not None:
                start = min(piece.start + fault.span.start, last)
                end = min(piece.start + fault.span.end, last)
                shown = _shown(document, start, end, fault)
                # Counted from the piece, where it is said.
                shown.message = _POSITION.sub("", shown.message)
                if piece is not pieces[-1]:
                    shown.message = shown.message.replace(
                        "unexpected end of file", "unexpected end of the statement"
                    )
                for related in fault.related:
                    if related.span is not None:
                        start, end = piece.start + related.span.start, piece.start + related.span.end
                        _relate(shown, related.message, document, start, end)
                yield shown


def misplaced(document: Document) -> Iterator[tuple[int, int, Diagnostic]]:
    """Yield what breaks a rule of structure (01 §10), with its place."""
    for item in document.items:
        if not item.broken:
            for fault in document.kept(item, _structure):
                assert fault.span is not None
                yield fault.span.start + item.moved, fault.span.end + item.moved, fault


def _structure(document: Document, item: Item) -> list[Diagnostic]:
    """The faults have the offsets of the item's reading; no line is right there, so none is said."""
    faults = check_structure(ast.Program(item.node.start, item.node.end, (item.node,)), "")
    for fault in faults:
        fault.diagnostics[0].message = f"compile error: {fault.text}"
    return [each for fault in faults for each in fault.diagnostics]


def _shown(document: Document, start: int, end: int, fault: Diagnostic) -> lsp.Diagnostic:
    return lsp.Diagnostic(
        range=document.text.range(start, max(start, end)),
        message=_message(fault.message, fault.help),
        severity=_SEVERITIES[fault.severity],
        code=fault.code,
        source=_SOURCE,
        data=_data(fault.code),
    )


def of_finding(workspace: Workspace, document: Document, finding: Finding) -> lsp.Diagnostic:
    """Return a finding as it is shown."""
    shown = lsp.Diagnostic(
        range=document.text.range(finding.start, finding.end),
        message=_message(finding.message, finding.help),
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        source=_SOURCE,
        tags=_tags(finding.code) or None,
        data=_data(finding.code),
    )
    for place in finding.places:
        _relate_place(workspace, document, shown, place)
    return shown


def _relate_place(workspace: Workspace, document: Document, shown: lsp.Diagnostic, place: Place) -> None:
    home = document if place.file is None else workspace.at_path(place.file)
    if home is not None:
        _relate(shown, place.message, home, place.start, place.end)


def _relate(shown: lsp.Diagnostic, message: str, home: Document, start: int, end: int) -> None:
    where = lsp.Location(home.uri, home.text.range(start, end))
    related = lsp.DiagnosticRelatedInformation(where, message)
    shown.related_information = [*(shown.related_information or ()), related]


def _message(message: str, help: str | None) -> str:
    """A message often ends with its help; editors have no other place for one."""
    return message if help is None or help.strip("?") in message else f"{message}\n{help}"


def _data(code: str | None) -> dict[str, str] | None:
    return None if code is None else {"explain": f"harnpy explain {code}"}


def _tags(code: str) -> list[lsp.DiagnosticTag]:
    if code.startswith("unused-") or code in _NEVER_REACHED:
        return [lsp.DiagnosticTag.Unnecessary]
    return [lsp.DiagnosticTag.Deprecated] if code == "deprecated" else []
