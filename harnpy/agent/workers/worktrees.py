"""Workers with a copy of a repository of their own: git worktrees. Spec: 07 §11.2, 08 §14.

A worktree is made when its worker is, and again when the worker is given a task after it was removed; git
itself refuses to remove one with changes that nobody committed, so none are ever lost.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError

if TYPE_CHECKING:
    from harnpy.agent.runtime import Finished, Runtime
    from harnpy.reading.dicts import Dict


ADAPTER = "worktree"
KEEP, REMOVE = "keep", "remove"
_CLEANUPS = (KEEP, REMOVE)
_TEXTS = ("repo", "path", "branch", "base_ref", "cleanup")

_DIRECTORY, _STATE_ROOT = "HARN_WORKTREE_DIR", "HARN_STATE_DIR"


def read_worktree(given: Any, caller: str) -> Dict:
    """The settings in a dict. Raises `MisuseError` in the name of ``caller``."""
    name = f"{caller}: execution.worktree"
    if not isinstance(given, dict):
        raise MisuseError(f"{name} must be a dict")
    for key in _TEXTS:
        if given.get(key) is not None and not isinstance(given[key], str):
            raise MisuseError(f"{name}.{key} must be a string")
    if not (given.get("repo") or "").strip():
        raise MisuseError(f"{name}.repo is required")
    cleanup = given.get("cleanup") or KEEP
    if cleanup not in _CLEANUPS:
        raise MisuseError(f"{name}.cleanup must be one of {', '.join(_CLEANUPS)}; got `{cleanup}`")
    return {key: given.get(key) or None for key in _TEXTS} | {"cleanup": cleanup}


def settled(runtime: Runtime, execution: Dict, worker_id: str) -> Dict:
    """The execution with the worktree that it asks for, named after the worker where it has no name."""
    wanted = execution.get("worktree")
    if wanted is None:
        return execution
    world = runtime.sessions.world
    repo = os.path.join(world.files.cwd(), wanted["repo"])
    path = wanted["path"] or os.path.join(_directory(runtime), worker_id)
    kept = {key: value for key, value in execution.items() if key != "worktree"}
    return {
        **kept,
        "cwd": _within(os.path.join(world.files.cwd(), path), execution.get("cwd")),
        "adapter": ADAPTER,
        "repo_path": repo,
        "worktree_path": os.path.join(world.files.cwd(), path),
        "branch": wanted["branch"] or f"harn/{worker_id}",
        "base_ref": wanted["base_ref"] or "HEAD",
        "cleanup": wanted["cleanup"],
    }


def make(runtime: Runtime, execution: Dict, caller: str) -> None:
    """Let there be the worktree of an execution, on a new branch at its base. Raises `MisuseError`."""
    path, branch, base = (execution[key] for key in ("worktree_path", "branch", "base_ref"))
    _add(runtime, execution, caller, "-B", branch, path, base)


def make_again(runtime: Runtime, execution: Dict, caller: str) -> None:
    """Let there be the worktree, if it has been removed; its branch goes on where it was."""
    if not is_worktree(execution) or _exists(runtime, execution):
        return
    _git(runtime, execution, "worktree", "prune")
    _add(runtime, execution, caller, execution["worktree_path"], execution["branch"])


def clean_up(runtime: Runtime, execution: Dict) -> None:
    """Remove the worktree of a worker that rests, if it was asked for; one with changes stays."""
    if not is_worktree(execution) or execution["cleanup"] != REMOVE:
        return
    path = execution["worktree_path"]
    try:
        ended = _git(runtime, execution, "worktree", "remove", path)
    except MisuseError as error:
        runtime.sessions.world.warn("agent.worker", error.message)
        return
    if ended.status != 0:
        runtime.sessions.world.warn("agent.worker", f"worktree '{path}' stays: {ended.stderr.strip()}")


def mutation(execution: Dict) -> Dict:
    """What it changes about the worker's mutation session that it has a worktree."""
    return {"mutation_scope": "apply_worktree"} if is_worktree(execution) else {}


def is_worktree(execution: Dict) -> bool:
    return execution.get("adapter") == ADAPTER and bool(execution.get("worktree_path"))


def _directory(runtime: Runtime) -> str:
    """Where the worktrees are that nobody named a place for (09 §7)."""
    env = runtime.sessions.world.environment.get
    named = (env(_DIRECTORY) or "").strip()
    return named or os.path.join((env(_STATE_ROOT) or "").strip() or ".harn", "worktrees")


def _within(worktree: str, cwd: str | None) -> str:
    """The directory to work in: one named by the execution lies in the worktree."""
    return worktree if not cwd else os.path.join(worktree, cwd)


def _exists(runtime: Runtime, execution: Dict) -> bool:
    try:
        return (
            _git(runtime, execution, "-C", execution["worktree_path"], "rev-parse", "--git-dir").status == 0
        )
    except MisuseError:
        return False


def _git(runtime: Runtime, execution: Dict, *arguments: str) -> Finished:
    repo = execution["repo_path"]
    try:
        return runtime.run_program(("git", *arguments), repo, {})
    except OSError as error:
        reason = error.strerror or error
        raise MisuseError(f"git can't be run in '{repo}': {reason}") from error


def _add(runtime: Runtime, execution: Dict, caller: str, *arguments: str) -> None:
    ended = _git(runtime, execution, "worktree", "add", "-q", *arguments)
    if ended.status != 0:
        raise MisuseError(f"{caller}: failed to create worktree: {ended.stderr.strip()}")
