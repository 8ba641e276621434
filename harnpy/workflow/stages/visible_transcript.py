"""The part of a transcript that others may see. Spec: 08 §7.3 step 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.transcript import message_event

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict


def visible(transcript: Dict, visibility: str | None) -> Dict:
    """Return the transcript with only the messages and events of a visibility; all of it without one."""
    if not visibility:
        return transcript

    def is_visible(message: Dict) -> bool:
        return bool(message_event(message, "")["visibility"] == visibility)

    events = [event for event in transcript["events"] if event["visibility"] == visibility]
    return {**transcript, "messages": list(filter(is_visible, transcript["messages"])), "events": events}
