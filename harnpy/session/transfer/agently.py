"""Agently's file of a session: its two lists of messages, memo and settings. Spec: 10 §A2.7, §C17.

What Agently has no key for stands in one of ours, ``harn``, which it ignores. The file is JSON, JSON5 or
YAML, and may be a part of a larger document.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harnpy.formats.json import refuse_depth
from harnpy.session import events as kinds
from harnpy.session.cuts import Cut
from harnpy.session.errors import TransferError, TransferTypeError
from harnpy.session.events import EventDraft
from harnpy.session.registers import ACTIVE, METADATA, check_transition
from harnpy.session.transfer import admission
from harnpy.session.transfer.admission import NewLog
from harnpy.session.view import SAVES_BEFORE
from harnpy.version import install_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.log import Session
    from harnpy.session.stored import StoredSession
    from harnpy.session.transfer.admission import Loss
    from harnpy.storage import Store
    from harnpy.world import World

    Json = dict[str, Any]

# Documents that hold a session, and a part of one by its path. Spec: 10 §A2.7.


JSON, YAML = "JSON", "YAML"


def read_text(text: str, language: str) -> Any:
    """Return the value of a text in `JSON` (JSON5, too) or `YAML`. Raises ValueError."""
    refuse_depth(text)
    try:
        return _READERS[language](text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def load_document(
    path_or_text: str, language: str, world: World, *, part: str | None = None, encoding: str = "utf-8"
) -> Any:
    """Return the value of a file, or of a text that is no file's path; ``part`` is a dot path into it.

    Raises `TransferError` for what can't be read, OSError.
    """
    path_or_text = path_or_text_of(path_or_text)
    is_file = "\n" not in path_or_text and world.files.is_file(path_or_text)
    what = f"file '{path_or_text}'" if is_file else "content or file path not existed"
    try:
        text = world.files.read_bytes(path_or_text).decode(encoding) if is_file else path_or_text
        document = read_text(text, language)
    except ValueError as error:
        raise TransferError(f"Cannot load {language} {what}.\nError: {_said(error)}") from None
    return part_of(document, part)


def _said(error: ValueError) -> str:
    return "this is no text in its encoding" if isinstance(error, UnicodeError) else str(error)


def path_or_text_of(given: Any) -> str:
    """Return what names a file, or is what a file may hold. Raises `TransferError` for anything else."""
    named = given.__fspath__() if hasattr(given, "__fspath__") else given
    if not isinstance(named, str):
        raise TransferError(f"a session is read from a text or a file's path, got {type(given).__name__}")
    return named


def part_of(document: Any, path: str | None) -> Any:
    """Return the part at a dot path, all of it for None. Raises `TransferError` when there is none."""
    found = document
    for key in path.split(".") if path else ():
        if not isinstance(found, dict) or key not in found:
            raise TransferError(f"there is no '{path}' in the document: '{key}' is missing")
        found = found[key]
    return found


def _json(text: str) -> Any:
    """JSON5 is slow, and seldom: plain JSON is tried first."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        import json5
    except ImportError:
        raise ValueError(f"this isn't plain JSON; to read JSON5: {install_command('import')}") from None
    try:
        return json5.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("this is neither JSON nor JSON5") from None


def _yaml(text: str) -> Any:
    from harnpy.formats.yaml import parse_yaml

    return parse_yaml(text)


_READERS: dict[str, Callable[[str], Any]] = {JSON: _json, YAML: _yaml}


