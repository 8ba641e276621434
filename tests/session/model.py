"""What sessions mean, in the plainest words: the model that `test_model` holds a `SessionRegistry` against.

Written from 08 §1 and §4 alone; it knows neither harnpy nor logs nor views. A session is a list
of entries, messages and lifecycle notes, in the order in which its transcript shows them. A verb that the
reference refuses raises `Refused` with the text, before it has changed anything.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]
Message = dict[str, Any]


class Refused(Exception):
    """The call fails with this text."""


# What a transcript is made of.


@dataclass(frozen=True, eq=False)
class Said:
    """A message. Entries are told apart by identity: a fork shares them, as it shares the events' ids."""

    message: Message
    stands_for: int = 1
    """How many messages of the history: a summary stands for those that it summarises."""

    def event(self) -> Json:
        message = self.message
        is_result = message["role"] == "tool_result"
        return {
            "kind": "tool_result" if is_result else "message",
            "role": message["role"],
            "visibility": "internal" if is_result else "public",
            "text": rendered(message.get("content")),
            "metadata": message.get("metadata"),
        }


@dataclass(frozen=True, eq=False)
class Noted:
    """A lifecycle event."""

    kind: str
    text: str
    metadata: Json

    def event(self) -> Json:
        aside = {"role": "system", "visibility": "internal"}
        return {"kind": self.kind, "text": self.text, "metadata": self.metadata, **aside}


Entry = Said | Noted


def rendered(content: Any) -> str:
    """The text of an event, for the contents that the runs have (08 §2.2)."""
    if not isinstance(content, list):
        return "" if content is None else str(content)
    return " ".join(text for text in map(rendered_block, content) if text)


def rendered_block(block: Json) -> str:
    kind: str = block["type"]
    if kind in ("tool_call", "tool_result"):
        return f"<{kind}:{block.get('name', 'tool')}>"
    return block["text"] if kind == "text" else f"<{kind}>"


# Calls and their results.


def call_ids(message: Message) -> list[str | None]:
    calls = [*(message.get("tool_calls") or []), *blocks_of(message, "tool_use", "tool_call")]
    return [call.get("id") for call in calls]


def result_ids(message: Message) -> list[str | None]:
    """Which calls a message answers; None is an answer that doesn't say."""
    if message["role"] in ("tool", "tool_result"):
        return [message.get("tool_call_id") or message.get("tool_use_id")]
    return [block.get("tool_use_id") for block in blocks_of(message, "tool_result")]


def blocks_of(message: Message, *kinds: str) -> list[Json]:
    content = message.get("content")
    return [block for block in content if block["type"] in kinds] if isinstance(content, list) else []


