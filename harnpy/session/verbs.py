"""The verbs of a live session: read, write, cut back, fork, compact, close. Spec: 08 §1.2–1.6, §1.9, §4.6."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from harnpy.faults import Fault, paced
from harnpy.formats.dicts import boolean, closure, count, detached, mapping, string, timestamp
from harnpy.formats.json import pretty_json, to_json
from harnpy.formats.options import expected
from harnpy.session import compaction as engine
from harnpy.session import events as kinds
from harnpy.session.compaction import STRATEGIES, CompactPolicy
from harnpy.session.errors import EventRejected, InvalidArgument, SessionNotFound
from harnpy.session.lifecycle import SCRATCHPAD as _KEY
from harnpy.session.lifecycle import compacted_event
from harnpy.session.open_sessions import discard as discard_log
from harnpy.session.open_sessions import is_stored
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.formats.dicts import Dict, Kind
    from harnpy.session.compaction import Compaction
    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.session.open_sessions import OpenSession, Registry, Subscriber
    from harnpy.session.view import View
    from harnpy.world import World

    Summarize = Callable[[str], str]

# Reading what a verb is given besides an id: known keys only, each of its kind. Spec: 08 §1.2, §1.9.


def read_options(given: Any, kinds: Mapping[str, Kind]) -> Dict:
    """Return the options that are set, in the order of ``kinds``; nil counts as not set.

    Raises `InvalidArgument` for the first unknown key, else for the first value of another kind.
    """
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise InvalidArgument("`opts` must be a dict or nil")
    known_keys("option key", given, kinds)
    options = {key: given[key] for key in kinds if given.get(key) is not None}
    for key, value in options.items():
        check(key, value, kinds[key])
    return {key: detached(value) for key, value in options.items()}


def known_keys(what: str, given: Dict, known: Iterable[str]) -> None:
    """Raise `InvalidArgument` for the first key, in ascending order, that isn't ``known``."""
    names = tuple(known)
    for key in sorted(given):
        if key not in names:
            raise InvalidArgument(f"unknown {what} '{key}' ({expected(key, names)})")


def check(name: str, value: Any, kind: Kind) -> None:
    """Raise `InvalidArgument` unless the argument ``name`` is of that kind."""
    problem = kind(value)
    if problem is not None:
        raise InvalidArgument(f"`{name}` {problem}")


def not_blank(name: str, text: str | None) -> None:
    """Raise `InvalidArgument` unless given a text that is more than white space, or None."""
    if text is not None:
        check(name, text, string)
        if not text.strip():
            raise InvalidArgument(f"`{name}` must not be empty")


# Workspace anchors and policies: reading them from a caller's arguments. Spec: 08 §1.8.
#
# An anchor is ``{primary, additional_roots: [{path, mount_mode, mounted_at}], anchored_at}``, a policy
# ``{default_mount_mode}``. Paths are absolute and lexically normal; nothing is looked up on disk.


MOUNT_MODES = ("read_only", "read_write")
DEFAULT_POLICY = {"default_mount_mode": "read_only"}

_ANCHOR_KEYS = ("primary", "additional_roots", "anchored_at")
_ROOT_KEYS = ("path", "mount_mode", "mounted_at")
_POLICY_KEYS = ("default_mount_mode",)


def read_policy(given: Any) -> Dict:
    """Return the policy that ``given`` stands for."""
    check("policy", given, mapping)
    known_keys("workspace policy key", given, _POLICY_KEYS)
    if "default_mount_mode" not in given:
        return dict(DEFAULT_POLICY)
    return {"default_mount_mode": mount_mode("default_mount_mode", given["default_mount_mode"])}


