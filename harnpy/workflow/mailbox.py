"""`Mailbox`: messages to a workflow, in a file that processes share: signals, queries, updates. Spec: 08 §10.

Every change takes the mailbox's lock, reads the file and writes it as a whole. So no concurrent change is
lost, and a reader sees the state before or after a change.
"""

from __future__ import annotations

import os.path
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import MisuseError
from harnpy.formats.json import compact_json, parse_json
from harnpy.world.clock import rfc3339
from harnpy.world.files import plain_reason, take_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.world import World
    from harnpy.world.files import Files

    ProjectOf = Callable[[str], str | None]
    Wait = Callable[[float], object]

# Which workflow a message is for, and in which directory its mailbox is. Spec: 08 §10.


_UNNAMED = "workflow"
_RUNS = ".harn-runs"
_IDS = (("workflow_id",), ("workflow",), ("run", "workflow_id"), ("result", "run", "workflow_id"))
_RECORDS = (("persisted_path",), ("path",), ("run", "persisted_path"))


class Target(NamedTuple):
    workflow_id: str
    base_dir: str


def read_target(given: Any, caller: str, root: str, cwd: str, project_of: ProjectOf) -> Target:
    """Return the workflow that an id, a handle or a result stands for, below ``root`` unless it says where.

    A record that is in a project, as ``project_of(directory)`` returns it, is of a workflow of that project.
    Raise `MisuseError`.
    """
    if given is None:
        raise MisuseError(f"{caller}: missing target")
    id = given if isinstance(given, str) else _first_text(given, _IDS)
    if id is None:
        raise MisuseError(f"{caller}: target must be a workflow id string or dict with workflow_id/workflow")
    named = _first_text(given, (("base_dir",),))
    if named:
        return Target(_last_part(id), os.path.join(cwd, named))
    recorded = _place_of_record(given)
    if recorded is None:
        return Target(_last_part(id), os.path.join(cwd, root))
    place = os.path.join(cwd, recorded)
    return Target(_last_part(id), project_of(place) or place)


def _last_part(id: str) -> str:
    """Return a name for the workflow's directory."""
    part = os.path.basename(id.rstrip("/"))
    return _UNNAMED if part.strip() in ("", ".", "..") else part


def _place_of_record(given: Any) -> str | None:
    record = _first_text(given, _RECORDS)
    if not record:
        return None
    directory = os.path.dirname(record)
    return os.path.dirname(directory) or "." if os.path.basename(directory) == _RUNS else directory or "."


def _first_text(given: Any, paths: Sequence[Sequence[str]]) -> str | None:
    """Return the first text found under one of the paths."""
    return next((found for path in paths if isinstance(found := _at(given, path), str)), None)


def _at(given: Any, path: Sequence[str]) -> Any:
    for key in path:
        given = given.get(key) if isinstance(given, dict) else None
    return given


_TYPE = "workflow_mailbox"


class MailboxState:
    """The state of a workflow in ``directory``. ``wait(seconds)`` lets other tasks run.

    Raises `MisuseError` if its file can't be used.
    """

    def __init__(self, id: str, directory: str, files: Files, wait: Wait) -> None:
        self._id = id
        self._directory = directory
        self._path = os.path.join(directory, "state.json")
        self._files = files
        self._wait = wait

    @contextmanager
    def change(self) -> Iterator[Dict]:
        """Yield the state, to be changed inside the block; it is written only if it has changed."""
        release = self._lock()
        try:
            state = self.read()
            before = dict(state)
            yield state
            if state != before:
                self._write(state)
        finally:
            release()

    def _lock(self) -> Callable[[], object]:
        try:
            return take_lock(os.path.join(self._directory, "state.lock"), self._files, self._wait)
        except (OSError, ValueError) as error:
            raise self._failure("lock", error) from error

    def read(self) -> Dict:
        try:
            read = parse_json(self._files.read_text(self._path))
        except FileNotFoundError:
            return self._fresh()
        except (OSError, ValueError) as error:
            raise self._failure("read", error) from error
        problem = _problem(read, self._fresh())
        if problem is not None:
            raise MisuseError(f"workflow state read error: {problem}: {self._path}")
        state: Dict = self._fresh() | read
        return state

    def _write(self, state: Dict) -> None:
        try:
            self._files.replace_text(self._path, compact_json(state) + "\n")
        except OSError as error:
            raise self._failure("write", error) from error

    def _failure(self, step: str, error: Exception) -> MisuseError:
        reason = plain_reason(error)
        return MisuseError(f"workflow state {step} error: {reason}: {self._path}")

    def _fresh(self) -> Dict:
        return {
            "_type": _TYPE,
            "workflow_id": self._id,
            "generation": 1,
            "continue_as_new_count": 0,
            "paused": False,
            "next_seq": 1,
            "mailbox": [],
            "queries": {},
            "responses": {},
        }


