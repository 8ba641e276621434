"""Files of messages, as the SDKs of OpenAI, Anthropic, Google and Ollama send them, and data sets have them.

A file is recognised by what is in it. Its messages stand in a row, so that an entry is known by its place and
its content. Spec: 10 §C17.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import shape_problem
from harnpy.formats.json import ordered_json
from harnpy.session import events as kinds
from harnpy.session.errors import TransferError
from harnpy.session.events import MICROS, read_stamp
from harnpy.session.registers import METADATA
from harnpy.session.transfer import admission
from harnpy.session.transfer.admission import Loss, counted
from harnpy.session.transfer.anthropic_messages import ANTHROPIC
from harnpy.session.transfer.blocks import blocks_of, text_of
from harnpy.session.transfer.foreign import Conversation, Rows, read_line
from harnpy.session.transfer.listed import WRITTEN, prompt_of
from harnpy.session.transfer.message_formats import (
    CHAT,
    COMMON,
    GEMINI,
    OLLAMA,
    REASONING,
    SHAREGPT,
    SYSTEMS,
    Family,
    Page,
    Talk,
    spelled,
)
from harnpy.session.transfer.response_items import RESPONSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.session.log import Session
    from harnpy.session.transfer.foreign import Json

#: By their names, the most general first: what could be of several is of the first of them.
FAMILIES = {
    "openai-chat": CHAT,
    "anthropic": ANTHROPIC,
    "ollama": OLLAMA,
    "openai-responses": RESPONSES,
    "gemini": GEMINI,
    "sharegpt": SHAREGPT,
}
#: The longest id that is made of a file's name.
_LONGEST = 120
_DIGEST = 8
#: The latest time, in seconds since 1970, that is believed: one in milliseconds is none.
_LATEST = 1e11
_LINES = ".jsonl"
_MODEL = f"{METADATA}model"


class Document(NamedTuple):
    """A conversation as a file has it. ``name`` is which one of the file, ``says`` its format, if its form
    does. What else the file has stands in ``rest``, what is told of the last message in ``told``."""

    name: str
    items: Sequence[Any]
    says: str | None = None
    id: str | None = None
    model: str | None = None
    system: Any = None
    time: Any = None
    told: Json | None = None
    rest: Sequence[str] = ()
    #: How a message of errors begins.
    where: str = ""


def is_row(row: Any) -> bool:
    """Return whether a line of a file holds a conversation, or a message of one."""
    if not isinstance(row, dict):
        return False
    is_item = "type" not in row or "call_id" in row or row.keys() >= {"role", "content"}
    return _is_wrapped(row) or (is_item and bool(_may_be(row)))


def is_file(text: str) -> bool:
    """Return whether a JSON text is a file of messages."""
    try:
        return format_in(text) is not None
    except TransferError:
        return True  # of several formats


def format_in(text: str) -> str | None:
    """Return the format of a file of messages; None if it is none.

    Raises `TransferError` if it is of several, between which its messages mean something else.
    """
    rows = Rows(text, partial=True)
    try:
        documents = _documents(text, "", rows)
    except TransferError:
        return None
    known = (item for document in documents for item in document.items if isinstance(item, dict))
    return _format_of(documents) if any(map(_may_be, known)) else None


def conversations(text: str, path: str, format: str, partial: bool = False) -> list[Conversation]:
    """Return the conversations of a file in that format, or in the one that it has.

    Where there is no id in it, ids are made of the name in ``path``; it is empty for a text that comes from
    no file. ``partial``: leave out what can't be read, and list it. Raises `TransferError`.
    """
    rows = Rows(text, partial)
    documents = _documents(text, path, rows)
    torn = list(rows.notes)
    chosen = format if format in FAMILIES else _format_of(documents)
    found = [_conversation(document, chosen, rows) for document in documents]
    for id, count in Counter(each.id for each in found).items():
        if count > 1:
            raise TransferError(f"{count} conversations in it have the id {id}")
    if not any(each.entries for each in found):
        raise TransferError("there are no messages in it")
    full = [each for each in found if each.entries]
    losses = [Loss(full[0].id, "lines", note) for note in torn]
    losses += [Loss(each.id, "conversations", "no messages") for each in found if not each.entries]
    return [full[0]._replace(losses=[*full[0].losses, *losses]), *full[1:]]


def _documents(text: str, path: str, rows: Rows) -> list[Document]:
    """Return the conversations of a text: JSON, or lines of it."""
    name, is_lines = _name_of(path, text), path.endswith(_LINES)
    try:
        value = read_line(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        is_lines = True
        if "\n" not in text.strip() or text.lstrip()[:1] == "[":
            raise TransferError("this isn't JSON") from None
    if not is_lines:
        return _split(value, name)
    lines = list(rows.each())
    if not any(_is_wrapped(row) for _, row in lines):
        return [Document(name, [row for _, row in lines])]
    found = []
    for number, row in lines:
        try:
            found.append(_document(row, f"{name}-{number}")._replace(where=f"line {number}: "))
        except TransferError as error:
            rows.skip(f"line {number}: {error}")
    return found


def _split(value: Any, name: str) -> list[Document]:
    """Return the conversations that a value has: it is one, or a list of them."""
    if isinstance(value, dict):
        return [_document(value, name)]
    if not isinstance(value, list):
        raise TransferError("this is neither a list of messages nor an object with one")
    if not value or not all(isinstance(each, dict) and _is_wrapped(each) for each in value):
        return [Document(name, value)]
    if all(each.get("type") == "message" for each in value):
        return [Document(name, value, "anthropic")]
    return [
        _document(each, f"{name}-{number}")._replace(where=f"conversation {number}: ")
        for number, each in enumerate(value, 1)
    ]


# What is in a file.


#: The keys under which a file has a conversation.
_KEYS = ("messages", "conversations", "contents", "candidates", "choices", "output", "input")


def _is_wrapped(value: Json) -> bool:
    """Return whether an object is a conversation with what else belongs to it, and no message of one."""
    if any(isinstance(value.get(key), list) for key in _KEYS) and "call_id" not in value:
        return True
    if value.get("type") == "message" and "usage" in value:
        return True
    is_list = value.get("object") == "list" and isinstance(value.get("data"), list)
    return is_list or ("done" in value and isinstance(value.get("message"), dict))


def _document(value: Json, name: str) -> Document:
    """Return what an object says of its conversation."""
    known = {"id", "model", "object", "created", "created_at", "usage", "type"}
    model = value.get("model")
    made = Document(
        name,
        [],
        id=value["id"] if isinstance(value.get("id"), str) else None,
        model=model if isinstance(model, str) else None,
        time=value.get("created", value.get("created_at")),
        told={"usage": value["usage"]} if isinstance(value.get("usage"), dict) else None,
    )
    if "conversations" in value:
        known |= {"conversations", "system"}
        made = made._replace(
            items=_list(value["conversations"], "conversations"), says="sharegpt", system=value.get("system")
        )
    elif "contents" in value or "candidates" in value:
        known |= {"contents", "candidates", "responseId", "response_id", "modelVersion", "model_version"}
        known |= {"systemInstruction", "system_instruction", "usageMetadata", "usage_metadata"}
        made = _of_gemini(value, made)
    elif "choices" in value:
        known |= {"choices", "messages"}
        made = _of_completion(value, made)
    elif value.get("object") in ("response", "list") or isinstance(
        value.get("output", value.get("input")), list
    ):
        known |= {"output", "input", "instructions", "data", "first_id", "last_id", "status"}
        known |= {"has_more"} if not value.get("has_more") else set()
        made = _of_responses(value, made)
    elif value.get("type") == "message":
        made = made._replace(items=[value], says="anthropic", told=None)
        known |= value.keys()
    elif "done" in value and isinstance(value.get("message"), dict):
        counts = {key: value[key] for key in ("prompt_eval_count", "eval_count") if value.get(key)}
        known |= {"message", "messages", "done", "done_reason", *counts}
        items = [*_list(value.get("messages") or [], "messages"), value["message"]]
        made = made._replace(items=items, says="ollama", told={"usage": counts} if counts else None)
    elif "messages" in value:
        known |= {"messages", "system"}
        items, system = _list(value["messages"], "messages"), value.get("system")
        made = made._replace(items=items, system=system, says=None if system is None else "anthropic")
    else:
        raise TransferError(f"there is no conversation in it: it has none of {', '.join(_KEYS)}")
    rest = [key for key, each in value.items() if key not in known and each not in (None, [], {}, "")]
    return made._replace(rest=[*made.rest, *rest])


def _list(value: Any, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise TransferError(f"`{key}` is no list")
    return value


def _of_completion(value: Json, made: Document) -> Document:
    choices = _list(value["choices"], "choices")
    said = [choice.get("message") for choice in choices if isinstance(choice, dict)]
    if not said or not isinstance(said[0], dict):
        raise TransferError("its first choice has no message")
    reason = choices[0].get("finish_reason")
    told = {**(made.told or {}), **({"stop_reason": reason} if reason else {})}
    asked = _list(value.get("messages", []), "messages")
    rest = ["other choices"] * (len(choices) - 1)
    return made._replace(items=[*asked, said[0]], says="openai-chat", told=told, rest=rest)


def _of_gemini(value: Json, made: Document) -> Document:
    items = list(_list(value.get("contents", []), "contents"))
    candidates = _list(value.get("candidates", []), "candidates")
    if candidates:
        content = candidates[0].get("content") if isinstance(candidates[0], dict) else None
        if not isinstance(content, dict):
            raise TransferError("its first candidate has no content")
        items.append({"role": "model", **content})
    system = value.get("systemInstruction", value.get("system_instruction"))
    usage = value.get("usageMetadata", value.get("usage_metadata"))
    model = value.get("modelVersion", value.get("model_version", made.model))
    id = value.get("responseId", value.get("response_id"))
    return made._replace(
        items=items,
        says="gemini",
        id=id if isinstance(id, str) else made.id,
        model=model.removeprefix("models/") if isinstance(model, str) else None,
        system=system.get("parts") if isinstance(system, dict) else system,
        told={"usage": usage} if isinstance(usage, dict) else None,
    )


def _of_responses(value: Json, made: Document) -> Document:
    if value.get("object") == "list":
        return made._replace(items=_in_order(_list(value.get("data"), "data")))
    given = value.get("input", [])
    asked = [{"role": "user", "content": given}] if isinstance(given, str) else _list(given, "input")
    items = [*asked, *_list(value.get("output", []), "output")]
    return made._replace(items=items, says="openai-responses", system=value.get("instructions"))


def _in_order(items: list[Any]) -> list[Any]:
    """Return the items of a list in the order in which they were said: OpenAI lists the newest first."""
    outputs: set[Any] = set()
    for item in items:
        id = item.get("call_id") if isinstance(item, dict) else None
        if id is not None and str(item.get("type")).endswith("_output"):
            outputs.add(str(id))
        elif str(id) in outputs:
            return items[::-1]
    roles = [item["role"] for item in items if isinstance(item, dict) and isinstance(item.get("role"), str)]
    return items[::-1] if roles and roles[0] == "assistant" and roles[-1] != "assistant" else items


# Whose messages they are.


#: Which formats have parts of a content of these types.
_PARTS = (
    ({"openai-chat", "anthropic"}, ("text",)),
    ({"openai-chat"}, ("image_url", "input_audio", "file", "refusal")),
    ({"openai-responses"}, ("input_text", "output_text", "input_image", "input_file")),
    (
        {"anthropic"},
        ("image", "document", "tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"),
    ),
)


def _may_be(item: Json) -> set[str]:
    """Return the formats that a message could be of, by its form."""
    if "from" in item and "value" in item:
        return {"sharegpt"}
    if "parts" in item:
        return {"gemini"}
    kind, role = item.get("type"), item.get("role")
    if isinstance(kind, str) and (role is None or kind != "message"):
        return {"openai-responses"}
    if kind == "message":
        return {"anthropic"} if "stop_reason" in item or "usage" in item else {"openai-responses"}
    found = {name for name, family in FAMILIES.items() if role in family.roles} - {"gemini", "sharegpt"}
    if item.keys() & {"tool_call_id", "function_call", "reasoning_content", "refusal"}:
        found &= {"openai-chat"} if "tool_name" not in item else {"ollama"}
    if item.keys() & {"images", "thinking", "tool_name"}:
        found &= {"ollama"}
    if role == "tool":
        found &= {"openai-chat"} if item.get("tool_call_id") and "tool_name" not in item else {"ollama"}
    if isinstance(item.get("tool_calls"), list) and item["tool_calls"]:
        found &= {_caller(call) for call in item["tool_calls"]}
    content = item.get("content")
    for part in content if isinstance(content, list) else []:
        type = part.get("type") if isinstance(part, dict) else None
        for names, types in _PARTS:
            if type in types:
                found &= names
    return found


def _caller(call: Any) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    is_object = isinstance(function, dict) and isinstance(function.get("arguments"), dict)
    return "ollama" if is_object else "openai-chat"


def _format_of(documents: Sequence[Document]) -> str:
    """Return the format of all of a file's conversations. Raises `TransferError`."""
    found = set(FAMILIES)
    seen: set[str] = set()
    for document in documents:
        if document.says is not None:
            found &= {document.says}
            seen |= {document.says}
            continue
        for item in document.items:
            may_be = _may_be(item) if isinstance(item, dict) else set()
            found &= may_be or found
            seen |= may_be if len(may_be) == 1 else set()
    if found:
        return next(name for name in FAMILIES if name in found)
    told = " and of ".join(sorted(seen)) or "no format that is known"
    raise TransferError(f"it has messages of {told}: name the one that it is by `format` or `--format`")