def read_anchor(given: Any, policy: Dict, world: World) -> Dict | None:
    """Return the anchor that ``given`` stands for: a dict, a string (its primary) or None (no anchor)."""
    anchor_kind(given)
    if given is None:
        return None
    if isinstance(given, str):
        given = {"primary": given}
    known_keys("workspace anchor key", given, _ANCHOR_KEYS)
    primary = given.get("primary")
    if not isinstance(primary, str) or not primary:
        raise InvalidArgument("`anchor.primary` must be a non-empty string")
    anchored_at = given.get("anchored_at")
    if anchored_at is not None:
        check("anchor.anchored_at", anchored_at, timestamp)
    roots = given.get("additional_roots")
    if roots is not None and not isinstance(roots, list):
        raise InvalidArgument("`anchor.additional_roots` must be a list")
    primary = normal_path(primary, world)
    return {
        "primary": primary,
        "additional_roots": _mounted(roots or [], primary, policy, world),
        "anchored_at": rfc3339(world.clock.now()) if anchored_at is None else anchored_at,
    }


def mount_mode(key: str, given: Any) -> str:
    if not isinstance(given, str):
        raise InvalidArgument(f"`{key}` must be a string")
    if given not in MOUNT_MODES:
        raise InvalidArgument(f"invalid mount mode '{given}' (expected one of: {', '.join(MOUNT_MODES)})")
    return given


def normal_path(path: str, world: World) -> str:
    """Return an absolute path without ``.``, ``..``, doubled or trailing slashes; symlinks stay."""
    return "/" + os.path.normpath(os.path.join(world.files.cwd(), path)).lstrip("/")


def anchor_kind(given: Any) -> None:
    if given is not None and not isinstance(given, str | dict):
        raise InvalidArgument("`anchor` must be a dict, string, or nil")


def root_kind(root: Any) -> None:
    if not isinstance(root, str) or not root:
        raise InvalidArgument("`root` must be a non-empty string")


def _mounted(given: list[Any], primary: str, policy: Dict, world: World) -> list[Dict]:
    """Return the roots that an anchor brings. A path given twice keeps its place and takes the last mode."""
    now = rfc3339(world.clock.now())
    roots: dict[str, Dict] = {}
    for item in given:
        root = _root(item, policy, now, world)
        if root["path"] == primary:
            raise InvalidArgument("root is the primary workspace root")
        roots[root["path"]] = root
    return list(roots.values())


def _root(given: Any, policy: Dict, now: str, world: World) -> Dict:
    root = given if isinstance(given, dict) else {"path": given}
    known_keys("workspace root key", root, _ROOT_KEYS)
    root_kind(root.get("path"))
    mode, since = root.get("mount_mode"), root.get("mounted_at")
    if since is not None:
        check("mounted_at", since, timestamp)
    return {
        "path": normal_path(root["path"], world),
        "mount_mode": policy["default_mount_mode"] if mode is None else mount_mode("mount_mode", mode),
        "mounted_at": since or now,
    }


# A session as it stood at one moment. Spec: 08 §1.3.


class Snapshot(Mapping[str, Any]):
    """A mapping with the keys of 08 §1.3: a transcript's, and those of the session.

    Taking one costs the same at any length, because it shares the session's messages. What is read from
    it is a copy, made on first reading, which the reader may change; ``dict(snapshot)`` is all of it.
    """

    def __init__(self, id: str, view: View, child_ids: Iterable[str]) -> None:
        self._id = id
        self._view = view.branch()
        self._child_ids = list(child_ids)
        self._read: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self._read:
            shared = self._session if key in self._session else self._transcript
            self._read[key] = detached(shared[key])
        return self._read[key]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._transcript, **self._session})

    def __len__(self) -> int:
        return len({**self._transcript, **self._session})

    def __repr__(self) -> str:
        return f"Snapshot({dict(self)!r})"

    @cached_property
    def _session(self) -> dict[str, Any]:
        return session_fields(self._view, self._child_ids)

    @cached_property
    def _transcript(self) -> dict[str, Any]:
        return self._view.transcript(self._id)


def shared_snapshot(id: str, view: View, child_ids: Iterable[str]) -> dict[str, Any]:
    """Return the same as a dict that shares the session's values, for readers that change nothing."""
    return {**view.transcript(id), **session_fields(view, child_ids)}


