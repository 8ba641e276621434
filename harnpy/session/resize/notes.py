"""How a compaction is reported: its transcript event and its agent event. Spec: 08 §4.9."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.transcript import lifecycle_event

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict


#: What a loop's compactions are called, by their ``mode``: when they happened.
_TEXTS = {
    "preflight": "Transcript compacted before agent LLM call",
    "auto": "Transcript compacted during agent loop",
    "overflow": "Transcript compacted after a context overflow",
}


def note_of(metadata: Dict) -> Dict:
    """Return the transcript event of a compaction."""
    text = _TEXTS.get(metadata["mode"]) or f"Transcript compacted via {metadata['strategy']}"
    return lifecycle_event("compaction", text, metadata=metadata)


def compacted_event(session_id: str, mode: str, report: Dict, asset_id: str | None = None) -> Dict:
    """Return the agent event of a compaction: ``report`` and where the former transcript is stored."""
    event = {"type": "transcript_compacted", "session_id": session_id, "mode": mode}
    return {**event, **report, "snapshot_asset_id": asset_id}