# A conversation made of what is there.


def _conversation(document: Document, format: str, rows: Rows) -> Conversation:
    family = FAMILIES[format]
    talk = Talk(format, family, document.model)
    noted = len(rows.notes)
    _instruct(talk, document)
    for number, item in enumerate(document.items, 1):
        try:
            if not isinstance(item, dict):
                raise TransferError("it is no object")
            family.read(talk, item)
        except TransferError as error:
            rows.skip(f"{document.where}message {number}: {error}")
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            rows.skip(f"{document.where}message {number}: {shape_problem(error)}")
    talk.mark(document.told or {})
    for key in document.rest:
        talk.lose("keys of the file", name=key)
    model = {"model": document.model} if document.model else {}
    made = talk.conversation((document.id or document.name).removeprefix(f"{format}-"), model)
    entries = [entry._replace(time=_time(document.time)) for entry in made.entries]
    losses = [Loss(made.id, "messages", note) for note in rows.notes[noted:]]
    return made._replace(entries=entries, losses=[*losses, *made.losses], is_named=False)


def _time(given: Any) -> int:
    """Return a time in microseconds since 1970, 0 for none."""
    if isinstance(given, str):
        try:
            return max(0, read_stamp(given))
        except ValueError:
            return 0
    return round(given * MICROS) if type(given) in (int, float) and 0 < given < _LATEST else 0