def _problem(read: Any, fresh: Dict) -> str | None:
    """Return why a value is not the state of a mailbox, None if it is."""
    if not isinstance(read, dict) or read.get("_type") != _TYPE:
        return f"`_type` must be {_TYPE}"
    for key, default in fresh.items():
        value = read.get(key, default)
        entries = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if type(value) is not type(default) or not all(isinstance(entry, dict) for entry in entries):
            return f"`{key}` has the wrong type"
    return None


SIGNAL, UPDATE, CONTROL = "signal", "update", "control"

_POLL = 0.025
_RECEIVED = ("seq", "kind", "name", "request_id", "payload", "enqueued_at")


class Mailbox:
    """The mailbox of a workflow in ``directory``. Payloads and values are JSON data."""

    def __init__(self, target: Target, directory: str, world: World, wait: Wait) -> None:
        self.target = target
        self._state = MailboxState(target.workflow_id, directory, world.placed_state_files, wait)
        self._world = world
        self._wait = wait

    def signal(self, name: str, payload: Any) -> Dict:
        """Add a message; return it and the mailbox's status."""
        with self._state.change() as state:
            message = self._enqueue(state, SIGNAL, name, payload)
        return {"workflow_id": self.target.workflow_id, "message": message, "status": self._status(state)}

    def receive(self) -> Dict | None:
        """Remove and return the oldest message, None from an empty mailbox."""
        if not self._state.read()["mailbox"]:  # a reader that polls must not block writers
            return None
        with self._state.change() as state:
            if not state["mailbox"]:
                return None
            oldest, *state["mailbox"] = state["mailbox"]
        return {"workflow_id": self.target.workflow_id, **{key: oldest.get(key) for key in _RECEIVED}}

    def publish_query(self, name: str, value: Any) -> Dict:
        """Publish ``value`` under ``name``; return the status."""
        with self._state.change() as state:
            published = {"value": value, "published_at": self._stamp()}
            state["queries"] = {**state["queries"], name: published}
        return self._status(state)

    def query(self, name: str) -> Any:
        """Return the value last published under a name, None without one."""
        published = self._state.read()["queries"].get(name)
        return None if published is None else published.get("value")

    def update(self, name: str, payload: Any, timeout: float) -> Any:
        """Add a request and wait for its response. Raise `MisuseError` after ``timeout`` seconds."""
        request_id, until = self._world.ids.new(), self._world.clock.monotonic() + timeout
        with self._state.change() as state:
            self._enqueue(state, UPDATE, name, payload, request_id)
        while request_id not in (responses := self._state.read()["responses"]):
            left = until - self._world.clock.monotonic()
            if left <= 0:
                id = self.target.workflow_id
                raise MisuseError(f"workflow update '{name}' timed out for '{id}'")
            self._wait(min(_POLL, left))
        return responses[request_id].get("value")

    def respond(self, request_id: str, value: Any, name: str | None) -> Dict:
        """Respond to a request; return the status."""
        response = {"request_id": request_id, "value": value, "responded_at": self._stamp()}
        if name is not None:
            response["name"] = name
        with self._state.change() as state:
            state["responses"] = {**state["responses"], request_id: response}
        return self._status(state)

    def pause(self, paused: bool) -> Dict:
        """Ask the workflow to pause or to resume; return the status."""
        with self._state.change() as state:
            state["paused"] = paused
            self._enqueue(state, CONTROL, "pause" if paused else "resume", {})
        return self._status(state)

    def continue_as_new(self) -> Dict:
        """Start another generation, without the responses so far; return the status."""
        with self._state.change() as state:
            state["generation"] += 1
            state["continue_as_new_count"] += 1
            state["last_continue_as_new_at"] = self._stamp()
            state["responses"] = {}
        return self._status(state)

    def status(self) -> Dict:
        return self._status(self._state.read())

    def _status(self, state: Dict) -> Dict:
        return {
            "workflow_id": self.target.workflow_id,
            "base_dir": self.target.base_dir,
            "generation": state["generation"],
            "paused": state["paused"],
            "pending_count": len(state["mailbox"]),
            "query_count": len(state["queries"]),
            "response_count": len(state["responses"]),
            "continue_as_new_count": state["continue_as_new_count"],
            "last_continue_as_new_at": state.get("last_continue_as_new_at"),
        }

    def _enqueue(
        self, state: Dict, kind: str, name: str, payload: Any, request_id: str | None = None
    ) -> Dict:
        message = {"seq": state["next_seq"], "kind": kind, "name": name, "payload": payload}
        if request_id is not None:
            message["request_id"] = request_id
        message["enqueued_at"] = self._stamp()
        state["mailbox"] = [*state["mailbox"], message]
        state["next_seq"] += 1
        return message

    def _stamp(self) -> str:
        return rfc3339(self._world.clock.now())
