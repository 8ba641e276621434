"""State that programs find again on their next run: values under keys, text files of an agent's session.

Several processes may share a file: a change takes its lock and reads what others have written meanwhile.
Spec: 04 §26, 06 §19, 08 §11.
"""

from __future__ import annotations

import os.path
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from harnpy.faults import MisuseError
from harnpy.formats.json import parse_json, stored_json
from harnpy.world.files import take_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.formats.dicts import Dict
    from harnpy.world import World
    from harnpy.world.files import Files

    Wait = Callable[[float], object]

# Values that a program finds again on its next run. Spec: 04 §26, 08 §11.
#
# One JSON object in one file, which several processes may share. A change takes the file's lock, reads what
# others have written meanwhile, and is written as a whole or not at all, before it is visible.


T = TypeVar("T")

_UNREADABLE = ".unreadable"


class KeptValues:
    """Those in the file ``path``, as of the first use or the last change. ``wait(seconds)`` lets other tasks
    run."""

    #: What errors call them.
    kind: ClassVar[str]

    def __init__(self, path: str, files: Files, wait: Wait) -> None:
        self.path = path
        self._files = files
        self._wait = wait
        self._text: str | None = None
        self._loaded: Dict | None = None

    def set(self, key: str, value: Any) -> None:
        """Keep a value, as JSON represents it. Raise `MisuseError`."""
        with self._alone():
            self._write({**self._read(), key: value})

    def get(self, key: str) -> Any:
        """Return the value under a key, None without one."""
        return self._values.get(key)

    def has(self, key: str) -> bool:
        return key in self._values

    def keys(self) -> list[str]:
        return sorted(self._values)

    def delete(self, key: str) -> None:
        """Remove a key; a missing one is fine. Raise `MisuseError`."""
        if not self._files.exists(self.path):
            return
        with self._alone():
            values = self._read()
            if key in values:
                self._write({name: value for name, value in values.items() if name != key})

    def save(self) -> None:
        """Write the file even if nothing has changed. Raise `MisuseError`."""
        with self._alone():
            self._write(self._read())

    def clear(self) -> None:
        """Remove all keys and the file. Raise `MisuseError`."""
        if self._files.exists(self.path):
            with self._alone():
                self._try("clear", lambda: self._files.delete_file(self.path, os.path.dirname(self.path)))
        self._loaded, self._text = {}, None

    @property
    def _values(self) -> Dict:
        return self._read() if self._loaded is None else self._loaded

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other writers out of the block."""
        self._try("mkdir", lambda: self._files.make_directory(os.path.dirname(self.path)))
        release = self._try("lock", lambda: take_lock(f"{self.path}.lock", self._files, self._wait))
        try:
            yield
        finally:
            release()

    def _read(self) -> Dict:
        """Return what the file holds now; an unreadable one counts as empty."""
        try:
            text = self._files.read_text(self.path)
            if self._loaded is None or text != self._text:
                self._keep(text)
        except (OSError, ValueError):
            self._loaded, self._text = {}, None
        return self._loaded or {}

    def _write(self, values: Dict) -> None:
        """Write the values; a file that could not be read is kept beside them."""
        text = stored_json(values) + "\n"
        if self._text is None and self._files.is_file(self.path):
            self._try("write", lambda: self._files.rename(self.path, self.path + _UNREADABLE))
        self._try("write", lambda: self._files.replace_text(self.path, text))
        self._keep(text)

    def _keep(self, text: str) -> None:
        read = parse_json(text)
        self._loaded, self._text = (read, text) if isinstance(read, dict) else ({}, None)

    def _try(self, step: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except OSError as error:
            raise MisuseError(f"{self.kind} {step} error: {error.strerror or error}: {self.path}") from error


class Checkpoints(KeptValues):
    """The values of one program."""

    kind = "checkpoint"


class KeyValueStore(KeptValues):
    """The values that the programs of a project share."""

    kind = "store"


# Durable agent state: one session's text files under a root, with a note of who wrote each. Spec: 06 §19.
#
#     <root>/<session_id>/<key>                        the text
#     <root>/<session_id>/.agent_state_meta/<key>      the id of its writer
#     <root>/<session_id>/.agent_state_tmp.lock        the lock under which both change
#
# Programs hold a `Handle`, which is checked at every use because they may build one themselves.


HANDOFF_KEY = "__handoff.json"

_META, _TEMPORARY = ".agent_state_meta", ".agent_state_tmp"
_POLICIES = {
    "": "ignore",
    "ignore": "ignore",
    "off": "ignore",
    "warn": "warn",
    "warning": "warn",
    "error": "error",
    "strict": "error",
}
_WRITER_KEYS = ("writer_id", "stage_id", "session_id", "worker_id")


class StateHandle(NamedTuple):
    root: str
    session_id: str
    policy: str
    writer: Dict

    def as_dict(self) -> Dict:
        return {
            "_type": "state_handle",
            "backend": "filesystem",
            "root": self.root,
            "session_id": self.session_id,
            "handoff_key": HANDOFF_KEY,
            "conflict_policy": self.policy,
            "writer": self.writer,
        }


class AgentState:
    """The files of agents. Conflicts that are allowed become warnings. ``wait(seconds)`` lets other tasks
    run."""

    def __init__(self, world: World, wait: Callable[[float], object]) -> None:
        self._world = world
        self._files = world.placed_state_files
        self._wait = wait

    def init(self, root: str, options: Dict, current_session: str | None) -> Dict:
        """Create the session's directory unless it exists. Return its handle."""
        session_id = _text(options.get("session_id")) or current_session or self._world.ids.new()
        handle = self._handle(root, session_id, options)
        self._files.make_directory(_directory(handle))
        return handle.as_dict()

    def resume(self, root: str, session_id: str, options: Dict) -> Dict:
        """Return the handle of an existing session. Raises `MisuseError`."""
        handle = self._handle(root, session_id, options)
        if not self._files.is_dir(_directory(handle)):
            raise MisuseError(f"agent_state.resume: session '{session_id}' not found under {handle.root}")
        return handle.as_dict()

    def write(self, handle: StateHandle, key: str, text: str) -> None:
        """Replace the key's text. Raises `MisuseError` if another writer's may not be replaced."""
        self._put(handle, checked_key(key), text)

    def read(self, handle: StateHandle, key: str) -> str | None:
        path = _path(handle, checked_key(key))
        return self._files.read_text(path) if self._files.is_file(path) else None

    def keys(self, handle: StateHandle) -> list[str]:
        """Return all keys, sorted by their bytes."""
        found = (key for key in self._files.files_under(_directory(handle)) if not _is_internal(key))
        return sorted(found, key=lambda key: key.encode("utf-8", "surrogateescape"))

    def delete(self, handle: StateHandle, key: str) -> None:
        """Delete the key, if it exists, and directories that it leaves empty."""
        name, directory = checked_key(key), _directory(handle)
        if not self._files.is_dir(directory):
            return
        with self._alone(handle):
            for path in (_path(handle, name), _path(handle, f"{_META}/{name}")):
                self._files.delete_file(path, directory)

    def hand_off(self, handle: StateHandle, envelope: str) -> None:
        """Write the envelope that `handoff_envelope` made."""
        self._put(handle, HANDOFF_KEY, envelope)

    def _put(self, handle: StateHandle, key: str, text: str) -> None:
        with self._alone(handle):
            self._put_alone(handle, key, text)

    @contextmanager
    def _alone(self, handle: StateHandle) -> Iterator[None]:
        """Keep other writers of the session out of the block."""
        release = take_lock(_path(handle, f"{_TEMPORARY}.lock"), self._files, self._wait)
        try:
            yield
        finally:
            release()

    def _put_alone(self, handle: StateHandle, key: str, text: str) -> None:
        note = _path(handle, f"{_META}/{key}")
        before = self._files.read_text(note) if self._files.is_file(note) else None
        writer = str(handle.writer.get("writer_id"))
        if before is not None and before != writer and handle.policy != "ignore":
            problem = (
                f"key '{key}' was previously written by '{before}' and is now being written by '{writer}'"
            )
            if handle.policy == "error":
                raise MisuseError(f"agent_state.write: {problem}")
            self._world.warn("agent_state.write", problem)
        for path, content in ((_path(handle, key), text), (note, writer)):
            self._files.replace_text(path, content, mark=_TEMPORARY)

    def _handle(self, root: str, session_id: str, options: Dict) -> StateHandle:
        _check_path(session_id)
        given = options.get("conflict_policy", options.get("two_writer"))
        policy = "" if given is None else str(given)
        if policy not in _POLICIES:
            raise MisuseError(f"agent_state: unknown conflict policy '{policy}'")
        worker, stage = _text(options.get("worker_id")), _text(options.get("stage_id"))
        writer = {
            "writer_id": _text(options.get("writer_id")) or worker or stage or session_id,
            "stage_id": stage,
            "session_id": session_id,
            "worker_id": worker,
        }
        absolute = root if root.startswith("/") else f"{self._files.cwd()}/{root}"
        return StateHandle(absolute, session_id, _POLICIES[policy], writer)


