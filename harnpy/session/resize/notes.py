"""How a compaction is reported: its transcript event and its agent event. Spec: 08 §4.9."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.transcript import lifecycle_event

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict


def note_of(metadata: Dict, text: str | None = None) -> Dict:
    """Return the transcript event of a compaction."""
    text = text or f"Transcript compacted via {metadata['strategy']}"
    return lifecycle_event("compaction", text, metadata=metadata)


def compacted_event(session_id: str, mode: str, report: Dict, asset_id: str | None = None) -> Dict:
    """Return the agent event of a compaction: ``report`` and where the former transcript is stored."""
    event = {"type": "transcript_compacted", "session_id": session_id, "mode": mode}
    return {**event, **report, "snapshot_asset_id": asset_id}
