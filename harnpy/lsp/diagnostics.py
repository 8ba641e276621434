"""What is wrong with a document, as editors show it. Spec: 12 §3.1, 03."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types as lsp

from harnpy.lsp.document import Document
from harnpy.lsp.workspace import Workspace

_SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}


def diagnostics(workspace: Workspace, document: Document) -> list[lsp.Diagnostic]:
    """Return the syntax errors, and what the checker finds in the parts that parse."""
    return [*_syntax(document), *_found(document)]


def _syntax(document: Document) -> Iterator[lsp.Diagnostic]:
    pieces = document.checked.draft.pieces
    for piece in document.checked.draft.broken:
        # Not at the beginning of what comes next.
        last = piece.start + len(piece.text.rstrip())
        for fault in piece.faults:
            if fault.span is not None:
                start = min(piece.start + fault.span.start, last)
                end = min(piece.start + fault.span.end, last)
                message = fault.message
                if piece is not pieces[-1]:
                    message = message.replace("unexpected end of file", "unexpected end of the statement")
                yield lsp.Diagnostic(
                    range=document.text.range(start, max(start, end)),
                    message=message,
                    severity=lsp.DiagnosticSeverity.Error,
                    code=fault.code,
                    source="harn",
                )


def _found(document: Document) -> Iterator[lsp.Diagnostic]:
    for finding in document.findings:
        yield lsp.Diagnostic(
            range=document.text.range(finding.start, finding.end),
            message=finding.message,
            severity=_SEVERITIES[finding.severity],
            code=finding.code,
            source="harn",
        )