def read_handle(given: Any, caller: str) -> StateHandle:
    """Return the handle in a program's dict. Raises `MisuseError`."""
    if not isinstance(given, dict) or given.get("_type") != "state_handle":
        raise MisuseError(f"{caller}: `handle` must be a state_handle dict")
    root, session_id = _text(given.get("root")), _text(given.get("session_id"))
    policy, writer = given.get("conflict_policy"), given.get("writer")
    if not root or not session_id or policy not in _POLICIES or not isinstance(writer, dict):
        raise MisuseError(f"{caller}: `handle` must be a state_handle dict")
    _check_path(session_id)
    return StateHandle(root, session_id, _POLICIES[policy], {key: writer.get(key) for key in _WRITER_KEYS})


def handoff_envelope(handle: StateHandle, summary: Dict, handoff: Dict | None, now: float) -> Dict:
    """Return what a later run resumes from. ``handoff`` is the summary in its normal form, if it has one."""
    return {
        "_type": "agent_state_handoff",
        "version": 1,
        "session_id": handle.session_id,
        "root": handle.root,
        "key": HANDOFF_KEY,
        "summary": summary,
        "handoff": handoff,
        "writer": handle.writer,
        "written_at": int(now),
    }


def checked_key(key: str) -> str:
    """Return a key that stays inside its session. Raises `MisuseError`."""
    _check_path(key)
    if _is_internal(key):
        raise MisuseError(f"agent_state: key '{key}' uses a reserved internal path")
    return "/".join(part for part in key.split("/") if part not in ("", "."))


def _check_path(key: str) -> None:
    parts = [part for part in key.split("/") if part not in ("", ".")]
    if key.startswith("/"):
        raise MisuseError(f"agent_state: key '{key}' must be relative")
    if not key.strip() or not parts:
        raise MisuseError("agent_state: key must be a non-empty relative path")
    if ".." in parts:
        raise MisuseError(f"agent_state: key '{key}' must not escape the session root")


def _is_internal(key: str) -> bool:
    return _META in key.split("/") or _TEMPORARY in key


def _directory(handle: StateHandle) -> str:
    return f"{handle.root}/{handle.session_id}"


def _path(handle: StateHandle, key: str) -> str:
    return f"{_directory(handle)}/{key}"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
