"""What is known of an artifact without its body. Spec: 10 §A1.14."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol

from harnpy.session.errors import ArtifactCorrupt, InvalidArgument, InvalidArtifactId

#: The kind of references to files of a workspace: of no use to anybody else. Spec: 10 §A1.14.
INTERNAL = "workspace_file_ref"


@dataclass(frozen=True, slots=True)
class Artifact:
    """A descriptor. ``size`` is in bytes, ``digest`` is ``sha256:<hex>``; what is empty isn't known."""

    id: str = ""
    kind: str = "artifact"
    uri: str = ""
    label: str = ""
    mime_type: str = ""
    size: int | None = None
    digest: str = ""
    producer_session_id: str = ""
    producer_event_id: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def internal(self) -> bool:
        """Whether it is left out of exports, and of what children hand back."""
        return self.kind == INTERNAL

    def data(self) -> dict[str, Any]:
        """Return it as JSON: what is known."""
        return {key: value for key, value in asdict(self).items() if value not in ("", None, {})}

    @classmethod
    def of(cls, data: dict[str, Any]) -> Artifact:
        """Return the descriptor that ``data`` gave. Unknown keys are left out."""
        return cls(**{one.name: data[one.name] for one in fields(cls) if one.name in data})


class Body(Protocol):
    """What is read in pieces: an open binary file."""

    def read(self, size: int, /) -> bytes: ...


class ArtifactStore(Protocol):
    """Where bodies are kept."""

    def put(self, artifact: Artifact, body: bytes | Body) -> Artifact:
        """Keep a body. Return the descriptor with what was missing: id, uri, size, digest."""

    def stat(self, id: str) -> Artifact:
        """Return the descriptor. Raises `ArtifactNotFound`."""


def check_given(store: object, body: object) -> None:
    """Raise `InvalidArgument` for a part that is missing."""
    for name, part in (("store", store), ("body", body)):
        if part is None:
            raise InvalidArgument(f"store artifact: nil {name}")


def check_artifact_id(id: str) -> None:
    """Raise `InvalidArtifactId` for an id that can't name a file."""
    if id in ("", ".", "..") or "/" in id or "\\" in id:
        raise InvalidArtifactId(id)


def check_digest(artifact: Artifact, found: str) -> None:
    """Raise `ArtifactCorrupt` unless the body's digest, SHA-256 in hex, is that of the descriptor."""
    if artifact.digest != f"sha256:{found}":
        raise ArtifactCorrupt(artifact.id, artifact.digest, f"sha256:{found}")
