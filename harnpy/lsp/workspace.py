"""The files that an editor works on: those that are open, and those on disk. Spec: 12 §1.3."""

from __future__ import annotations

import logging
import os.path
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lsprotocol.types import ClientCapabilities, PositionEncodingKind

from harnpy.builtins import catalog
from harnpy.formats.manifest import Manifests
from harnpy.lsp.document import Document
from harnpy.lsp.text import Text
from harnpy.lsp.uris import path_of, uri_of
from harnpy.syntax.parser import parse
from harnpy.vm import modules
from harnpy.vm.imports import Imports
from harnpy.vm.modules import Modules
from harnpy.vm.vm import Vm
from harnpy.world import World
from harnpy.world.files import TextFiles

if TYPE_CHECKING:
    from harnpy.check.knowledge import Knowledge
    from harnpy.checking import Bring
    from harnpy.vm.modules import Request

log = logging.getLogger("harnpy.lsp")

#: Texts of modules that are remembered, the `std/*` ones among them.
_REMEMBERED = 256
#: Files on disk that stay read.
_READ = 64
_SUFFIX = ".harn"


class Workspace:
    """``roots`` are the folders that the editor has open, absolute paths."""

    def __init__(
        self,
        roots: Sequence[str] = (),
        encoding: PositionEncodingKind | str = PositionEncodingKind.Utf16,
    ) -> None:
        self.roots = list(roots)
        self.encoding = encoding
        self.documents: dict[str, Document] = {}
        self.knowledge: Knowledge = Vm(catalog).builtins.knowledge()
        #: The `[lint]`, `[check]` and `[fmt]` of the files' manifests.
        self.manifests = Manifests(World(), log.warning)
        #: Another number after each change of a file.
        self.revision = 0
        self._surfaces: dict[str, modules.Surface] = {}
        #: What the client can do.
        self.client = ClientCapabilities()
        self._offered: dict[str, tuple[tuple[int, int], Sequence[str]]] = {}
        self._read: dict[str, tuple[tuple[int, int], Document]] = {}

    def open(self, uri: str, source: str, version: int | None = None) -> Document:
        """Take a document that the client has opened; what it holds counts, not what is on disk."""
        text = Text(source, self.encoding)
        document = self.documents[uri] = self._document(uri, path_of(uri), text)
        self.edit(document, text, version)
        return document

    def _document(self, uri: str, path: str | None, text: Text) -> Document:
        strict = path is not None and self.manifests.table("check", path).get("strict_types") is True
        return Document(uri, path, text, self.knowledge, strict=strict)

    def read_manifests(self) -> None:
        """Read the manifests again, and check the open documents as they say."""
        self.manifests = Manifests(World(), log.warning)
        self._read.clear()
        for one in [*self.documents.values()]:
            self.open(one.uri, one.source, one.version)

    def edit(self, document: Document, text: Text, version: int | None) -> None:
        """Take another text of an open document."""
        self.revision += 1
        document.revision = self.revision
        document.edit(text, self.bring(document), version)

    def close(self, uri: str) -> None:
        """Forget a document: from now on what is on disk counts."""
        self.documents.pop(uri, None)
        self.revision += 1

    def changed_on_disk(self) -> None:
        """Have every document look again at what it imports."""
        self.revision += 1

    def refresh(self, document: Document) -> None:
        """Have a document look again at what it imports if another file has changed."""
        if document.revision != self.revision:
            document.revision = self.revision
            document.edit(document.text, self.bring(document), document.version)

    def at_path(self, path: str) -> Document | None:
        """Return the document of a file, from the editor or else from disk; None if it can't be read."""
        # Of two with one path, the one that was opened last.
        found = next((one for one in reversed(self.documents.values()) if one.path == path), None)
        if found is not None:
            self.refresh(found)
            return found
        try:
            status = os.stat(path)
            stamp = status.st_mtime_ns, status.st_size
            known = self._read.get(path)
            if known is not None and known[0] == stamp:
                self.refresh(known[1])
                return known[1]
            with open(path, encoding="utf-8", newline="") as file:
                text = Text(file.read(), self.encoding)
        except (OSError, UnicodeDecodeError):
            return None
        document = self._document(uri_of(path), path, text)
        document.revision = self.revision
        document.edit(text, self.bring(document))
        if len(self._read) >= _READ:
            self._read.pop(next(iter(self._read)))
        self._read[path] = stamp, document
        return document

    def text_at(self, path: str) -> str | None:
        """Return the text of a file, from the editor or else from disk; None if it can't be read."""
        found = next((one for one in self.documents.values() if one.path == path), None)
        if found is not None:
            return found.source
        try:
            with open(path, encoding="utf-8", newline="") as file:
                return file.read()
        except (OSError, UnicodeDecodeError):
            return None

    def offered(self, path: str) -> Sequence[str]:
        """Return what a file offers to others; on disk it is read once, until it changes."""
        found = next((one for one in self.documents.values() if one.path == path), None)
        if found is not None:
            return self.surface(found.source).listable
        try:
            status = os.stat(path)
        except OSError:
            return ()
        stamp = status.st_mtime_ns, status.st_size
        known = self._offered.get(path)
        if known is None or known[0] != stamp:
            text = self.text_at(path)
            names = () if text is None else self.surface(text).listable
            known = self._offered[path] = stamp, names
        return known[1]

    def at(self, uri: str) -> Document | None:
        """Return the document of a URI, open or on disk; None if there is none."""
        path = path_of(uri)
        document = self.documents.get(uri)
        if document is None:
            return None if path is None else self.at_path(path)
        self.refresh(document)
        return document

    def owns(self, uri: str | None) -> bool:
        """Return whether a file is open or below one of the roots."""
        path = None if uri is None else path_of(uri)
        below = path is not None and any(path.startswith(os.path.join(root, "")) for root in self.roots)
        return uri in self.documents or below

    def uri(self, path: str) -> str:
        """Return the URI of a file: the client's own spelling if it has the file open."""
        return next((one.uri for one in self.documents.values() if one.path == path), uri_of(path))

    def module(self, document: Document, path: str) -> str | None:
        """Return the file that an import of ``path`` in a document leads to; None if there is none."""
        place = modules.find_module(self._files(), path, _directory(document))
        return None if place is None else place.path

    def paths(self) -> Iterator[str]:
        """Yield the programs below the roots, and those that are open, each once."""
        return program_paths(self.roots, self.open_texts())

    def open_texts(self) -> dict[str, str]:
        """Return the texts of the open documents by their paths."""
        return {one.path: one.source for one in self.documents.values() if one.path is not None}

    def _files(self) -> TextFiles:
        """The disk, with the open documents in the place of their files."""
        return TextFiles(self.open_texts(), disk=True)

    def bring(self, document: Document) -> Bring:
        def bring(requests: Sequence[Request]) -> Imports:
            # Made when it is asked: a document may import itself, with the text that it has by then.
            reader = Vm(catalog, World(files=self._files()))
            return Modules(self.surface).brought(reader, tuple(requests), _directory(document))

        return bring

    def surface(self, text: str) -> modules.Surface:
        """Return what a module declares."""
        if text not in self._surfaces:
            if len(self._surfaces) > _REMEMBERED:
                self._surfaces.clear()
            self._surfaces[text] = modules.read_surface(text, parse)
        return self._surfaces[text]


def program_paths(roots: Iterable[str], opened: Iterable[str]) -> Iterator[str]:
    """Yield the paths that are ``opened``, and the programs below the roots, each once."""
    # Not in the order in which they were opened: answers depend on the texts alone.
    known = sorted(set(opened))
    seen = set(known)
    yield from known
    for root in roots:
        for directory, folders, files in os.walk(root):
            folders[:] = sorted(one for one in folders if not one.startswith(".") and one != "node_modules")
            for name in sorted(files):
                path = os.path.join(directory, name)
                if name.endswith(_SUFFIX) and path not in seen:
                    seen.add(path)
                    yield path


def _directory(document: Document) -> str:
    return os.getcwd() if document.path is None else os.path.dirname(document.path)
