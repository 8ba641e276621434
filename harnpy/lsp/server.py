"""The language server over standard input and output: life cycle, versions, and which feature answers what.

pygls carries the messages and no more: positions, the order of a life and versions are ours, by the text of
the protocol. Requests are answered one after the other, in the thread that reads them. Spec: 12 §1.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, TypeVar

from lsprotocol import types as lsp
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import JsonRPCProtocol, default_converter
from pygls.server import JsonRPCServer

from harnpy.lsp import capabilities
from harnpy.lsp.diagnostics import diagnostics
from harnpy.lsp.document import Document
from harnpy.lsp.idle import IdleLinting
from harnpy.lsp.uris import path_of
from harnpy.lsp.workspace import Workspace
from harnpy.project import MANIFEST
from harnpy.version import __version__

log = logging.getLogger("harnpy.lsp")

#: How long one thread computes while another one waits, in seconds.
_SWITCH = 0.0005

_Params = TypeVar("_Params")

#: The encodings of positions that the server knows, the one it likes best first: its offsets are characters.
_ENCODINGS = (
    lsp.PositionEncodingKind.Utf32,
    lsp.PositionEncodingKind.Utf16,
    lsp.PositionEncodingKind.Utf8,
)


class Protocol(JsonRPCProtocol):
    """The life of a server: nothing before `initialize`, nothing but `exit` behind `shutdown`."""

    initialized = False
    ended = False

    def get_message_type(self, method: str) -> type[Any] | None:
        found: type[Any] | None = lsp.METHOD_TO_TYPES.get(method, (None,))[0]
        return found

    def get_result_type(self, method: str) -> type[Any] | None:
        found: type[Any] | None = lsp.METHOD_TO_TYPES.get(method, (None, None))[1]
        return found

    def handle_message(self, message: Any) -> None:
        method = getattr(message, "method", None)
        if method is None or method == lsp.EXIT:
            super().handle_message(message)
            return
        refused = self._refused(method)
        if refused is None:
            super().handle_message(message)
        elif hasattr(message, "id"):
            self._send_response(message.id, None, refused.to_response_error())

    def _refused(self, method: str) -> JsonRpcException | None:
        """Return why a message has no answer now."""
        if self.ended:
            return JsonRpcInvalidRequest(f"{method} came after shutdown")
        if not self.initialized and method != lsp.INITIALIZE:
            return JsonRpcServerNotInitialized(f"{method} came before initialize")
        if self.initialized and method == lsp.INITIALIZE:
            return JsonRpcInvalidRequest("the server is initialized already")
        return None


class LanguageServer:
    """One server, for one client."""

    def __init__(self) -> None:
        self._rpc = JsonRPCServer(Protocol, default_converter)
        self._protocol: Protocol = self._rpc.protocol  # type: ignore[assignment]
        self.workspace = Workspace()
        self.client = lsp.ClientCapabilities()
        self._unpublished: set[str] = set()
        self._linting = IdleLinting(lambda: self.workspace, self._tell)
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
        for method, answer in answers.items():
            self._rpc.feature(method)(_handler(self._busy(answer)))
        for method, feature in capabilities.features().items():
            self._rpc.feature(method)(_handler(self._busy(self._answering(feature))))

    def run(self, reader: BinaryIO, writer: BinaryIO) -> int:
        """Serve until the client ends it; return the exit status, 0 if it did so in order (12 §1.1)."""
        # The linter's thread gives way sooner than others would.
        sys.setswitchinterval(_SWITCH)
        self._rpc.start_io(reader, writer)
        self._linting.close()
        return self._status

    def _busy(self, answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Let the linter stop for each message."""

        def answered(params: Any) -> Any:
            self._linting.later()
            return answer(params)

        return answered

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
        return lsp.InitializeResult(
            capabilities.server_capabilities(encoding), lsp.ServerInfo("harnpy", __version__)
        )

    def _shutdown(self, params: None) -> None:
        self._protocol.ended = True
        self._status = 0

    def _exit(self, params: None) -> None:
        self._rpc.shutdown()  # type: ignore[no-untyped-call]

    # --- documents ---------------------------------------------------------------------------------

    def _opened(self, params: lsp.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        self.workspace.open(item.uri, item.text, item.version)
        self._publish_soon(item.uri)

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
        self._refresh_importers(params.text_document.uri)

    def _closed(self, params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        self.workspace.close(uri)
        self._protocol.notify(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, lsp.PublishDiagnosticsParams(uri, []))
        self._refresh_importers(uri)

    def _changed_on_disk(self, params: lsp.DidChangeWatchedFilesParams) -> None:
        if any(change.uri.endswith(f"/{MANIFEST}") for change in params.changes):
            self.workspace.read_manifests()
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
        if not self._unpublished:
            asyncio.get_running_loop().call_soon(self._publish)
        self._unpublished.add(uri)

    def _publish(self) -> None:
        uris, self._unpublished = self._unpublished, set()
        for uri in uris:
            document = self.workspace.documents.get(uri)
            if document is not None:
                self._tell(document)
                self._linting.changed(uri)

    def _tell(self, document: Document) -> None:
        found = diagnostics(self.workspace, document)
        params = lsp.PublishDiagnosticsParams(document.uri, found, document.version)
        self._protocol.notify(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, params)


def _nothing(params: object) -> None:
    """Take note of a message that changes nothing here."""


def _handler(answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function of its own for pygls, which writes attributes on it."""

    def handle(params: Any) -> Any:
        try:
            return answer(params)
        except JsonRpcException:
            raise
        except Exception as error:
            # pygls would send our stack to the client.
            log.exception("a message could not be handled")
            raise JsonRpcInternalError(f"{type(error).__name__}; the server's log says more") from None

    return handle