def pairs(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """The positions of each call and its result: by id, and by position if the result has no id."""
    found: list[tuple[int, int]] = []
    unanswered: list[tuple[int, str | None]] = []
    calls: list[tuple[int, str | None]] = []
    for position, message in enumerate(messages):
        for id in result_ids(message):
            call = answered(id, calls if id else unanswered)
            if call is not None:
                found.append((call[0], position))
                unanswered = [other for other in unanswered if other is not call]
        here = [(position, id) for id in call_ids(message)]
        calls.extend(here)
        unanswered.extend(here)
    return found


def answered(id: str | None, calls: list[tuple[int, str | None]]) -> tuple[int, str | None] | None:
    """The call that a result means: the latest of its id; without id, the first of the latest message."""
    if id:
        return next((call for call in reversed(calls) if call[1] == id), None)
    return next((call for call in calls if call[0] == calls[-1][0]), None)


def orphans(messages: Sequence[Message]) -> set[int]:
    paired = {result for _, result in pairs(messages)}
    return {at for at, message in enumerate(messages) if result_ids(message)} - paired


def parted(archived: Sequence[Message], kept: Sequence[Message]) -> set[str | None]:
    """The calls that were archived while a result of theirs was kept, by what the ids alone say."""
    gone = {id for message in archived for id in call_ids(message) if id}
    here = {id for message in kept for id in call_ids(message)}
    return {id for message in kept for id in result_ids(message)} & gone - here


# Compaction: where to cut (08 §4.3, `keep_first` being 0 for sessions).


def cut_of(messages: Sequence[Message], keep_last: int) -> int:
    """How many messages a compaction archives; 0 if there is nothing to do."""
    if len(messages) <= keep_last:
        return 0
    split = start_of_turn(messages, len(messages) - keep_last)
    return between_calls(messages, start_of_tool_turn(messages, split))


def start_of_turn(messages: Sequence[Message], wanted: int) -> int:
    split = wanted
    while 0 < split < len(messages) and messages[split]["role"] != "user":
        split -= 1
    return split or wanted


def start_of_tool_turn(messages: Sequence[Message], split: int) -> int:
    first = next((at for at in range(split, len(messages)) if of_tool_turn(messages[at])), 0)
    return next((at for at in range(first - 1, 0, -1) if messages[at]["role"] == "user"), split)


def of_tool_turn(message: Message) -> bool:
    return message["role"] == "tool" or "tool_calls" in message or message.get("reasoning") is not None


def between_calls(messages: Sequence[Message], split: int) -> int:
    """The cut moved to where no call and its result part: back if anything is archived then, else on."""
    linked = pairs(messages)
    back, on = split, split
    while parted := [call for call, result in linked if call < back <= result]:
        back = min(parted)
    while parted := [result for call, result in linked if call < on <= result]:
        on = max(parted) + 1
    split = back or on
    while split in orphans(messages):
        split += 1
    return split


# Compaction: what takes the place of the archived messages (08 §4.4).

Callback = Callable[[Any], Any]
KEEP_LAST = 12
TOOL_OUTPUT_MAX = 16000


def estimate(messages: Sequence[Message]) -> int:
    contents = [message.get("content") for message in messages]
    return sum(size(content) for content in contents if isinstance(content, str)) // 4


def size(text: str) -> int:
    return len(text.encode())


def head(text: str, limit: int) -> str:
    return text.encode()[:limit].decode(errors="ignore")


@dataclass(frozen=True)
class Compactor:
    """Turns archived messages into a summary, by the options of one call."""

    opts: Json
    summarize: Callable[[str], str] | None

    @property
    def strategy(self) -> str:
        implied = "custom" if self.opts.get("custom_compactor") else "observation_mask"
        return self.opts.get("compact_strategy") or implied

    def summary(self, archived: list[Message], rest: list[Message]) -> str:
        text = self.by(self.strategy, archived, len(archived), self.opts.get("mask_callback"))
        limit = self.opts.get("hard_limit_tokens")
        first = {"role": "user", "content": text}
        if limit is None or estimate([first, *rest]) <= limit:
            return text
        return self.by(self.opts.get("hard_limit_strategy") or "llm", [first], len(archived), None)

    def by(self, strategy: str, archived: list[Message], count: int, mask: Callback | None) -> str:
        if strategy == "truncate":
            return truncated(archived, count)
        if strategy == "observation_mask":
            return self.masked(archived, count, mask)
        if strategy == "custom":
            return self.custom(archived, count)
        return self.told_by_model(archived, count)

    def masked(self, archived: list[Message], count: int, mask: Callback | None) -> str:
        given = mask(deepcopy(archived)) if mask else None
        masks = given if isinstance(given, list) else []
        lines = [f"[auto-compacted {count} older messages via observation masking]"]
        for message, shown in zip(archived, [*masks, *[None] * len(archived)], strict=False):
            if isinstance(content := message.get("content"), str) and content:
                lines.append(self.observed(message["role"], content, message, shown))
        return "\n".join(lines)

    def observed(self, role: str, content: str, message: Message, mask: Any) -> str:
        if role == "assistant" or size(content) < 500:
            return f"[{role}] {content}"
        if isinstance(mask, str):
            return mask
        return self.compressed(message) or default_mask(role, content)

    def compressed(self, message: Message) -> str | None:
        role, content = message["role"], message["content"]
        compress = self.opts.get("compress_callback")
        limit = self.opts.get("tool_output_max_chars", TOOL_OUTPUT_MAX)
        if compress is None or role not in ("tool", "tool_result") or size(content) <= limit:
            return None
        try:
            text = compress({"tool_name": message.get("name", ""), "output": content, "max_chars": limit})
        except Exception:
            return None
        return f"[{role}] {text}" if isinstance(text, str) and text else None

    def custom(self, archived: list[Message], count: int) -> str:
        text = summary_text(self.opts["custom_compactor"](deepcopy(archived)))
        return (
            f"[auto-compacted {count} older messages]\n{text}" if text.strip() else truncated(archived, count)
        )

    def told_by_model(self, archived: list[Message], count: int) -> str:
        assert self.summarize
        reply = self.summarize(llm_prompt(archived, count)).strip()
        if reply:
            return f"[auto-compacted {count} older messages]\n{reply}"
        header = "[auto-compact fallback: LLM summarizer returned empty; "
        return truncated(archived, count, f"{header}{count} older messages abbreviated to ~500 chars each]")


def truncated(archived: list[Message], count: int, header: str = "") -> str:
    lines = [header or f"[auto-compacted {count} older messages via truncate strategy]"]
    told = [(message["role"], message.get("content")) for message in archived]
    texts = [(role, content) for role, content in told if isinstance(content, str) and content]
    lines.extend(f"[{role}] {shortened(content)}" for role, content in texts[:15])
    if count > 15:
        lines.append(f"... and {count - 15} more")
    return "\n".join(lines)


def shortened(content: str) -> str:
    if size(content) <= 500:
        return content
    return f"{head(content, 500)}... [truncated from {size(content)} chars]"


def default_mask(role: str, content: str) -> str:
    lines = content.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if len(lines) <= 3:
        return f"[{role}] {content}"
    return f"[{role}] {head(lines[0], 120)}... [{len(lines)} lines, {size(content)} chars masked]"


def summary_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict) and ("summary" in value or "text" in value):
        return str(value["summary"] if "summary" in value else value["text"])
    return value if isinstance(value, str) else json.dumps(value, indent=2, sort_keys=True)


