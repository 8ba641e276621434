"""A worker's state in a file, for a later run of the program. Spec: 07 §11.3, 08 §13.1.

Functions don't outlive a program, so they are left out: tools come back without their handlers.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from harnpy.agent.commands.policy import TYPE as COMMAND_POLICY
from harnpy.agent.commands.policy import with_hooks_as_texts
from harnpy.agent.rules.policy import policy_dict
from harnpy.agent.workers.carry import read_carry
from harnpy.agent.workers.worker import INTERRUPTED, RUNNING, STATUSES, Worker
from harnpy.faults import MisuseError
from harnpy.text.json.reader import parse_json
from harnpy.text.json.writer import pretty_json

if TYPE_CHECKING:
    from harnpy.agent.background_runs import Bell
    from harnpy.agent.context import AgentContext
    from harnpy.reading.dicts import Dict
    from harnpy.world import World


TYPE = "worker_snapshot"
VARIABLE = "HARN_WORKER_STATE_DIR"
_STATE_ROOT = "HARN_STATE_DIR"

#: The keys of a snapshot that are fields of the worker.
_FIELDS = (
    "id", "name", "task", "mode", "status", "request", "config", "created_at", "started_at", "finished_at",
    "awaiting_started_at", "history", "result", "error", "artifacts", "transcript", "session_id",
    "parent_session_id", "parent_worker_id", "parent_stage_id", "child_run_id", "child_run_path", "execution",
    "audit",
)  # fmt: skip
_DICTS = ("request", "config", "execution", "audit")
_LISTS = ("history", "artifacts")
_TEXTS = ("id", "name", "task", "mode", "created_at")


class Snapshots:
    """The files of one program's workers."""

    def __init__(self, world: World) -> None:
        self._world = world

    def path(self, id: str) -> str:
        """Return the path of the worker's snapshot."""
        env = self._world.unguarded.environment.get
        directory = (env(VARIABLE) or "").strip()
        if not directory:
            root = (env(_STATE_ROOT) or "").strip() or ".harn"
            directory = os.path.join(root, "workers")
        return self._absolute(os.path.join(directory, f"{id}.json"))

    def locate(self, id_or_path: str) -> str:
        """Return the file that an id or a path stands for."""
        is_path = "/" in id_or_path or id_or_path.endswith(".json")
        return self._absolute(id_or_path) if is_path else self.path(id_or_path)

    def save(self, worker: Worker) -> None:
        """Write the worker's file, if it has one. Raises `MisuseError`."""
        path = worker.snapshot_path
        if path is None:
            return
        files = self._world.state_files if path == self.path(worker.id) else self._world.files
        try:
            files.replace_text(path, pretty_json(_snapshot(worker)) + "\n", durable=False)
        except OSError as error:
            raise MisuseError(f"failed to write worker snapshot '{path}': {_reason(error)}") from error

    def load(self, path: str) -> Dict | None:
        """Return the snapshot in a file, None when there is no file. Raises `MisuseError` for other files."""
        try:
            read = parse_json(self._world.files.read_text(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise MisuseError(f"resume_agent: failed to read '{path}': {_reason(error)}") from error
        problem = _problem(read)
        if problem is not None:
            raise MisuseError(f"resume_agent: '{path}' is no worker snapshot: {problem}")
        snapshot: Dict = read
        return snapshot

    def _absolute(self, path: str) -> str:
        return os.path.join(self._world.files.cwd(), path)


def restored(snapshot: Dict, path: str, context: AgentContext, bell: Bell) -> Worker:
    """Return the worker of a snapshot, at rest. One that was running is interrupted."""
    fields = {key: snapshot[key] for key in _FIELDS}
    if fields["status"] == RUNNING:
        fields["status"] = INTERRUPTED
    carry = read_carry(snapshot.get("carry_policy"), "resume_agent")
    return Worker(**fields, carry=carry, context=context, bell=bell, snapshot_path=path)


def _snapshot(worker: Worker) -> Dict:
    policy = worker.context.rules.policy
    return {
        **worker.handle(),
        "_type": TYPE,
        "config": without_functions(worker.config),
        "latest_payload": worker.result,
        "latest_error": worker.error,
        "transcript": worker.transcript,
        "artifacts": worker.artifacts,
        "carry_policy": worker.carry.as_dict(),
        "policy": None if policy is None else policy_dict(policy.kept()),
        "session_id": worker.session_id,
        "parent_session_id": worker.parent_session_id,
    }


def without_functions(value: Any) -> Any:
    """Return a value without the functions in it. Of a command policy's hooks their texts stay."""
    if isinstance(value, dict):
        return {
            key: with_hooks_as_texts(item) if key == COMMAND_POLICY else without_functions(item)
            for key, item in value.items()
            if not callable(item)
        }
    if isinstance(value, list):
        return [without_functions(item) for item in value if not callable(item)]
    return value


def _problem(read: Any) -> str | None:
    """Return why a value isn't a snapshot, if so."""
    if not isinstance(read, dict) or read.get("_type") != TYPE:
        return f"`_type` must be {TYPE}"
    missing = [key for key in _FIELDS if key not in read]
    if missing:
        return f"missing {', '.join(missing)}"
    for keys, kind in ((_DICTS, dict), (_LISTS, list), (_TEXTS, str)):
        for key in keys:
            if not isinstance(read[key], kind):
                return f"`{key}` has the wrong type"
    return None if read["status"] in STATUSES else "unknown status"


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "stream did not contain valid UTF-8" if isinstance(error, UnicodeError) else str(error)