def session_fields(view: View, child_ids: Iterable[str]) -> dict[str, Any]:
    """Return the keys that a transcript doesn't have."""
    scratchpad = view.registers.get("scratchpad")
    return {
        "length": len(view.window),
        "created_at": rfc3339(view.created),
        "system_prompt": view.register("system_prompt"),
        "tool_format": view.register("settings.tool_format"),
        "scratchpad": None if scratchpad is None else scratchpad.value,
        "scratchpad_version": 0 if scratchpad is None else scratchpad.version,
        "parent_id": view.parent_id,
        "child_ids": list(child_ids),
        "branched_at_event_index": view.branched_at,
        "live_clients": list(view.clients.values()),
        "live_controller_id": view.controller_id(),
        "workspace_anchor": view.register("settings.workspace_anchor"),
        "workspace_policy": view.register("settings.workspace_policy", DEFAULT_POLICY),
    }


# The verbs of a session's life: read, write, cut back, close. Spec: 08 §1.2–1.6.
#
# Values are copied on their way in and out, so that a Python caller can't change a session by accident. A
# caller whose values never change, such as a Harn program, shares them instead: `inject_shared` takes
# a message as it is, `snapshot_value` and `history_value` return the session's own.


_INJECT = "agent_session_inject"


def exists(registry: Registry, id: str) -> bool:
    return id in registry.by_id


def length(registry: Registry, id: str) -> int:
    """Return the number of messages in a session."""
    opened = registry.by_id.get(id)
    if opened is None:
        raise SessionNotFound(id, "agent_session_length")
    session = opened.session
    session.refresh()
    return session.length


def messages(registry: Registry, id: str) -> list[Dict]:
    messages: list[Dict] = detached(registry.find(id).session.messages())
    return messages


def history(registry: Registry, id: str, opts: Dict | None = None) -> list[Dict]:
    """Return the messages behind the window, including those trimmed away or summarised.

    They begin with the last reset, or with the session if ``include_reset``. An extension of harnpy.
    """
    messages: list[Dict] = detached(history_value(registry, id, opts))
    return messages


def history_value(registry: Registry, id: str, opts: Dict | None = None) -> list[Dict]:
    """`history` without copies, for readers that change nothing."""
    session = registry.find(id).session
    options = read_options(opts, {"include_reset": boolean})
    return session.every_message() if options.get("include_reset") else session.history()


def snapshot(registry: Registry, id: str) -> Snapshot | None:
    """Return the session as it stands, None when there is none."""
    opened = registry.current(id)
    if opened is None:
        return None
    return Snapshot(id, opened.view, _child_ids(registry, opened))


def snapshot_value(registry: Registry, id: str) -> Dict | None:
    """`snapshot` as a dict that shares the session's values."""
    opened = registry.current(id)
    if opened is None:
        return None
    return shared_snapshot(id, opened.view, _child_ids(registry, opened))


def reset(registry: Registry, id: str) -> None:
    """Empty the transcript; id, subscribers, lineage, clients and registers stay."""
    registry.use(id).session.reset()


def trim(registry: Registry, id: str, keep_last: int) -> int:
    """Keep the newest messages. Return how many there are."""
    check("keep_last", keep_last, count)
    return registry.use(id).session.trim(keep_last)


def inject_shared(registry: Registry, id: str, message: Dict) -> None:
    """Append a message that nobody changes any more, without copying it."""
    opened = registry.by_id.get(id)
    if opened is None:
        raise SessionNotFound(id, _INJECT)
    if type(message) is not dict or type(message.get("role")) is not str:
        _refuse_message(message)
    registry.by_id.move_to_end(id)  # `touch`, without a call: this is the hot path
    opened.session.record(kinds.MESSAGE_ADDED, message)
    if not opened.session.is_stored:  # that one has its loops know itself, whoever writes
        for follower in opened.followers:
            follower.on_message(message)


