"""Artifacts: bodies in a store of their own, and their descriptors in logs. Spec: 10 §A1.14, §C3, §C10."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields, replace
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any, Protocol

from msgspec.json import decode, encode

from harnpy.session.errors import ArtifactCorrupt, ArtifactNotFound, InvalidArgument, InvalidArtifactId
from harnpy.session.events import ARTIFACT_RECORDED, EventDraft
from harnpy.storage.jsonl.layout import Folder, disk_errors, file_name, name_of, write_all
from harnpy.world import World
from harnpy.world.files import PRIVATE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.formats.dicts import Dict
    from harnpy.session.log import Session
    from harnpy.storage.jsonl.layout import Medium


def _sha256(data: bytes = b"") -> Any:
    # OpenSSL takes its time to load, and few sessions have artifacts.
    from hashlib import sha256

    return sha256(data)


# What is known of an artifact without its body. Spec: 10 §A1.14.


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
        """Return whether it is left out of exports, and of what children hand back."""
        return self.kind == INTERNAL

    def data(self) -> dict[str, Any]:
        """Return it as JSON: what is known."""
        return {key: value for key, value in asdict(self).items() if value not in ("", None, {})}

    @classmethod
    def of(cls, data: dict[str, Any]) -> Artifact:
        """Return the descriptor that ``data`` gave. Unknown keys are left out."""
        return cls(**{one.name: data[one.name] for one in fields(cls) if one.name in data})


class Body(Protocol):
    """An open binary file, which is read in pieces."""

    def read(self, size: int, /) -> bytes: ...


class ArtifactStore(Protocol):
    """A store of bodies."""

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


# What a session's log has of an artifact that is kept: its descriptor, never its body. Spec: 10 §A1.14.


def recorded(
    artifacts: Iterable[Any], session_id: str, child_id: str | None = None
) -> list[tuple[str, Dict]]:
    """Return the facts of artifacts or assets that were made in ``session_id``.

    ``child_id`` is the child that made them, in its parent's log.
    """
    child = {} if child_id is None else {"child_id": child_id}
    found = (artifact for artifact in artifacts if isinstance(artifact, dict))
    named = (artifact for artifact in found if isinstance(artifact.get("id"), str))
    return [(ARTIFACT_RECORDED, {**child, "artifact": descriptor(each, session_id)}) for each in named]


def descriptor(artifact: Any, session_id: str) -> Dict:
    """Return an artifact's descriptor; size (bytes) and digest are those of its text, if it has one."""
    id, text = artifact["id"], artifact.get("text")
    described: Dict = {"id": id, "kind": artifact.get("kind") or "artifact", "uri": f"artifact:{id}"}
    described |= {"label": artifact.get("title"), "mime_type": artifact.get("mime_type")}
    if isinstance(text, str):
        body = text.encode("utf-8", "surrogatepass")
        described |= {"size": len(body), "digest": f"sha256:{_sha256(body).hexdigest()}"}
    described["producer_session_id"] = session_id
    return {key: value for key, value in described.items() if value is not None}


# Bodies of artifacts in memory, for sessions that are there, too. Spec: 10 §A1.14, §C9.


class MemoryArtifactStore:
    """Artifacts that end with the process. The methods are those of `FileArtifactStore`."""

    def __init__(self, world: World | None = None) -> None:
        self._ids = (World() if world is None else world).ids
        self._stored: dict[str, tuple[bytes, Artifact]] = {}

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
            digest=artifact.digest or f"sha256:{_sha256(data).hexdigest()}",
        )
        self._stored[id] = data, kept
        return kept

    def stat(self, id: str) -> Artifact:
        """Return the descriptor. Raises `ArtifactNotFound`."""
        if id not in self._stored:
            raise ArtifactNotFound(id)
        return self._stored[id][1]

    def open(self, id: str, *, verify: bool = False) -> tuple[IO[bytes], Artifact]:
        """Return the body and the descriptor. Raises `ArtifactNotFound`, and with ``verify``
        `ArtifactCorrupt` for a body of another digest."""
        artifact = self.stat(id)
        data = self._stored[id][0]
        if verify:
            check_digest(artifact, _sha256(data).hexdigest())
        return BytesIO(data), artifact