def _instruct(talk: Talk, document: Document) -> None:
    system = document.system
    if system is None or system == "":
        return
    if isinstance(system, list) and all(isinstance(part, dict) for part in system):
        parts = [spelled(part) for part in system]
        for part in parts:
            if not isinstance(part.get("text", ""), str):
                raise TransferError(f"{document.where}a text of the system prompt is no text")
            talk.lose_keys("keys of the system prompt", part, ("type", "text"))
        talk.instruct(text_of(parts))
    elif isinstance(system, str):
        talk.instruct(system)
    else:
        raise TransferError(f"{document.where}the system prompt is neither a text nor a list of texts")


def _name_of(path: str, text: str) -> str:
    """Return what a file's conversations are called that have no id."""
    if not path:
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    stem = posixpath.splitext(posixpath.basename(path))[0]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem)[:_LONGEST].strip("-") or "messages"


# Writing.


def dumps(session: Session, format: str) -> str:
    """Return what a model is shown of a session, on one line, as the service takes it."""
    return ordered_json(_written(session, format)[0]) + "\n"


def lost(session: Session, format: str) -> list[Loss]:
    """Return what of a session its messages in that format don't hold."""
    value, page = _written(session, format)
    model = (_MODEL,) if value.get("model") == session.metadata.get("model") else ()
    found = admission.lost(session, (), (*WRITTEN, *model))
    said = [(kind, count) for kind, count in sorted(page.lost.items()) if count]
    return found + [Loss(session.id, kind, counted(count, "time")) for kind, count in said]