def append_event(registry: Registry, id: str, event: Dict) -> None:
    """Append a lifecycle event to the transcript: a dict with a string ``kind``."""
    if not isinstance(event, dict):
        raise InvalidArgument("event must be a dict")
    opened = registry.find(id)
    if not isinstance(event.get("kind"), str):
        raise InvalidArgument("event must have a string `kind`")
    registry.touch(id)
    try:
        opened.session.record(kinds.TRANSCRIPT_EVENT, detached(event))
    except EventRejected as rejected:
        rejected.argument = "event"
        raise


def close(registry: Registry, id: str, status: str | Dict | None = None) -> None:
    """Remove a session after notifying its subscribers. ``status``: the reason, or a dict with it."""
    if status is not None and not isinstance(status, str | dict):
        raise InvalidArgument("`status` must be a string, dict, or nil")
    given = {"reason": status} if isinstance(status, str) else detached(status)
    reason = None if given is None else given.get("reason")
    if reason is not None and not isinstance(reason, str):
        raise InvalidArgument("`status.reason` must be a string")
    registry.release(registry.find(id), reason, given)


def discard(registry: Registry, id: str) -> None:
    """Remove a session, if there is one, without notifying anyone."""
    opened = registry.by_id.get(id)
    if opened is not None:
        registry.forget(opened)


def subscribe(registry: Registry, id: str, callback: Subscriber) -> None:
    """Call ``callback`` with each agent event of the session, which is opened if necessary."""
    not_blank("session_id", id)
    registry.get_or_open(id).subscribers.append(callback)


def subscriber_count(registry: Registry, id: str) -> int:
    opened = registry.by_id.get(id)
    return len(opened.subscribers) if opened else 0


def _refuse_message(message: Any) -> NoReturn:
    if message is None:
        raise InvalidArgument("`message` required", verb=_INJECT)
    if type(message) is not dict:
        raise InvalidArgument("message must be a dict", verb=_INJECT)
    raise InvalidArgument(
        "message must have a string `role` (user|assistant|tool_result|system)", verb=_INJECT
    )


# Forks: a session made of another one's past, and who descends from whom. Spec: 08 §1.4.


def fork(registry: Registry, src: str, dst: str | None = None) -> str:
    """Copy a session's transcript under a new id. Return that id."""
    if dst is not None:
        not_blank("dst", dst)
    return _fork(registry, src, dst).session.id


def fork_at(registry: Registry, src: str, keep_first: int, dst: str | None = None) -> str:
    """Fork, keeping only the first messages on the child. Return its id."""
    check("keep_first", keep_first, count)
    not_blank("dst", dst)
    child = _fork(registry, src, dst).session
    window = child.view.window
    child.replace("fork_at", window.head(keep_first), branched_at=window.branch_index(keep_first))
    return child.id


def ancestry(registry: Registry, id: str) -> Dict | None:
    """Return ``{parent_id, child_ids, root_id}``, None when there is no such session."""
    opened = registry.current(id)
    if opened is None:
        return None
    root, seen = id, {id}
    while (parent := _parent_id(registry, root)) is not None and parent not in seen:
        root = parent
        seen.add(root)
    child_ids = _child_ids(registry, opened)
    return {"parent_id": opened.session.view.parent_id, "child_ids": child_ids, "root_id": root}


def _child_ids(registry: Registry, opened: OpenSession) -> list[str]:
    """Return the ids of the session's forks, whoever made them, the oldest first."""
    session = opened.session
    if not is_stored(session):
        return list(opened.child_ids or ())
    forks = [id for id in session.children() if _parent_id(registry, id) in (None, session.id)]
    return list(dict.fromkeys((*forks, *(opened.child_ids or ()))))


def _fork(registry: Registry, src: str, dst: str | None) -> OpenSession:
    source = registry.find(src)
    if dst == src:
        raise InvalidArgument("`dst` must differ from `src`", src)
    if dst is None:
        dst = registry.world.ids.new()
    late = registry.admit_fork(source, dst)
    if late is not None:
        return late
    registry.touch(src)
    if dst not in registry.by_id and is_stored(source.session) and source.session.has_neighbour(dst):
        registry.get_or_open(dst, source.session.store)
    child, view = registry.by_id.get(dst), source.session.view
    if child is None:
        made = _forked(registry, source.session, dst)
        child, view = registry.by_id.get(dst), made.view
        if child is None:
            child = registry.admit(made)
    if child.session.view is not view:  # it existed, or an eviction subscriber opened it
        _refork(registry, child.session, source.session, view)
    _link(registry, src, dst)
    return child


