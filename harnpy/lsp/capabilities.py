"""What the server can do: a row a feature, and what the client is told of it. Spec: 12 §3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lsprotocol import types as lsp

from harnpy.lsp import hover


def features() -> Mapping[str, Callable[..., Any]]:
    """Return the function that answers a request, by the request's method.

    It takes the workspace, the document if the request is about one, and the request's parameters.
    """
    return {
        lsp.TEXT_DOCUMENT_HOVER: hover.hover,
    }


def server_capabilities(encoding: lsp.PositionEncodingKind | str) -> lsp.ServerCapabilities:
    """Return what the client is told."""
    return lsp.ServerCapabilities(
        position_encoding=encoding,
        text_document_sync=lsp.TextDocumentSyncOptions(
            open_close=True,
            change=lsp.TextDocumentSyncKind.Incremental,
            save=lsp.SaveOptions(include_text=False),
        ),
        workspace=lsp.WorkspaceOptions(
            workspace_folders=lsp.WorkspaceFoldersServerCapabilities(
                supported=True, change_notifications=True
            )
        ),
        hover_provider=True,
    )
