"""The state of a mailbox in a file that processes share. Spec: 08 §10.

Every change takes the mailbox's lock, reads the file and writes it as a whole. So no concurrent change is
lost, and a reader sees the state before or after a change.
"""

from __future__ import annotations

import os.path
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.text.json.compact import compact_json
from harnpy.text.json.reader import parse_json
from harnpy.world.files import take_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.reading.dicts import Dict
    from harnpy.world.files import Files

    Wait = Callable[[float], object]


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
        reason = getattr(error, "strerror", None) or error
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
