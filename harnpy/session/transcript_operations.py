"""Operations on transcript values, each of which returns a new one. Spec: 08 §2.4, §4.7.

Pure but for new ids. *Rebuilding* a transcript derives its message events again; its other events follow,
and the event of the operation comes last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats.display import display
from harnpy.formats.tool_messages import RESULT_ROLES
from harnpy.session import compaction as engine
from harnpy.session.compaction import merged_summary
from harnpy.session.errors import InvalidTranscript
from harnpy.session.lifecycle import note_of
from harnpy.session.transcript import MESSAGE_KINDS, lifecycle_event, message_event, transcript

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.session.compaction import CompactPolicy
    from harnpy.world import World


class Transcripts:
    """Makes transcripts. ``world`` provides ids and displays."""

    def __init__(self, world: World) -> None:
        self._world = world

    def new(self, messages: Sequence[Dict] = (), **extra: Any) -> Dict:
        """Return a transcript with a new id. ``extra``: summary, metadata, state."""
        return transcript(self._world.ids.new(), list(messages), self._message_events(messages), [], **extra)

    def with_messages(
        self,
        former: Dict,
        messages: Sequence[Any],
        note: Dict | None = None,
        *,
        keep_events: bool = True,
        **changes: Any,
    ) -> Dict:
        """Rebuild ``former`` with other messages. ``changes``: summary, state; None removes one."""
        events = self._message_events(messages)
        if keep_events:
            events += [event for event in events_of(former) if event.get("kind") not in MESSAGE_KINDS]
        if note is not None:
            events.append({"id": self._world.ids.new(), **note})
        kept = {"summary": former.get("summary"), "state": former.get("state"), **changes}
        id = former.get("id") or self._world.ids.new()
        made = transcript(id, list(messages), events, assets_of(former), **kept)
        return {**made, "metadata": former["metadata"]} if "metadata" in former else made

    def moved(self, former: Dict, verb: str, state: str) -> Dict:
        """Return ``former`` in another state: archived, abandoned or active again."""
        note = lifecycle_event(f"transcript_{verb}", f"transcript {_PAST[verb]}")
        return self.with_messages(former, messages_of(former), note, state=state)

    def forked(self, former: Dict, retain_messages: bool = True, retain_summary: bool = True) -> Dict:
        note = lifecycle_event("transcript_fork", f"transcript {_PAST['fork']}")
        messages = messages_of(former) if retain_messages else []
        summary = former.get("summary") if retain_summary else None
        return self.with_messages(former, messages, note, state="forked", summary=summary)

    def reset(self, like: Dict) -> Dict:
        """Return a new, active transcript that records the reset, with the metadata of ``like``, if any."""
        note = lifecycle_event("transcript_reset", f"transcript {_PAST['reset']}")
        former = {key: like[key] for key in ("metadata",) if key in like}
        return self.with_messages(former, [], note, state="active")

    def with_asset(self, former: Dict, asset: Any) -> Dict:
        """Return ``former`` with the asset added, or replaced if its id is known."""
        asset = self.asset(asset)
        others = [known for known in assets_of(former) if _id_of(known) != asset["id"]]
        return {**self.with_messages(former, messages_of(former)), "assets": [*others, asset]}

    def asset(self, value: Any) -> Dict:
        """Return an asset in its full form; anything but a dict is where the asset is stored."""
        given = value if isinstance(value, dict) else {"storage": {"path": display(value)}}
        asset = {**given, "_type": "transcript_asset"}
        for key, default in (("kind", "blob"), ("visibility", "internal")):
            if asset.get(key) is None:
                asset[key] = default
        if asset.get("id") is None:
            asset["id"] = self._world.ids.new()
        return asset

    def summarised(self, former: Dict, keep_last: int, summary: str) -> Dict:
        """Return ``former`` with a summary and only its last messages."""
        messages = messages_of(former)
        kept = messages[max(0, len(messages) - keep_last) :] if keep_last else []
        made = self.with_messages(former, kept, summary=summary)
        return {**made, "archived_messages": len(messages) - len(kept)}

    def compacted(self, former: Dict, policy: CompactPolicy, summary: str | None) -> tuple[Dict, Dict] | None:
        """Return ``former`` compacted, and a report; None when there was nothing to do.

        A hard limit is also the target: up to it there is nothing to do. ``summary``, unless blank, replaces
        the computed text in the field of that name.
        """
        messages = [message for message in messages_of(former) if isinstance(message, dict)]
        target_tokens = policy.hard_limit_tokens
        if target_tokens is not None and engine.estimate_tokens(messages) <= target_tokens:
            return None
        compaction = engine.compact(messages, policy)
        if compaction is None:
            return None
        report = compaction.report()
        asset = self._source(former, report)
        metadata = {
            "mode": "manual", "keep_last": policy.keep_last, "target_tokens": target_tokens,
            "snapshot_asset_id": asset["id"], **report,
        }  # fmt: skip
        text = summary if summary is not None and summary.strip() else compaction.text
        made = self.with_messages(
            former,
            compaction.applied(messages),
            note_of(metadata),
            summary=merged_summary(former.get("summary"), text),
        )
        return {**made, "assets": [*made["assets"], asset]}, {**report, "snapshot_asset_id": asset["id"]}

    def _source(self, former: Dict, report: Dict) -> Dict:
        """Return the asset that keeps a transcript as it was before its compaction."""
        return {
            "_type": "transcript_asset",
            "id": f"compaction-source-{self._world.ids.new()}",
            "kind": "compaction_source_transcript",
            "title": "Pre-compaction transcript",
            "visibility": "internal",
            "data": former,
            "metadata": report,
        }

    def _message_events(self, messages: Sequence[Any]) -> list[Dict]:
        new_id = self._world.ids.new
        return [message_event(message, new_id()) for message in messages if isinstance(message, dict)]


_PAST = {
    "fork": "forked", "reset": "reset", "archive": "archived", "abandon": "abandoned", "resume": "resumed"
}  # fmt: skip


def is_transcript(value: Any) -> bool:
    return isinstance(value, dict) and value.get("_type") == "transcript"


def messages_of(value: Dict) -> list[Any]:
    """Return a transcript's messages. Raises `InvalidTranscript` unless they are a list."""
    return _list_of(value, "messages")


