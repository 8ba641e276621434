"""What a session's log has of an artifact that is kept: its descriptor, never its body. Spec: 10 §A1.14."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.events import ARTIFACT_RECORDED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.reading.dicts import Dict


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
        from hashlib import sha256

        body = text.encode("utf-8", "surrogatepass")
        described |= {"size": len(body), "digest": f"sha256:{sha256(body).hexdigest()}"}
    described["producer_session_id"] = session_id
    return {key: value for key, value in described.items() if value is not None}
