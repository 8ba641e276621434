"""Events and infos as programs see them, and events as programs write them. Spec: 10 §C4, §C9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.durable.errors import invalid
from harnpy.session.events import EventDraft
from harnpy.session.kept.codec import encode_event
from harnpy.text.spell import hint

if TYPE_CHECKING:
    from harnpy.session.events import Event
    from harnpy.session.kept.info import SessionInfo

    Dict = dict[str, Any]

_EVENT = {"type": str, "data": None, "metadata": dict, "cost": float, "turn_id": str}
_HIDDEN = ("definition",)


def event_value(event: Event) -> Dict:
    """Return an event in its shown form."""
    return encode_event(event)


def info_value(info: SessionInfo, listeners: Dict) -> Dict:
    """Return what lists show of a session; ``listeners`` says who of this program listens to it."""
    shown = {key: value for key, value in info._asdict().items() if key not in _HIDDEN}
    return shown | listeners


def drafts_of(caller: str, id: str, given: Any, defaults: Dict) -> list[EventDraft]:
    """Return the drafts of an event or a list of them. ``defaults``: metadata and turn of those without.

    Raises what `invalid` returns.
    """
    events = given if type(given) is list else [given]
    return [_draft(caller, id, event, defaults) for event in events]


def _draft(caller: str, id: str, event: Any, defaults: Dict) -> EventDraft:
    if type(event) is not dict or type(event.get("type")) is not str or not event["type"].strip():
        raise invalid(f"{caller}: an event must be a dict with a string `type`", id)
    unknown = next((key for key in event if key not in _EVENT), None)
    if unknown is not None:
        raise invalid(f'{caller}: unknown key "{unknown}" of an event ({hint(unknown, _EVENT)})', id)
    metadata, cost = event.get("metadata"), event.get("cost") or 0.0
    if metadata is not None and type(metadata) is not dict:
        raise invalid(f"{caller}: `metadata` of an event must be a dict", id)
    if type(cost) not in (int, float):
        raise invalid(f"{caller}: `cost` of an event must be a number", id)
    merged = {**(defaults.get("metadata") or {}), **(metadata or {})}
    return EventDraft(
        event["type"],
        event.get("data"),
        merged or None,
        float(cost),
        turn=event.get("turn_id") or defaults.get("turn_id"),
    )