def _written(session: Session, format: str) -> tuple[Json, Page]:
    family, page = FAMILIES[format], Page()
    system, stood = prompt_of(session, format)
    entries = session.entries()
    origin = next((o for each in reversed(entries) if (o := _ours(each.message, family))), None)
    told = session.metadata.get("model") if session.metadata.get("source") == format else None
    model = origin["model"] if origin else told
    head: Json = {"model": model} if model else {}
    if system and stood in SYSTEMS:
        page.messages.append({**family.context(system), "role": stood})
    elif system and family.head is not None:
        head[family.head] = {"parts": [{"text": system}]} if format == "gemini" else system
    elif system:
        page.messages.append(family.context(system))
    for entry in entries:
        message = entry.message
        blocks = blocks_of(message)
        page.calls |= {block["id"]: block for block in blocks if block.get("type") == "tool_use"}
        if entry.event is not None and entry.event.metadata.get("usage"):
            page.lost["usage of answers"] += 1
        if entry.event_type == kinds.CONTEXT_ADDED:
            _write_context(page, family, text_of(message.get("content")))
            continue
        whose = message.get("origin")
        if format not in _WITH_REASONING and message.keys() & set(REASONING):
            page.lost["reasoning that nobody signed"] += 1
        if family.address is None and whose is not None and message.keys() & set(REASONING):
            page.lost["whose reasoning it is"] += 1
        elif family.address is not None and whose not in (None, origin):
            page.lost["thoughts and items of other services"] += sum(not _is_common(b) for b in blocks)
            blocks = list(filter(_is_common, blocks))
            message = {key: message[key] for key in ("role", "name") if key in message}
        if format != "openai-chat" and message.get("name") not in (
            None,
            "tool" if format == "sharegpt" else None,
        ):
            page.lost["names of writers"] += 1
        family.write(page, "assistant" if message["role"] == "assistant" else "user", blocks, message)
    called = {b.get("id") for m in session.messages() for b in blocks_of(m) if b.get("type") == "tool_use"}
    page.lost["calls without results"] += len(called - page.calls.keys())
    return {**head, family.key: page.messages}, page


#: Formats that have a place for what a model thought, signed by nobody.
_WITH_REASONING = ("openai-chat", "ollama")


def _ours(message: Json, family: Family) -> Json | None:
    """Return the origin of a message, if it is of the service that takes this format."""
    origin: Json | None = message.get("origin")
    if family.address is None or origin is None:
        return None
    is_ours = (origin["dialect"], origin["base_url"]) == (family.dialect, family.address)
    return origin if is_ours else None


def _is_common(block: Json) -> bool:
    return block.get("type") in COMMON


def _write_context(page: Page, family: Family, text: str) -> None:
    made = family.context(text)
    speaker = made.get("role", made.get("from"))
    if speaker == "user":
        page.lost["context that becomes the user's"] += 1
    elif speaker == "system" and not page.messages:
        page.lost["context that becomes the system prompt"] += 1
    page.messages.append(made)