def assets_of(value: Dict) -> list[Any]:
    """Return a transcript's assets. Raises `InvalidTranscript` unless they are a list."""
    return _list_of(value, "assets")


def events_of(value: Any) -> list[Dict]:
    """Return the events of a transcript that are dicts."""
    events = value.get("events") if is_transcript(value) else None
    return [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []


def rendered(value: Dict) -> str:
    """Return ``ROLE: TEXT`` of every public event that has text."""
    shown = (event for event in events_of(value) if event.get("visibility") == "public")
    lines = ((_shown(event, "role"), _shown(event, "text")) for event in shown)
    return "\n".join(f"{role}: {text}" for role, text in lines if text)


def rendered_in_full(value: Dict) -> str:
    """Return ``[VISIBILITY] ROLE: TEXT`` of every event."""
    fields = ([_shown(event, key) for key in ("visibility", "role", "text")] for event in events_of(value))
    return "\n".join(f"[{visibility}] {role}: {text}" for visibility, role, text in fields)


def statistics(value: Any) -> Dict:
    """Count the messages and events of each sort; all zero unless given a dict."""
    given = value if isinstance(value, dict) else {}
    messages = [m for m in _if_list(given.get("messages")) if isinstance(m, dict)]
    roles = [message.get("role") for message in messages]
    users, assistants = roles.count("user"), roles.count("assistant")
    return {
        "message_count": len(messages),
        "user_message_count": users,
        "assistant_message_count": assistants,
        "user_facing_message_count": users + assistants,
        "tool_result_message_count": sum(role in RESULT_ROLES for role in roles),
        "tool_call_count": sum(len(_if_list(message.get("tool_calls"))) for message in messages),
        "visible_event_count": sum(
            isinstance(event, dict) and event.get("visibility") == "visible"
            for event in _if_list(given.get("events"))
        ),
    }


def _list_of(value: Dict, key: str) -> list[Any]:
    found = value.get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        raise InvalidTranscript(f"transcript.{key} must be a list")
    return found


def _if_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _id_of(asset: Any) -> Any:
    return asset.get("id") if isinstance(asset, dict) else None


def _shown(event: Dict, key: str) -> str:
    value = event.get(key)
    return "" if value is None else display(value)
