"""An artifact store as resizes use one: for tool outputs that leave the window. Spec: 10 §C8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.artifacts.artifact import Artifact

if TYPE_CHECKING:
    from harnpy.session.artifacts.artifact import ArtifactStore


class Offloading:
    """Keeps bodies in ``store``."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    def put(self, descriptor: dict[str, Any], body: bytes) -> dict[str, Any]:
        """Keep ``body``; return the descriptor with what was missing of it."""
        return self._store.put(Artifact.of(descriptor), body).data()
