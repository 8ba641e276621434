"""Bodies of artifacts in memory, for sessions that are there, too. Spec: 10 §A1.14, §C9."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from io import BytesIO
from typing import IO, TYPE_CHECKING

from harnpy.session.artifacts.artifact import check_artifact_id, check_digest
from harnpy.session.errors import ArtifactNotFound
from harnpy.world import World

if TYPE_CHECKING:
    from harnpy.session.artifacts.artifact import Artifact, Body


class MemoryArtifactStore:
    """Artifacts that end with the process. The methods are those of `FileArtifactStore`."""

    def __init__(self, world: World | None = None) -> None:
        self._ids = (world or World()).ids
        self._kept: dict[str, tuple[bytes, Artifact]] = {}

    def put(self, artifact: Artifact, body: bytes | Body) -> Artifact:
        """Keep a body; a given size and digest are kept. Raises `InvalidArtifactId`."""
        id = artifact.id or self._ids.new()
        check_artifact_id(id)
        data = body if isinstance(body, bytes) else body.read(-1)
        kept = replace(
            artifact,
            id=id,
            uri=artifact.uri or f"artifact:{id}",
            size=len(data) if artifact.size is None else artifact.size,
            digest=artifact.digest or f"sha256:{sha256(data).hexdigest()}",
        )
        self._kept[id] = data, kept
        return kept

    def stat(self, id: str) -> Artifact:
        """Return the descriptor. Raises `ArtifactNotFound`."""
        if id not in self._kept:
            raise ArtifactNotFound(id)
        return self._kept[id][1]

    def open(self, id: str, *, verify: bool = False) -> tuple[IO[bytes], Artifact]:
        """Return the body and the descriptor. Raises `ArtifactNotFound`, and with ``verify``
        `ArtifactCorrupt` for a body of another digest."""
        artifact = self.stat(id)
        data = self._kept[id][0]
        if verify:
            check_digest(artifact, sha256(data).hexdigest())
        return BytesIO(data), artifact
