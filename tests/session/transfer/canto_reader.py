"""What Canto shows a model of a log of its own, written from 10 §A1 alone: an independent check of C17.

Nothing here is harnpy's. An entry is ``[message, kind of context or None, placement, id of its event]``.
"""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
Entry = list[Any]

PREFIX = ("bootstrap", "harness", "summary", "working_set")
SNAPSHOTS = ("compaction_triggered", "projection_snapshotted")
BACK = "The following is a summary of a branch that this conversation came back from:"


def effective_messages(text: str) -> list[Json]:
    """The model-visible messages of a log (A1.8)."""
    events = [json.loads(line) for line in text.split("\n") if line.strip()]
    branch = active_branch(events)
    shown, rest = [], branch
    for event in reversed(branch):
        data = event["data"]
        if event["type"] not in SNAPSHOTS or not (data.get("entries") or data.get("messages")):
            continue
        if cutoff := data.get("cutoff_event_id"):
            ids = [each["id"] for each in branch]
            assert cutoff in ids, f"compaction cutoff {cutoff!r} not found"
            shown, rest = snapshot(data), branch[ids.index(cutoff) + 1 :]
            break
    entries = shown + [found for event in rest if (found := entry(event)) is not None]
    entries = normalised(repaired(entries, branch))
    prefix = [each[0] for each in entries if each[2] == "prefix"]
    return prefix + [each[0] for each in entries if each[2] != "prefix"]


def active_branch(events: list[Json]) -> list[Json]:
    """From the leaf to the root, without moves (A1.8 step 1, A1.9)."""
    by_id = {event["id"]: event for event in events}
    leaf = None
    for event in events:
        leaf = event["data"].get("target_event_id") if event["type"] == "leaf_moved" else event["id"]
    branch: list[Json] = []
    while leaf:
        event = by_id[leaf]
        assert event not in branch, "cycle detected"
        branch.insert(0, event)
        leaf = event.get("parent_id")
    return [event for event in branch if event["type"] != "leaf_moved"]


def snapshot(data: Json) -> list[Entry]:
    entries = data.get("entries") or [{"message": message} for message in data["messages"]]
    marks = ("message", "context_kind", "placement", "event_id")
    found = [[each.get(mark) for mark in marks] for each in entries]
    modified = sorted(set(data.get("modified_files", ())))
    read = sorted(set(data.get("read_files", ())) - set(modified))
    lines = ["Modified files:", *(f"- {path}" for path in modified[:5])] if modified else []
    lines += ["Read-only files:", *(f"- {path}" for path in read[:5])] if read else []
    if lines:
        text = "\n".join(["<working_set>", *lines, "</working_set>"])
        at = next((n for n, each in enumerate(found) if each[2] != "prefix"), len(found))
        found.insert(at, [{"role": "user", "content": text}, "working_set", "prefix", None])
    return found


def entry(event: Json) -> Entry | None:
    """The entry of an event; none of one that no model sees."""
    type, data, id = event["type"], event["data"], event["id"]
    if type == "message_added":
        return [data, None, None, id] if isinstance(data, dict) and data.get("role") else None
    if type == "context_added":
        kind = data.get("kind") or "generic"
        return [{"role": "user", "content": data["content"]}, kind, data.get("placement"), id]
    if type == "branch_summary":
        text = f"{BACK}\n<summary>\n{data['summary']}\n</summary>"
        return [{"role": "user", "content": text}, None, None, id]
    return None


def repaired(entries: list[Entry], branch: list[Json]) -> list[Entry]:
    """Each call with its result behind it, or gone (A1.8 step 5)."""
    place = {event["id"]: at for at, event in enumerate(branch)}
    found, at = [], 0
    while at < len(entries):
        head, *marks = entries[at]
        end = at + 1
        while end < len(entries) and entries[end][0]["role"] == "tool":
            end += 1
        results = entries[at + 1 : end]
        at, calls, kept, answers = end, head.get("tool_calls") or [], [], []
        if head["role"] == "tool":
            continue
        start = place.get(marks[-1], len(branch))
        stop = place.get(entries[end][3], len(branch)) if end < len(entries) else len(branch)
        for call in calls:
            id = call.get("id")
            given = next((each for each in results if id and each[0].get("tool_id") == id), None)
            if given is not None:
                results.remove(given)
            elif (output := recorded(branch[start + 1 : stop], id)) is not None:
                given = [{"role": "tool", "content": output, "tool_id": id}, None, None, None]
            if given is not None:
                kept.append(call)
                answers.append(given)
        message = {key: value for key, value in head.items() if key != "tool_calls"}
        found += [[message | ({"tool_calls": kept} if kept else {}), *marks], *answers]
    return found


def recorded(events: list[Json], id: str | None) -> str | None:
    for event in events:
        if event["type"] == "tool_completed" and id and event["data"]["id"] == id:
            output, error = event["data"].get("output", ""), event["data"].get("error", "")
            return (output if error in output else f"{output}\nError: {error}").strip()
    return None


def normalised(entries: list[Entry]) -> list[Entry]:
    """Roles and marks that a model's request knows (A1.8 step 6)."""
    found = []
    for message, kind, place, _ in entries:
        if message["role"] in ("system", "developer"):
            kept = {key: value for key, value in message.items() if key != "cache_control"}
            message = kept | {"role": "user"}
        text = message.get("content") or ""
        marked = [mark for mark in ("conversation_summary", "working_set") if f"<{mark}>" in text]
        if kind is None and marked and message["role"] == "user":
            kind, place = marked[0].removeprefix("conversation_"), "prefix"
        if message["role"] in ("user", "tool") or (message["role"] == "assistant" and has_payload(message)):
            found.append([message, kind, place or ("prefix" if kind in PREFIX else "history")])
    return found


def has_payload(message: Json) -> bool:
    texts = [message.get("content") or "", message.get("reasoning") or ""]
    texts += [part.get("text", "") for part in message.get("parts", ()) if not message.get("content")]
    return any(map(str.strip, texts)) or bool(message.get("thinking_blocks") or message.get("tool_calls"))