def llm_prompt(archived: list[Message], count: int) -> str:
    contents = [(message["role"].upper(), message.get("content")) for message in archived]
    lines = [f"{role}: {content if isinstance(content, str) else ''}" for role, content in contents]
    return (
        "Write a summary of the archived messages below that lets another agent take over: keep goals, "
        "limits, decisions, finished tool work, open problems and next steps. Answer with the summary alone."
        f"\n\nArchived message count: {count}\n\nConversation:\n" + "\n".join(lines)
    )


def merged_summary(old: str | None, new: str) -> str:
    """The summary of both; that of a compaction is never blank."""
    if old is None or not old.strip():
        return new
    return old if old.strip() == new.strip() else f"{old}\n\n{new}"


# Sessions.

READ_ONLY = {"default_mount_mode": "read_only"}


@dataclass
class ModelSession:
    created_at: str
    entries: list[Entry] = field(default_factory=list)
    summary: str | None = None
    scratchpad: Json | None = None
    scratchpad_version: int = 0
    anchor: Json | None = None
    policy: Json = field(default_factory=lambda: dict(READ_ONLY))
    clients: dict[str, Json] = field(default_factory=dict)
    parent: str | None = None
    children: list[str] = field(default_factory=list)
    branched_at: int | None = None
    shows_parent: bool = False
    history: list[Message] = field(default_factory=list)
    """Every message since the last reset, up to where the session branched off."""
    ever: list[Message] = field(default_factory=list)

    @property
    def messages(self) -> list[Message]:
        return [entry.message for entry in self.entries if isinstance(entry, Said)]

    @property
    def controller(self) -> str | None:
        held = [id for id, client in self.clients.items() if client["mode"] == "controller"]
        return held[0] if held else None

    def say(self, message: Message) -> None:
        self.entries.append(Said(message))
        self.history.append(message)
        self.ever.append(message)

    def note(self, kind: str, text: str, metadata: Json) -> None:
        self.entries.append(Noted(kind, text, metadata))

    def drop_oldest(self, count: int) -> list[Said]:
        """Let the first ``count`` messages go; which they were."""
        gone = [entry for entry in self.entries if isinstance(entry, Said)][:count]
        self.entries = [entry for entry in self.entries if entry not in gone]
        return gone

    def first_message(self) -> int:
        return next(at for at, entry in enumerate(self.entries) if isinstance(entry, Said))