def _forked(registry: Registry, source: Session, dst: str) -> Session:
    """Fork, then make room. In this order: the source itself may be evicted, which adds to its log."""
    made = source.fork(dst, registry.store)
    try:
        registry.make_room(dst)
    except BaseException:  # an eviction subscriber was interrupted: the fork won't be admitted
        if dst not in registry.by_id:
            discard_log(made, registry.store)
        raise
    return made


def _refork(registry: Registry, child: Session, source: Session, view: View) -> None:
    """Turn an existing session into a fork of ``source``, whose state is ``view``."""
    former = child.view.parent_id
    if former is not None and former != source.id and former in registry.by_id:
        (registry.by_id[former].child_ids or {}).pop(child.id, None)
    child.become_fork_of(source, view)


def _link(registry: Registry, parent_id: str, child_id: str) -> None:
    registry.touch(parent_id)
    registry.touch(child_id)
    parent = registry.by_id.get(parent_id)
    if parent is not None:
        parent.add_child(child_id)


def _parent_id(registry: Registry, id: str) -> str | None:
    opened = registry.by_id.get(id)
    return None if opened is None else opened.session.view.parent_id


# `compact`: run the resize engine on a live session. Spec: 08 §4.6.
#
# Nothing is lost: archived messages leave the window but stay in the log and in `history`.


_OPTIONS = {
    "keep_last": count,
    "token_threshold": count,
    "tool_output_max_chars": count,
    "compact_strategy": string,
    "hard_limit_tokens": count,
    "hard_limit_strategy": string,
    "custom_compactor": closure,
    "mask_callback": closure,
    "compress_callback": closure,
}


def compact(registry: Registry, id: str, opts: Dict | None = None, summarize: Summarize | None = None) -> int:
    """Replace older messages with a summary. Return how many messages there are then.

    ``summarize(prompt)`` asks a model, for the strategy ``llm``; a loop that runs on the session uses its
    own. While callbacks run, others may write to the session but not cut it.
    """
    opened = registry.find(id)
    options = read_options(opts, _OPTIONS)
    threshold = options.pop("token_threshold", None)
    policy = _policy_of(registry, opened, options, summarize)
    _check(policy)
    window = opened.session.view.window
    messages, entries = list(window.messages()), list(window.entries.items())
    if threshold is None or engine.estimate_tokens(messages) > threshold:
        with registry.pinned(id):
            compaction = engine.compact(messages, policy)
        if compaction is not None:
            _apply(registry, opened, entries, compaction, policy.keep_last)
    registry.touch(id)
    return opened.session.length


def _policy_of(
    registry: Registry, opened: OpenSession, options: Dict, summarize: Summarize | None
) -> CompactPolicy:
    strategy = options.pop("compact_strategy", None)
    if strategy is None:
        strategy = "custom" if "custom_compactor" in options else "observation_mask"
    for follower in opened.followers:
        summarize = follower.summarize or summarize
    for key in ("custom_compactor", "mask_callback"):
        if key in options:
            options[key] = _given_copies(options[key])
    return CompactPolicy(
        strategy=strategy,
        summarize=None if summarize is None else _reported(summarize),
        pretty=pretty_json,
        **options,
    )


def _check(policy: CompactPolicy) -> None:
    """Refuse strategies that don't exist or lack what they need, in the words of the verb's options."""
    chosen = {"compact_strategy": policy.strategy, "hard_limit_strategy": policy.hard_limit_strategy}
    for key, strategy in chosen.items():
        if strategy not in STRATEGIES:
            raise InvalidArgument(
                f"unknown `{key}` '{strategy}' (expected one of: llm, truncate, custom, observation_mask)"
            )
    for key, strategy in chosen.items():
        if strategy == "custom" and policy.custom_compactor is None:
            raise InvalidArgument(f"`{key}` 'custom' needs the closure `custom_compactor`")