def write_text(value: Any, language: str) -> str:
    """Return the text of a JSON value, its keys in their order."""
    if language == JSON:
        plain = json.dumps(value, indent=2, ensure_ascii=False)
        # Readers of JSON5 take these two for ends of lines, also within a text.
        return plain.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029") + "\n"
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """Writes what is there twice twice: other readers know no anchors."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    text: str = yaml.dump(value, Dumper=Dumper, allow_unicode=True, sort_keys=False)
    return text


# A session as a document.


SETTINGS = "settings."
_AUTO_RESIZE = "auto_resize"
#: Registers that ``harn`` has under their names.
_REGISTERS = ("scratchpad", "system_prompt", "task", "tasks", "model", "thinking", "tools")
_FACTS = ("agent_name", "agent_label", "definition")


def dump_state(session: Session, *, plain: bool = False) -> Json:
    """Return a session as Agently keeps it; ``plain``: without what only harnpy reads."""
    created = session.event(1).stored()
    settings = _settings(session)
    state: Json = {
        "id": session.id,
        _AUTO_RESIZE: settings.pop(_AUTO_RESIZE, created.get(_AUTO_RESIZE, True)),
        "full_context": [_taken(message, plain) for message in session.history()],
        "context_window": [_taken(message, plain) for message in session.messages()],
        "memo": session.memo,
        "session_settings": settings,
    }
    if not plain:
        state["harn"] = {
            "revision": session.revision,
            "status": session.status,
            **{key: created[key] for key in _FACTS if key in created},
            "metadata": session.metadata,
            **{key: value for key in _REGISTERS if (value := session.get(key)) is not None},
        }
    return state


def _taken(message: Json, plain: bool) -> Json:
    """Return a message as Agently takes it: its content is a text, or a list of dicts.

    Another content stands in the message's own ``harn``, unless it is ``plain``.
    """
    content = message.get("content")
    if isinstance(content, str) or (isinstance(content, list) and all(map(_is_dict, content))):
        return message
    text = (
        "\n".join(map(str, content)) if isinstance(content, list) else "" if content is None else str(content)
    )
    own = {key: content for key in ("content",) if key in message}
    return {**message, "content": text, **({} if plain else {"harn": own})}


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def lost(session: Session, *, plain: bool = False) -> list[Loss]:
    """Return what of a session isn't in `dump_state`."""
    kept = [admission.CUTS, admission.MEMO, admission.SETTINGS]
    return admission.lost(session, kept if plain else [*kept, admission.REGISTERS, admission.STATUSES])


def load_state(state: Any, store: Store, world: World, id: str | None = None) -> StoredSession:
    """Make a session of a file's value, under ``id`` (None: its own, else a new one).

    Nothing is resized. Raises `TransferError`, its `TransferTypeError`, `EventRejected` and `SessionExists`;
    nothing is stored then.
    """
    full, window = _lists(state)
    harn = _harn(state)
    facts = {key: harn[key] for key in _FACTS if key in harn}
    revision = harn.get("revision")
    if isinstance(revision, int) and revision > 1:
        facts[SAVES_BEFORE] = revision - 1
    name = id or (str(state["id"]) if state.get("id") is not None else world.ids.new())
    log = NewLog(name, world, facts)
    log.add(*history(full, window, 1))
    for key, value in _registers(state, harn).items():
        log.add(EventDraft(kinds.REGISTER_SET, {"key": key, "value": value, "version": 1}))
    status = harn.get("status", ACTIVE)
    if status != ACTIVE:
        check_transition(name, ACTIVE, status)
        log.add(EventDraft(kinds.STATUS_CHANGED, {"from": ACTIVE, "to": status}))
    return log.store(store)


def load_into(session: Session, state: Any) -> None:
    """Give a session the two lists, memo and settings of a file's value, in one append. The log keeps what
    was; the id stays, and what the value has no key for. Nothing is resized. Raises `TransferError`,
    `TransferTypeError` and `EventRejected`."""
    full, window = _lists(state)
    registers = _registers(state, _harn(state))
    if "memo" in state:
        registers["memo"] = state["memo"]
    if _AUTO_RESIZE in state and bool(state[_AUTO_RESIZE]) != session.auto_resize:
        registers[f"{SETTINGS}{_AUTO_RESIZE}"] = bool(state[_AUTO_RESIZE])
    news = (session.setting(*item) for item in registers.items() if item[1] != session.get(item[0]))
    session.append(*history(full, window, session.version), *news)


