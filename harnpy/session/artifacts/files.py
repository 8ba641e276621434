"""Bodies of artifacts in a directory: ``objects/<id>/body`` and ``objects/<id>/descriptor.json``.

A body is there for good before its descriptor is, so whatever has a descriptor is whole.
Spec: 10 §A1.14, §C10.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from io import BytesIO
from typing import IO, TYPE_CHECKING

from msgspec.json import decode, encode

from harnpy.session.artifacts.artifact import Artifact, check_artifact_id, check_digest
from harnpy.session.errors import ArtifactCorrupt, ArtifactNotFound
from harnpy.storage.jsonl.folders import Folder, disk_errors, write_all
from harnpy.storage.jsonl.names import file_name, name_of
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.session.artifacts.artifact import Body
    from harnpy.storage.jsonl.folders import Medium

_BODY, _PART, _DESCRIPTOR = "body", "body.tmp", "descriptor.json"
#: How much of a body is in memory at once. Bytes.
_PIECE = 1 << 20


class FileArtifactStore:
    """The artifacts below a directory, which is made when the first one is put there."""

    def __init__(self, directory: str, *, world: World | None = None, medium: Medium | None = None) -> None:
        self._directory = directory
        self._ids = (world or World()).ids
        self._objects = Folder(directory, None, medium).sub("objects")

    def put(self, artifact: Artifact, body: bytes | Body) -> Artifact:
        """Keep a body for good, then its descriptor; a given size and digest are kept.

        Without an id it gets a new one. Raises `InvalidArtifactId` and `StorageError`.
        """
        id = artifact.id or self._ids.new()
        with closing(self._folder(id)) as folder, disk_errors(folder.path):
            size, digest = _write(folder, BytesIO(body) if isinstance(body, bytes) else body)
            kept = replace(
                artifact,
                id=id,
                uri=artifact.uri or f"artifact:{id}",
                size=size if artifact.size is None else artifact.size,
                digest=artifact.digest or digest,
            )
            try:
                folder.replace(_DESCRIPTOR, encode(kept.data()))
            except BaseException:
                folder.remove(_BODY)
                raise
        return kept

    def stat(self, id: str) -> Artifact:
        """Return the descriptor. Raises `ArtifactNotFound`, `InvalidArtifactId`."""
        with closing(self._folder(id)) as folder, disk_errors(folder.path):
            found = folder.read(_DESCRIPTOR)
        if found is None:
            raise ArtifactNotFound(id)
        return Artifact.of(decode(found))

    def open(self, id: str, *, verify: bool = False) -> tuple[IO[bytes], Artifact]:
        """Return the body, to be closed, and the descriptor.

        Raises `ArtifactNotFound`, and with ``verify`` `ArtifactCorrupt` for a body of another digest.
        """
        artifact = self.stat(id)
        with closing(self._folder(id)) as folder:
            try:
                with disk_errors(folder.path):
                    file = os.fdopen(folder.open(_BODY), "rb")
            except FileNotFoundError:
                raise ArtifactNotFound(id) from None
        if verify:
            found = sha256()
            while piece := file.read(_PIECE):
                found.update(piece)
            try:
                check_digest(artifact, found.hexdigest())
            except ArtifactCorrupt:
                file.close()
                raise
            file.seek(0)
        return file, artifact

    def orphans(self, recorded: Iterable[str], *, repair: bool = False) -> list[str]:
        """Return the ids of what isn't ``recorded`` in any log; ``repair`` removes it.

        Nobody may be storing an artifact meanwhile.
        """
        known = {file_name(id, folded=True) for id in recorded}
        found = []
        for name in self._objects.folders():
            if name not in known:
                found.append(name_of(name) or name)
                if repair:
                    self._remove(name)
        return found

    def _remove(self, name: str) -> None:
        with closing(self._objects.sub(name)) as folder:
            for file in (_DESCRIPTOR, *folder.files()):  # first what says that the body is whole
                folder.remove(file)
        os.rmdir(os.path.join(self._objects.path, name))

    def _folder(self, id: str) -> Folder:
        check_artifact_id(id)
        return self._objects.sub(file_name(id, folded=True))


def _pieces(body: Body) -> Iterator[bytes]:
    while piece := body.read(_PIECE):
        yield piece


def _write(folder: Folder, body: Body) -> tuple[int, str]:
    """Write a body for good. Return its size and digest."""
    size, digest = 0, sha256()
    file = folder.open(_PART, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        for piece in _pieces(body):
            write_all(folder.medium, file, piece)
            size += len(piece)
            digest.update(piece)
        folder.medium.sync(file)
    finally:
        os.close(file)
    folder.rename(_PART, _BODY)
    folder.sync()
    return size, f"sha256:{digest.hexdigest()}"
