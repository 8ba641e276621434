"""`seed_from_jsonl`: create a session that continues a recorded one. Spec: 08 §3.4.

A wrong argument raises. A bad file is reported in the result, and no session is created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.reading.kinds import boolean, count, string
from harnpy.session import events as kinds
from harnpy.session.events import EventDraft
from harnpy.session.transfer import sidecar
from harnpy.session.transfer.sidecar import SidecarError
from harnpy.session.verbs.arguments import check, not_blank, read_options
from harnpy.text.json.reader import parse_json
from harnpy.world.files import system_reason

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.session.residents import Residents
    from harnpy.session.transfer.sidecar import Source


_VERB = "agent_session_seed_from_jsonl"
_OPTIONS = {
    "truncate_to_last": count,
    "drop_tool_calls": boolean,
    "rename_session": string,
    "validate": boolean,
    "provider": string,
    "model": string,
}


def seed_from_jsonl(residents: Residents, jsonl_path: str, opts: Dict | None = None) -> Dict:
    """Create a session from a sidecar's messages. Return ``{ok, session_id?, …, error?}``."""
    check("jsonl_path", jsonl_path, string)
    options = read_options(opts, _OPTIONS)
    not_blank("rename_session", options.get("rename_session"))
    known: Dict = {}  # what a failure reports beside its reason
    try:
        rows = sidecar.read_rows(_text_of(residents, jsonl_path), parse_json)
        if not rows.records:
            raise SidecarError(f"'{jsonl_path}' contains no transcript records")
        known["source_records"] = len(rows.records)
        source = sidecar.reconstruct(rows.records)
        if source.format is not None:
            known["source_format"] = source.format
        if options.get("validate", True):
            _validate(source, options)
        messages, truncated = _chosen(source, options)
        id = _new_id(residents, options)
    except SidecarError as error:
        return {"ok": False, **known, "error": f"{_VERB}: {error}"}
    seeded_from = {"path": jsonl_path, **known}
    _seed(residents, id, source, messages, seeded_from)
    return {
        "ok": True,
        **known,
        "session_id": id,
        "turns_loaded": sum(message.get("role") == "assistant" for message in messages),
        "messages_loaded": len(messages),
        "partial": rows.partial or source.format == sidecar.RESPONSES_ONLY,
        "truncated": truncated,
        "provider": source.provider,
        "model": source.model,
        "tool_format": source.tool_format,
    }


def _text_of(residents: Residents, path: str) -> str:
    try:
        return residents.world.files.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = system_reason(error)
    except ValueError:
        reason = "file name contained an unexpected NUL byte"
    raise SidecarError(f"failed to read '{path}': {reason}")


def _new_id(residents: Residents, options: Dict) -> str:
    """Make room for the new session and return its id."""
    id: str = options.get("rename_session") or residents.world.ids.new()
    if id not in residents.by_id:
        residents.make_room(id)
    if id in residents.by_id:  # before, or opened by an eviction subscriber
        raise SidecarError(f"session id '{id}' already exists")
    return id


def _seed(residents: Residents, id: str, source: Source, messages: list[Dict], seeded_from: Dict) -> None:
    session = residents.make(id, residents.stores.usual())
    for key, value in (
        ("system_prompt", source.system_prompt), ("settings.tool_format", source.tool_format)
    ):  # fmt: skip
        if value is not None:
            session.set(key, value)
    entries = session.write(*(EventDraft(kinds.MESSAGE_ADDED, message) for message in messages))
    window = session.view.window.with_entries(entries)
    window.metadata = {"seeded_from": seeded_from}
    session.replace("import", window)
    residents.admit(session)


def _validate(source: Source, options: Dict) -> None:
    """Raise `SidecarError` unless the source is exact and of the requested provider and model."""
    if source.format == sidecar.RESPONSES_ONLY:
        raise SidecarError(
            "source has only provider responses; pass validate: false for a best-effort import"
        )
    for key, found in (("provider", source.provider), ("model", source.model)):
        wanted = options.get(key)
        if wanted is not None and wanted != found:
            shown = "nil" if found is None else found
            raise SidecarError(f"{key} mismatch: expected '{wanted}', transcript has '{shown}'")


def _chosen(source: Source, options: Dict) -> tuple[list[Dict], bool]:
    """Return the messages to load, and whether some were dropped at the front."""
    messages = [message for message in source.messages if isinstance(message.get("role"), str)]
    if not messages:
        raise SidecarError("no messages could be reconstructed")
    if options.get("drop_tool_calls"):
        messages = sidecar.without_tool_calls(messages)
    limit = options.get("truncate_to_last")
    if limit is None or limit >= len(messages):
        return messages, False
    return sidecar.last_messages(messages, limit), True