# Bodies of artifacts in a directory: ``objects/<id>/body`` and ``objects/<id>/descriptor.json``.
#
# A body is there for good before its descriptor is, so whatever has a descriptor is whole.
# Spec: 10 §A1.14, §C10.


_DIRECTORY = "artifacts"
_BODY, _PART, _DESCRIPTOR = "body", "body.tmp", "descriptor.json"
#: How much of a body is in memory at once. Bytes.
_PIECE = 1 << 20


def beside(url: str, state: str) -> str:
    """Return the directory of a store's artifacts: beside its file, in its directory, or with other state."""
    scheme, _, path = url.partition(":")
    place = {"sqlite": f"{path}-{_DIRECTORY}", "jsonl": os.path.join(path, _DIRECTORY)}
    return place.get(scheme, os.path.join(state, _DIRECTORY))


class FileArtifactStore:
    """The artifacts below a directory, which is made when the first one is put there."""

    def __init__(
        self,
        directory: str,
        *,
        world: World | None = None,
        medium: Medium | None = None,
        modes: tuple[int, int] = PRIVATE,
    ) -> None:
        self._directory = directory
        self.ids = (World() if world is None else world).ids
        self._objects = Folder(directory, None, medium, modes).sub("objects")

    def put(self, artifact: Artifact, body: bytes | Body) -> Artifact:
        """Keep a body for good, then its descriptor; a given size and digest are kept.

        Without an id it gets a new one. Raises `InvalidArtifactId` and `StorageError`.
        """
        id = artifact.id or self.ids.new()
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
            found = _sha256()
            while piece := file.read(_PIECE):
                found.update(piece)
            try:
                check_digest(artifact, found.hexdigest())
            except ArtifactCorrupt:
                file.close()
                raise
            file.seek(0)
        return file, artifact

    def delete(self, id: str) -> bool:
        """Remove an artifact. Return False when there is none. Raises `InvalidArtifactId`."""
        check_artifact_id(id)
        name = file_name(id, folded=True)
        if name not in self._objects.folders():
            return False
        self._remove(name)
        return True

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
    size, digest = 0, _sha256()
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


# An artifact store as resizes use one: for tool outputs that leave the window. Spec: 10 §C8.


class Offloading:
    """Keeps bodies in ``store``."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    def put(self, descriptor: dict[str, Any], body: bytes) -> dict[str, Any]:
        """Keep ``body``; return the descriptor with what was missing of it."""
        return self._store.put(Artifact.of(descriptor), body).data()


# What a session's log says of artifacts. Spec: 10 §A1.14, §C3, §C10.


def record_artifact(session: Session, artifact: Artifact, child_id: str | None = None) -> Artifact:
    """Write an artifact's descriptor, and return it as written: of this session, unless it names another.

    ``child_id`` is the child that made it.
    """
    recorded = replace(artifact, producer_session_id=artifact.producer_session_id or session.id)
    child: dict[str, Any] = {} if child_id is None else {"child_id": child_id}
    session.write(EventDraft(ARTIFACT_RECORDED, {**child, "artifact": recorded.data()}))
    return recorded


def store_artifact(
    session: Session,
    store: ArtifactStore,
    artifact: Artifact,
    body: bytes | Body,
    child_id: str | None = None,
) -> Artifact:
    """Keep a body in ``store``, then record its descriptor, which is returned.

    Raises `InvalidArgument` for a part that is missing, `ArtifactError`, `StorageError`.
    """

    check_given(store, body)
    own = replace(artifact, producer_session_id=artifact.producer_session_id or session.id)
    return session.record_artifact(store.put(own, body), child_id)