def dumps(session: Session, language: str = JSON, *, plain: bool = False) -> str:
    """Return the text of `dump_state` in JSON or YAML."""
    return write_text(dump_state(session, plain=plain), language)


def history(full: list[Json], window: list[Json], version: int) -> list[EventDraft]:
    """Return the drafts that make a session behind event ``version`` have these two lists of messages.

    What ends both is in the log once; what else the window shows takes the place of the rest.
    """
    same = _same_end(full, window)
    split, end = version + len(full) - same, version + len(full)
    data: Json = {"messages": [{"message": message} for message in window[: len(window) - same]]}
    if same:
        data["messages"].append([split + 1, end])
    if split > version:
        data["history"] = [[version + 1, split]]
    data["reason"] = "import"
    messages = [EventDraft(kinds.MESSAGE_ADDED, message) for message in full]
    for message in window:  # some of them are in the cut alone, which isn't looked into
        EventDraft(kinds.MESSAGE_ADDED, message).check()
    return [*messages, EventDraft(kinds.HISTORY_REPLACED, Cut.restored(data))]


def _same_end(full: list[Json], window: list[Json]) -> int:
    """Return how many messages at the end the lists have in common."""
    count = 0
    for ours, shown in zip(reversed(full), reversed(window), strict=False):
        if ours != shown:
            break
        count += 1
    return count


def _lists(state: Any) -> tuple[list[Json], list[Json]]:
    """Return the full context and the window of a file's value."""
    if not isinstance(state, dict):
        raise TransferTypeError(
            f"Cannot load JSON Session data, expect dictionary data but got: {type(state).__name__}"
        )
    full = _messages(state, "full_context", [])
    former = state.get("window_context", full)  # its older name
    return full, _messages(state, "context_window", former)


def _messages(state: Json, key: str, default: Any) -> list[Json]:
    given = state.get(key, default)
    if not isinstance(given, list) or not all(isinstance(message, dict) for message in given):
        raise TransferTypeError(
            f"Cannot load Session data, expect key '{key}' as a sequence of chat messages."
        )
    messages = [{"role": "user", **_given(message)} for message in given]
    for number, message in enumerate(messages, 1):
        if not isinstance(message["role"], str):
            raise TransferError(f"message {number} of '{key}' has a role that is no text")
    return messages


def _given(message: Json) -> Json:
    """Return the message of which `_taken` made this one."""
    own = message.get("harn")
    if not isinstance(own, dict):
        return message
    return {key: value for key, value in message.items() if key not in ("harn", "content")} | own


def _harn(state: Json) -> Json:
    harn = state.get("harn")
    return harn if isinstance(harn, dict) else {}


def _registers(state: Json, harn: Json) -> Json:
    """Return what the file says of registers, by key."""
    found: Json = {}
    if state.get("memo") is not None:
        found["memo"] = state["memo"]
    if _AUTO_RESIZE in state and not state[_AUTO_RESIZE]:
        found[f"{SETTINGS}{_AUTO_RESIZE}"] = False
    for key, value in _given_settings(state).items():
        name = key.removeprefix("session.").removeprefix(SETTINGS)
        if value is not None:
            found[f"{SETTINGS}{name}"] = value
    metadata = harn.get("metadata")
    if isinstance(metadata, dict):
        found |= {f"{METADATA}{key}": value for key, value in metadata.items() if value is not None}
    return found | {key: harn[key] for key in _REGISTERS if harn.get(key) is not None}


def _given_settings(state: Json) -> Json:
    settings = state.get("session_settings")
    if settings is None:
        return {}
    if not isinstance(settings, dict):
        raise TransferTypeError("Cannot load Session data, expect key 'session_settings' as a dictionary.")
    return settings


def _settings(session: Session) -> Json:
    return {
        key.removeprefix(SETTINGS): session.get(key)
        for key, known in session.view.registers.items()
        if key.startswith(SETTINGS) and known.value is not None
    }
