"""The language server over standard input and output: life cycle, versions, and which feature answers what.

Requests are answered one after the other, in the thread that reads them. Spec: 12 §1.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams

from harnpy.lsp import capabilities
from harnpy.lsp.diagnostics import diagnostics
from harnpy.lsp.document import Document
from harnpy.lsp.idle import IdleLinting
from harnpy.lsp.transport import Connection
from harnpy.lsp.uris import path_of
from harnpy.lsp.workspace import Workspace
from harnpy.project import MANIFEST
from harnpy.version import __version__

log = logging.getLogger("harnpy.lsp")

#: The encodings of positions that the server knows, the one it likes best first: its offsets are characters.
_ENCODINGS = (
    lsp.PositionEncodingKind.Utf32,
    lsp.PositionEncodingKind.Utf16,
    lsp.PositionEncodingKind.Utf8,
)


class LanguageServer:
    """One server, for one client."""

    def __init__(self) -> None:
        self.workspace = Workspace()
        self.client = lsp.ClientCapabilities()
        self._unpublished: dict[str, None] = {}
        self._has_new = False
        self._linting = IdleLinting(lambda: self.workspace, self._publish_one)
        self._status = 1
        answers: dict[str, Callable[[Any], Any]] = {
            lsp.INITIALIZE: self._initialize,
            lsp.INITIALIZED: _nothing,
            lsp.SHUTDOWN: self._shutdown,
            lsp.EXIT: self._exit,
            lsp.SET_TRACE: _nothing,
            lsp.TEXT_DOCUMENT_DID_OPEN: self._opened,
            lsp.TEXT_DOCUMENT_DID_CHANGE: self._changed,
            lsp.TEXT_DOCUMENT_DID_SAVE: self._saved,
            lsp.TEXT_DOCUMENT_DID_CLOSE: self._closed,
            lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES: self._changed_on_disk,
            lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: self._changed_folders,
        }
        for method, feature in capabilities.features().items():
            answers[method] = self._answering(feature)
        self._connection = Connection(answers)
        self._protocol = self._connection.protocol

    def run(self, reader: BinaryIO, writer: BinaryIO) -> int:
        """Serve until the client ends it; return the exit status, 0 if it did so in order (12 §1.1)."""
        self._connection.run(reader, writer, self._publish, self._linting)
        return self._status

    def _answering(self, feature: Callable[..., Any]) -> Callable[[Any], Any]:
        """A feature takes the workspace, the document if the request has one, and the request."""

        def answer(params: Any) -> Any:
            if not hasattr(params, "text_document"):
                return feature(self.workspace, params)
            return feature(self.workspace, self._document(params.text_document.uri), params)

        return answer

    def _document(self, uri: str) -> Document:
        document = self.workspace.at(uri)
        if document is None:
            raise JsonRpcInvalidParams(f"{uri} is neither open nor a file that can be read")
        return document

    # --- life --------------------------------------------------------------------------------------

    def _initialize(self, params: lsp.InitializeParams) -> lsp.InitializeResult:
        self._protocol.initialized = True
        self.client = params.capabilities
        offered = (params.capabilities.general and params.capabilities.general.position_encodings) or ()
        encoding = next((one for one in _ENCODINGS if one in offered), lsp.PositionEncodingKind.Utf16)
        uris = [folder.uri for folder in params.workspace_folders or ()] or [params.root_uri or ""]
        roots = [path for uri in uris if (path := path_of(uri)) is not None]
        self.workspace = Workspace(roots, encoding)
        self.workspace.client = params.capabilities
        return lsp.InitializeResult(
            capabilities.server_capabilities(encoding), lsp.ServerInfo("harnpy", __version__)
        )

    def _shutdown(self, params: None) -> None:
        self._protocol.ended = True
        self._status = 0

    def _exit(self, params: None) -> None:
        self._connection.close()

    # --- documents ---------------------------------------------------------------------------------

    def _opened(self, params: lsp.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        self.workspace.open(item.uri, item.text, item.version)
        self._publish_soon(item.uri)
        self._has_new = True

    def _changed(self, params: lsp.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        document = self.workspace.documents.get(uri)
        if document is None:
            log.warning("a change of %s, which is not open, is ignored", uri)
            return
        if document.version is not None and version < document.version:
            log.warning(
                "version %s of %s came after version %s, and is ignored", version, uri, document.version
            )
            return
        edits = [(getattr(change, "range", None), change.text) for change in params.content_changes]
        self.workspace.edit(document, document.text.changed(edits), version)
        self._publish_soon(uri)

    def _saved(self, params: lsp.DidSaveTextDocumentParams) -> None:
        self.workspace.changed_on_disk()
        self._refresh_importers(params.text_document.uri)

    def _closed(self, params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        self.workspace.close(uri)
        gc.unfreeze()
        self._protocol.notify(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, lsp.PublishDiagnosticsParams(uri, []))
        self._refresh_importers(uri)

    def _changed_on_disk(self, params: lsp.DidChangeWatchedFilesParams) -> None:
        if any(change.uri.endswith(f"/{MANIFEST}") for change in params.changes):
            self.workspace.read_manifests()
        self.workspace.changed_on_disk()
        self._refresh_importers("")

    def _changed_folders(self, params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        gone = {path_of(folder.uri) for folder in params.event.removed}
        added = [path_of(folder.uri) for folder in params.event.added]
        roots = [root for root in self.workspace.roots if root not in gone]
        self.workspace.roots = [*roots, *(path for path in added if path is not None and path not in roots)]

    def _refresh_importers(self, uri: str) -> None:
        """Look again at all open documents but one: what they import may have changed."""
        for other in self.workspace.documents.values():
            if other.uri != uri:
                self.workspace.refresh(other)
                self._publish_soon(other.uri)

    # --- diagnostics -------------------------------------------------------------------------------

    def _publish_soon(self, uri: str) -> None:
        """Publish what is wrong with a document once the messages that have come are handled."""
        self._unpublished[uri] = None

    def _publish(self) -> None:
        uris, self._unpublished = self._unpublished, {}
        self._publish_all(uris)
        if self._has_new:
            # Trees of long files stay: a collection that looks through them delays a keystroke by 100 ms.
            self._has_new = False
            gc.freeze()

    def _publish_all(self, uris: Iterable[str]) -> None:
        for uri in uris:
            document = self.workspace.documents.get(uri)
            if document is not None:
                self._publish_one(document)
                self._linting.changed(uri)

    def _publish_one(self, document: Document) -> None:
        try:
            found = diagnostics(self.workspace, document)
        except Exception:
            log.exception("the diagnostics of %s failed", document.uri)
            return
        self._protocol.notify(
            lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS,
            lsp.PublishDiagnosticsParams(document.uri, found, document.version),
        )


def _nothing(params: object) -> None:
    """Take note of a message that changes nothing here."""
