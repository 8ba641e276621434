"""A workflow's mailbox: messages, published answers and responses, in a file that processes share.

Every change takes the mailbox's lock, reads the file, and writes it as a whole: of changes made at the same
time none is lost, and a reader meets the state before or after one. Spec: 08 §10.
"""

from __future__ import annotations

import os.path
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harnpy.llm.errors import MisuseError
from harnpy.llm.messages import compact_json
from harnpy.session.effects import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.workflow.targets import Target

    Dict = dict[str, Any]

SIGNAL, UPDATE, CONTROL = "signal", "update", "control"

_TYPE = "workflow_mailbox"
_POLL, _LOCK_POLL = 0.025, 0.002
_RECEIVED = ("seq", "kind", "name", "request_id", "payload", "enqueued_at")


class Files(Protocol):
    """What is needed of a file system; `harnpy.vm.host.Host` has it."""

    def read_text(self, path: str) -> str: ...
    def make_directory(self, path: str) -> None: ...
    def replace_text(self, path: str, text: str) -> None: ...
    def try_lock(self, path: str) -> Callable[[], object] | None: ...


class World(NamedTuple):
    """What mailboxes need. ``parse`` makes a value of JSON text; ``wait(seconds)`` lets other tasks run."""

    files: Files
    parse: Callable[[str], Any]
    now: Callable[[], float]
    monotonic: Callable[[], float]
    wait: Callable[[float], None]
    new_id: Callable[[], str]


class Mailbox:
    """The mailbox of a workflow in ``directory``. Payloads and values are data, as JSON has it.

    Raises `MisuseError` where its file can't be used.
    """

    def __init__(self, target: Target, directory: str, world: World) -> None:
        self.target = target
        self._directory = directory
        self._path = os.path.join(directory, "state.json")
        self._world = world

    def signal(self, name: str, payload: Any) -> Dict:
        """Put a message in; it and the mailbox's status."""
        with self._change() as state:
            message = self._enqueue(state, SIGNAL, name, payload)
        return {"workflow_id": self.target.workflow_id, "message": message, "status": self._status(state)}

    def receive(self) -> Dict | None:
        """Take the oldest message out, None from an empty mailbox."""
        if not self._read()["mailbox"]:  # who waits for a message keeps no writer waiting
            return None
        with self._change() as state:
            if not state["mailbox"]:
                return None
            oldest, *state["mailbox"] = state["mailbox"]
        return {"workflow_id": self.target.workflow_id, **{key: oldest.get(key) for key in _RECEIVED}}

    def publish_query(self, name: str, value: Any) -> Dict:
        """Let everybody who asks for ``name`` have ``value``; the status."""
        with self._change() as state:
            published = {"value": value, "published_at": self._stamp()}
            state["queries"] = {**state["queries"], name: published}
        return self._status(state)

    def query(self, name: str) -> Any:
        """What was published last under a name, None without it."""
        published = self._read()["queries"].get(name)
        return None if published is None else published.get("value")

    def update(self, name: str, payload: Any, timeout: float) -> Any:
        """Put a request in and wait for its response. Raises `MisuseError` after ``timeout`` seconds."""
        request_id, until = self._world.new_id(), self._world.monotonic() + timeout
        with self._change() as state:
            self._enqueue(state, UPDATE, name, payload, request_id)
        while request_id not in (responses := self._read()["responses"]):
            left = until - self._world.monotonic()
            if left <= 0:
                id = self.target.workflow_id
                raise MisuseError(f"workflow update '{name}' timed out for '{id}'")
            self._world.wait(min(_POLL, left))
        return responses[request_id].get("value")

    def respond(self, request_id: str, value: Any, name: str | None) -> Dict:
        """Answer a request; the status."""
        response = {"request_id": request_id, "value": value, "responded_at": self._stamp()}
        if name is not None:
            response["name"] = name
        with self._change() as state:
            state["responses"] = {**state["responses"], request_id: response}
        return self._status(state)

    def pause(self, paused: bool) -> Dict:
        """Tell the workflow to pause, or to resume; the status."""
        with self._change() as state:
            state["paused"] = paused
            self._enqueue(state, CONTROL, "pause" if paused else "resume", {})
        return self._status(state)

    def continue_as_new(self) -> Dict:
        """Begin another generation, which knows no responses; the status."""
        with self._change() as state:
            state["generation"] += 1
            state["continue_as_new_count"] += 1
            state["last_continue_as_new_at"] = self._stamp()
            state["responses"] = {}
        return self._status(state)

    def status(self) -> Dict:
        return self._status(self._read())

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
        return rfc3339(self._world.now())

    # The file.

    @contextmanager
    def _change(self) -> Iterator[Dict]:
        """The state, to be changed by what is done with it; a block that is left early changes nothing."""
        with self._lock():
            state = self._read()
            before = dict(state)
            yield state
            if state != before:
                self._write(state)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        files, path = self._world.files, os.path.join(self._directory, "state.lock")
        try:
            files.make_directory(self._directory)
            while (release := files.try_lock(path)) is None:
                self._world.wait(_LOCK_POLL)
        except (OSError, ValueError) as error:
            raise self._failure("lock", error) from error
        try:
            yield
        finally:
            release()

    def _read(self) -> Dict:
        try:
            read = self._world.parse(self._world.files.read_text(self._path))
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
            self._world.files.replace_text(self._path, compact_json(state) + "\n")
        except OSError as error:
            raise self._failure("write", error) from error

    def _failure(self, step: str, error: Exception) -> MisuseError:
        reason = getattr(error, "strerror", None) or error
        return MisuseError(f"workflow state {step} error: {reason}: {self._path}")

    def _fresh(self) -> Dict:
        return {
            "_type": _TYPE,
            "workflow_id": self.target.workflow_id,
            "generation": 1,
            "continue_as_new_count": 0,
            "paused": False,
            "next_seq": 1,
            "mailbox": [],
            "queries": {},
            "responses": {},
        }


def _problem(read: Any, fresh: Dict) -> str | None:
    """What keeps a value from being a mailbox's state."""
    if not isinstance(read, dict) or read.get("_type") != _TYPE:
        return f"`_type` must be {_TYPE}"
    for key, default in fresh.items():
        value = read.get(key, default)
        entries = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if type(value) is not type(default) or not all(isinstance(entry, dict) for entry in entries):
            return f"`{key}` has the wrong type"
    return None
