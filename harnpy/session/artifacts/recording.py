"""What a session's log says of artifacts. Spec: 10 §A1.14, §C3, §C10."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harnpy.session.events import ARTIFACT_RECORDED, EventDraft

if TYPE_CHECKING:
    from harnpy.session.artifacts.artifact import Artifact, ArtifactStore, Body
    from harnpy.session.events import Event


class Recording:
    """The part of a `Session` that is about artifacts."""

    __slots__ = ()

    id: str

    def write(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        raise NotImplementedError

    def record_artifact(self, artifact: Artifact, child_id: str | None = None) -> Artifact:
        """Write an artifact's descriptor, and return it as written: of this session, unless it names another.

        ``child_id`` is the child that made it.
        """
        recorded = replace(artifact, producer_session_id=artifact.producer_session_id or self.id)
        child: dict[str, Any] = {} if child_id is None else {"child_id": child_id}
        self.write(EventDraft(ARTIFACT_RECORDED, {**child, "artifact": recorded.data()}))
        return recorded

    def store_artifact(
        self, store: ArtifactStore, artifact: Artifact, body: bytes | Body, child_id: str | None = None
    ) -> Artifact:
        """Keep a body in ``store``, then record its descriptor, which is returned.

        Raises `InvalidArgument` for a part that is missing, `ArtifactError`, `StorageError`.
        """
        from harnpy.session.artifacts.artifact import check_given

        check_given(store, body)
        own = replace(artifact, producer_session_id=artifact.producer_session_id or self.id)
        return self.record_artifact(store.put(own, body), child_id)