def _reported(summarize: Summarize) -> Summarize:
    """Return ``summarize`` with its failures as refusals of the verb."""

    def asked(prompt: str) -> str:
        try:
            return summarize(prompt)
        except Fault as fault:
            raise InvalidArgument(fault.message) from fault

    return asked


def _apply(
    registry: Registry,
    opened: OpenSession,
    entries: list[Event],
    compaction: Compaction,
    keep_last: int,
) -> None:
    """Carry the compaction out, unless somebody has meanwhile changed what it archives."""
    session = opened.session
    if registry.by_id.get(session.id) is not opened:
        raise SessionNotFound(session.id)
    session.refresh()
    if not session.view.window.begins_with(entries[: compaction.split]):
        raise InvalidArgument(f"session '{session.id}' was cut by someone else meanwhile", session.id)
    report = compaction.report()
    session.compact(compaction, {"mode": "session", "keep_last": keep_last, **report})
    for follower in opened.followers:
        follower.on_cut()
    registry.emit(session.id, compacted_event(session.id, "session", report))


def _given_copies(callback: Callable[[list[Dict]], Any]) -> Callable[[list[Dict]], Any]:
    """Return the callback as one that is given copies, so that it can't change the session."""
    return lambda archived: callback(detached(archived))


# The scratchpad: a small dict that an agent keeps beside its transcript. Spec: 08 §1.9.


#: Bytes of compact JSON.
SIZE_LIMIT = 65536

_WHY = {"source": string, "reason": string, "metadata": mapping}
_INFINITY = float("inf")


def scratchpad(registry: Registry, id: str) -> Dict | None:
    """Return the scratchpad, None when there is none."""
    session = registry.find(id).session
    scratchpad: Dict | None = detached(session.view.register(_KEY))
    return scratchpad


def set_scratchpad(registry: Registry, id: str, scratchpad: Dict, opts: Dict | None = None) -> Dict:
    """Replace the scratchpad. Return ``{ok, version, scratchpad}``. ``opts``: source, reason, metadata."""
    check("scratchpad", scratchpad, mapping)
    session = registry.find(id).session
    if not _is_json(scratchpad):
        raise InvalidArgument("`scratchpad` must be JSON-serializable")
    try:
        size = len(to_json(scratchpad).encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:  # a Python value that contains itself
        raise InvalidArgument("`scratchpad` must be JSON-serializable") from error
    if size > SIZE_LIMIT:
        raise InvalidArgument(f"scratchpad is too large ({size} bytes, limit {SIZE_LIMIT})")
    why = read_options(opts, _WHY)
    return _write(registry, session, detached(scratchpad), why)


def clear_scratchpad(registry: Registry, id: str, opts: Dict | None = None) -> Dict:
    """Remove the scratchpad. Return ``{ok, version, scratchpad: None}``."""
    session = registry.find(id).session
    return _write(registry, session, None, read_options(opts, _WHY))


def _write(registry: Registry, session: Session, value: Dict | None, why: Dict) -> Dict:
    registry.touch(session.id)
    register = session.setting(_KEY, value, **why)
    try:
        session.write(register)
    except EventRejected as rejected:
        rejected.argument = "opts.metadata" if (rejected.pointer or "").startswith("/metadata") else _KEY
        raise
    return {"ok": True, "version": register.data["version"], "scratchpad": detached(value)}


def _is_json(value: Any) -> bool:
    """Return whether JSON can express ``value`` without loss, looking at as many parts as may be stored."""
    waiting = [value]
    for _ in paced(range(SIZE_LIMIT)):
        if not waiting:
            break
        value = waiting.pop()
        kind = type(value)
        if kind is dict:
            if not all(type(key) is str for key in paced([*value])):
                return False
            waiting += value.values()
        elif kind is list:
            waiting += value
        elif kind is float:
            if not abs(value) < _INFINITY:  # nor NaN
                return False
        elif value is not None and kind not in (str, int, bool):
            return False
    return True