class Model:
    """Sessions in order of use, least recent first. The verbs are those of `SessionRegistry`."""

    def __init__(self, clock: Callable[[], float], cwd: str, cap: int = 128) -> None:
        self.cap = cap
        self.clock = clock
        self.cwd = cwd
        self.sessions: dict[str, ModelSession] = {}
        self.running: list[str] = []
        self.told: list[Json] = []
        """What the subscribers heard, all sessions together."""
        self.farewells: list[Noted] = []
        """The last event of each session that was closed."""
        self.dangling: set[tuple[str, str]] = set()
        """Links of which one end was closed: (parent, child)."""

    def now(self) -> str:
        moment = datetime.fromtimestamp(self.clock(), UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def known(self, verb: str, id: str) -> ModelSession:
        if id not in self.sessions:
            raise Refused(f"agent_session_{verb}: unknown session id '{id}'")
        return self.sessions[id]

    def touch(self, id: str) -> ModelSession:
        session = self.sessions.pop(id)
        self.sessions[id] = session
        return session

    def touched(self, verb: str, id: str) -> ModelSession:
        self.known(verb, id)
        return self.touch(id)

    def make_room(self) -> None:
        if len(self.sessions) >= self.cap:
            victims = [id for id in self.sessions if id not in self.running]
            if victims:
                self.end(victims[0], "lru_evicted", {"reason": "lru_evicted"})

    # Life and transcript.

    def open(self, id: str, opts: Json | None = None) -> str:
        if id in self.sessions:
            self.touch(id)
        else:
            self.make_room()
            self.sessions[id] = ModelSession(self.now())
        given = present(opts)
        if "workspace_anchor" in given:
            self.anchor(self.sessions[id], given["workspace_anchor"])
        if "workspace_policy" in given:
            self.govern(self.sessions[id], given["workspace_policy"])
        return id

    def close(self, id: str, status: str | Json | None = None) -> None:
        self.known("close", id)
        as_dict = {"reason": status} if isinstance(status, str) else status
        self.end(id, (as_dict or {}).get("reason"), as_dict)

    def end(self, id: str, reason: str | None, status: Json | None) -> None:
        session = self.sessions.pop(id)
        why = {"reason": reason, "status": status}
        self.told.append({"type": "agent_session_closed", "session_id": id, **why})
        self.farewells.append(Noted("agent_session_closed", reason or "", why))
        self.dangling.update((id, child) for child in session.children)
        if session.parent is not None:
            self.dangling.add((session.parent, id))

    def inject(self, id: str, message: Message) -> None:
        self.touched("inject", id).say(message)

    def append_event(self, id: str, event: Json) -> None:
        self.touched("append_event", id).note(event["kind"], event["text"], event["metadata"])

    def trim(self, id: str, keep_last: int) -> int:
        session = self.touched("trim", id)
        session.drop_oldest(max(0, len(session.messages) - keep_last))
        return len(session.messages)

    def reset(self, id: str) -> None:
        session = self.touched("reset", id)
        session.entries, session.history = [], []
        session.summary, session.shows_parent = None, False

    # Branches.

    def fork(self, src: str, dst: str, verb: str = "fork") -> str:
        self.known(verb, src)
        if src == dst:
            raise Refused(f"agent_session_{verb}: `dst` must differ from `src`")
        source = self.touch(src)
        if dst not in self.sessions:
            self.make_room()
            self.sessions[dst] = ModelSession(self.now(), ever=list(source.ever))
        else:
            if self.sessions[dst].parent != src:
                self.leave_parent(dst)
            self.sessions[dst].ever += source.history
        child = self.sessions[dst]
        copy_contents(source, child)
        child.parent, child.branched_at, child.shows_parent = src, None, True
        self.dangling.discard((src, dst))
        if src in self.sessions:
            if dst not in source.children:
                source.children.append(dst)
            self.touch(src)
        else:
            self.dangling.add((src, dst))
        self.touch(dst)
        return dst

    def leave_parent(self, id: str) -> None:
        former = self.sessions.get(self.sessions[id].parent or "")
        if former is not None and id in former.children:
            former.children.remove(id)

    def fork_at(self, src: str, keep_first: int, dst: str) -> str:
        source = self.known("fork_at", src)
        index = branch_index(source.entries, keep_first)
        self.fork(src, dst, "fork_at")
        child = self.sessions[dst]
        gone = sum(entry.stands_for for entry in child.entries[index:] if isinstance(entry, Said))
        child.history = child.history[: len(child.history) - gone] if keep_first else []
        child.entries = child.entries[:index]
        child.branched_at = index
        return dst

    def root(self, id: str) -> str:
        seen = [id]
        while id in self.sessions and (parent := self.sessions[id].parent) and parent not in seen:
            id = parent
            seen.append(id)
        return id

    # Compaction and history.

    def compact(
        self, id: str, opts: Json | None = None, summarize: Callable[[str], str] | None = None
    ) -> int:
        session = self.known("compact", id)
        given = present(opts)
        keep_last = given.get("keep_last", KEEP_LAST)
        old = session.messages
        cut = cut_of(old, keep_last)
        if estimate(old) <= given.get("token_threshold", -1):
            cut = 0
        if cut:
            compactor = Compactor(given, summarize)
            summary = compactor.summary(old[:cut], old[cut:])
            self.replace_oldest(id, cut, summary, {"strategy": compactor.strategy, "keep_last": keep_last})
        self.touch(id)
        return len(session.messages)

    def replace_oldest(self, id: str, cut: int, summary: str, why: Json) -> None:
        session = self.sessions[id]
        before, at = estimate(session.messages), session.first_message()
        archived = sum(entry.stands_for for entry in session.drop_oldest(cut))
        session.entries.insert(at, Said({"role": "user", "content": summary}, archived))
        session.summary = merged_summary(session.summary, summary)
        facts = {
            "mode": "session",
            "strategy": why["strategy"],
            "archived_messages": cut,
            "estimated_tokens_before": before,
            "estimated_tokens_after": estimate(session.messages),
        }
        session.note(
            "compaction",
            f"Transcript compacted via {why['strategy']}",
            {**facts, "keep_last": why["keep_last"]},
        )
        event = {"type": "transcript_compacted", "session_id": id, "snapshot_asset_id": None}
        self.told.append({**event, **facts})

    def history(self, id: str, opts: Json | None = None) -> list[Message]:
        session = self.known("history", id)
        return session.ever if present(opts).get("include_reset") else session.history

    # Scratchpad.

    def scratchpad(self, id: str) -> Json | None:
        return self.known("scratchpad", id).scratchpad

    def set_scratchpad(self, id: str, scratchpad: Json, opts: Json | None = None) -> Json:
        return self.write_scratchpad("set", id, scratchpad, present(opts))

    def clear_scratchpad(self, id: str, opts: Json | None = None) -> Json:
        return self.write_scratchpad("clear", id, None, present(opts))

    def write_scratchpad(self, action: str, id: str, value: Json | None, opts: Json) -> Json:
        session = self.touched(f"{action}_scratchpad", id)
        session.scratchpad = value
        session.scratchpad_version += 1
        version = session.scratchpad_version
        why = {key: opts.get(key) for key in ("source", "reason", "metadata")}
        text = "scratchpad set" if action == "set" else "scratchpad cleared"
        session.note("session_scratchpad", text, {"action": action, "version": version, **why})
        return {"ok": True, "version": version, "scratchpad": value}

    # Workspace.

    def workspace_anchor(self, id: str) -> Json | None:
        return self.known("workspace_anchor", id).anchor

    def workspace_policy(self, id: str) -> Json:
        return self.known("workspace_policy", id).policy

    def set_workspace_anchor(self, id: str, anchor: Json | str | None) -> bool:
        self.anchor(self.touched("set_workspace_anchor", id), anchor)
        return True

    def set_workspace_policy(self, id: str, policy: Json) -> bool:
        self.govern(self.touched("set_workspace_policy", id), policy)
        return True

    def anchor(self, session: ModelSession, anchor: Json | str | None) -> None:
        if anchor is None:
            session.anchor = None
            note_workspace(session, "anchor_cleared")
            return
        given: Json = {"primary": anchor} if isinstance(anchor, str) else anchor
        session.anchor = {
            "primary": self.absolute(given["primary"]),
            "additional_roots": [self.mounted(session, root) for root in given.get("additional_roots", [])],
            "anchored_at": given.get("anchored_at") or self.now(),
        }
        note_workspace(session, "anchor_set", primary=session.anchor["primary"])

    def mounted(self, session: ModelSession, root: Json) -> Json:
        mode = root.get("mount_mode") or session.policy["default_mount_mode"]
        return {"path": self.absolute(root["path"]), "mount_mode": mode, "mounted_at": self.now()}

    def govern(self, session: ModelSession, policy: Json) -> None:
        session.policy = dict(policy)
        note_workspace(session, "policy_set", default_mount_mode=policy["default_mount_mode"])

    def absolute(self, path: str) -> str:
        return "/" + posixpath.normpath(posixpath.join(self.cwd, path)).lstrip("/")

    def add_root(self, id: str, root: str, opts: Json | None = None) -> Json:
        session = self.known("add_root", id)
        if session.anchor is None:
            return {"ok": False, "error": "session has no workspace anchor"}
        asked: Json = {"path": root, **present(opts)}
        new = self.mounted(session, asked)
        if new["path"] == session.anchor["primary"]:
            return {"ok": False, "error": "root is the primary workspace root"}
        roots: list[Json] = session.anchor["additional_roots"]
        at = position(roots, new["path"])
        if at < len(roots) and roots[at]["mount_mode"] == new["mount_mode"]:
            return {"ok": True, "mounted_at": roots[at]["mounted_at"]}
        self.touch(id).anchor = {**session.anchor, "additional_roots": [*roots[:at], new, *roots[at + 1 :]]}
        note_workspace(session, "root_added", path=new["path"], mount_mode=new["mount_mode"])
        return {"ok": True, "mounted_at": new["mounted_at"]}

    def remove_root(self, id: str, root: str) -> Json:
        session = self.known("remove_root", id)
        path = self.absolute(root)
        roots: list[Json] = session.anchor["additional_roots"] if session.anchor else []
        if session.anchor and path == session.anchor["primary"]:
            return {"ok": False, "error": "cannot remove the primary workspace root"}
        at = position(roots, path)
        if session.anchor is None or at == len(roots):
            return {"ok": False, "error": "root is not mounted"}
        self.touch(id).anchor = {**session.anchor, "additional_roots": [*roots[:at], *roots[at + 1 :]]}
        note_workspace(session, "root_removed", path=path)
        return {"ok": True}

    def list_roots(self, id: str) -> Json:
        anchor = self.known("list_roots", id).anchor
        if anchor is None:
            return {"primary": None, "additional": []}
        return {"primary": anchor["primary"], "additional": anchor["additional_roots"]}

    # Live clients.

    def live_clients(self, id: str) -> list[Json]:
        return list(self.known("live_clients", id).clients.values())

    def attach(self, id: str, client_id: str, opts: Json | None = None) -> Json:
        session, given = self.known("attach", id), present(opts)
        rival = session.controller
        displaces = given.get("mode") == "controller" and rival not in (None, client_id)
        if displaces and not given.get("takeover"):
            hint = "pass takeover: true or use agent_session_takeover"
            raise Refused(f"agent_session_attach: session '{id}' already has controller '{rival}' ({hint})")
        action = "takeover" if displaces else "attach"
        return self.seat(action, id, client_id, given.get("mode") or "observer", given)

    def takeover(self, id: str, client_id: str, opts: Json | None = None) -> Json:
        self.known("takeover", id)
        return self.seat("takeover", id, client_id, "controller", present(opts))

    def seat(self, action: str, id: str, client_id: str, mode: str, opts: Json) -> Json:
        session = self.touch(id)
        before, old = session.controller, session.clients.get(client_id, {})
        in_control = mode == "controller"
        if in_control and before is not None:
            session.clients[before] = observer(session.clients[before])
        session.clients[client_id] = {
            "client_id": client_id,
            "mode": mode,
            "attached_at": old.get("attached_at") or self.now(),
            "last_seen_at": self.now(),
            "metadata": opts.get("metadata", old.get("metadata", {})),
            "can_inject_prompt": in_control and opts.get("can_inject_prompt", True),
            "can_route_permission": in_control and opts.get("can_route_permission", True),
        }
        return report(id, session, action, session.clients[client_id], before, opts)

    def detach(self, id: str, client_id: str, opts: Json | None = None) -> Json:
        self.attached("detach", id, client_id)
        session = self.touch(id)
        before = session.controller
        return report(id, session, "detach", session.clients.pop(client_id), before, present(opts))

    def heartbeat(self, id: str, client_id: str, opts: Json | None = None) -> Json:
        old, given = self.attached("heartbeat", id, client_id), present(opts)
        session = self.touch(id)
        client = {
            **old,
            "last_seen_at": self.now(),
            "metadata": {**old["metadata"], **given.get("metadata", {})},
        }
        session.clients[client_id] = client
        return report(id, session, "heartbeat", client, session.controller, given)

    def attached(self, verb: str, id: str, client_id: str) -> Json:
        session = self.known(verb, id)
        if client_id not in session.clients:
            raise Refused(f"agent_session_{verb}: client '{client_id}' is not attached to session '{id}'")
        return session.clients[client_id]

    def in_control(self, verb: str, id: str, client_id: str, right: str, rights: str) -> None:
        client = self.attached(verb, id, client_id)
        told = f"agent_session_{verb}: client '{client_id}'"
        if client["mode"] != "controller":
            raise Refused(f"{told} is not the active controller of session '{id}'")
        if not client[right]:
            raise Refused(f"{told} has no {rights} rights on session '{id}'")

    def client_inject_prompt(
        self, id: str, client_id: str, content: str | list[Json], opts: Json | None = None
    ) -> None:
        self.in_control("client_inject_prompt", id, client_id, "can_inject_prompt", "prompt-injection")
        live = {"client_id": client_id, "mode": "controller"}
        metadata = {**present(opts).get("metadata", {}), "live_session": live}
        self.touch(id).say({"role": "user", "content": content, "metadata": metadata})

    def route_permission(self, id: str, client_id: str, request: Json, opts: Json | None = None) -> Json:
        self.in_control("route_permission", id, client_id, "can_route_permission", "permission-routing")
        routed = {"client_id": client_id, "request": request, "routed_at": self.now()}
        metadata = {**routed, **only(present(opts), "metadata")}
        self.touch(id).note("live_session_permission_route", f"route_permission {client_id}", metadata)
        return {"ok": True, "session_id": id, **routed}


def present(opts: Json | None) -> Json:
    """The options that were given: one that is nil reads as absent."""
    return {key: value for key, value in (opts or {}).items() if value is not None}


def only(opts: Json, *keys: str) -> Json:
    return {key: opts[key] for key in keys if key in opts}


def copy_contents(source: ModelSession, child: ModelSession) -> None:
    """What a fork copies; values are never changed in place, so the lists alone need copying."""
    child.entries = list(source.entries)
    child.history = list(source.history)
    child.summary = source.summary
    child.scratchpad, child.scratchpad_version = source.scratchpad, source.scratchpad_version
    child.anchor, child.policy = source.anchor, source.policy


def branch_index(entries: list[Entry], keep_first: int) -> int:
    ends = [at + 1 for at, entry in enumerate(entries) if isinstance(entry, Said)]
    if keep_first == 0:
        return 0
    return ends[keep_first - 1] if keep_first <= len(ends) else len(entries)


def note_workspace(session: ModelSession, action: str, **details: Any) -> None:
    session.note("session_workspace", action, {"action": action, **details})


def position(roots: Sequence[Json], path: str) -> int:
    """Where the root is mounted; the end of the list if it isn't."""
    return next((at for at, root in enumerate(roots) if root["path"] == path), len(roots))


def observer(client: Json) -> Json:
    return {**client, "mode": "observer", "can_inject_prompt": False, "can_route_permission": False}


def report(id: str, session: ModelSession, action: str, client: Json, before: str | None, opts: Json) -> Json:
    """Note what was done to a client, and answer it."""
    facts = {
        "client_id": client["client_id"],
        "mode": client["mode"],
        "previous_controller_id": before,
        "live_controller_id": session.controller,
    }
    noted = {"action": action, **facts, **only(opts, "reason", "metadata")}
    session.note("live_session_client", f"{action} {client['client_id']}", noted)
    return {"ok": True, "session_id": id, "client": client, **facts}
