"""`Workplace`: where a task works, what relative paths are relative to, and git worktrees of its own.

Spec: 04 §19–20, 07 §11.2, 08 §14.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harnpy.faults import MisuseError
from harnpy.formats.manifest import require_inside
from harnpy.project import STATE_VARIABLE, WORKTREES_VARIABLE, state_directory
from harnpy.world.checked_files import names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.agent.context import Place
    from harnpy.formats.dicts import Dict
    from harnpy.llm.waiting import Waiting
    from harnpy.world import World
    from harnpy.world.files import Files


class Finished(NamedTuple):
    """A program that ran: ``status`` is -1 when a signal ended it."""

    stdout: str
    stderr: str
    status: int


class RunProgram(Protocol):
    def __call__(self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str]) -> Finished:
        """Run a program without input to its end. Raises OSError when it can't be started.

        ``cwd`` may be relative to the program's; None is where the task works. ``env`` adds to the task's.
        """


def real_path_in(files: Files, directory: str, path: str) -> str | None:
    """Return what a path in a directory leads to, absolute and free of links; None for what is no path."""
    try:
        names_of(path)
        return files.real_path(os.path.join(directory, path))
    except OSError:
        return None


class Workplace:
    """``place`` returns the place of the worker or workflow that the running task works for, if it has one;
    ``home`` the directory of the program, if it has one."""

    def __init__(
        self,
        world: World,
        waiting: Waiting,
        place: Callable[[], Place | None],
        home: Callable[[], str | None],
    ) -> None:
        self._world = world
        # Rules ask what paths lead to; what they forbid is asked of the world that programs reach.
        self._files = world.unguarded.files
        self._waiting = waiting
        self._place = place
        self._home = home

    def path(self, path: str) -> str:
        """Return the absolute path of a file that an agent names."""
        return os.path.join(self.own_directory() or self._home() or self._world.files.cwd(), path)

    def real_base(self) -> str | None:
        """Return what the directory leads to that such paths are relative to."""
        return real_path_in(self._files, self.path(""), ".")

    def real_path(self, path: str) -> str | None:
        """Return what such a path leads to, absolute and free of links; None for a text that is no path."""
        return real_path_in(self._files, self.path(""), path)

    def real_root(self, path: str) -> str | None:
        """The same for one relative to the directory that programs are run in."""
        return real_path_in(self._files, self.directory(), path)

    def is_dir(self, path: str) -> bool:
        """Return whether such a path leads to a directory."""
        return self._files.is_dir(self.path(path))

    def directory(self) -> str:
        """Return the directory that programs are run in."""
        return self.own_directory() or self._world.files.cwd()

    def own_directory(self) -> str | None:
        """Return the directory that the worker or workflow was given, if any."""
        place = self._place()
        return None if place is None or place.cwd is None else self._absolute(place.cwd)

    def environment(self) -> Mapping[str, str] | None:
        """Return the environment of programs; None is the world's as it is."""
        place, environment = self._place(), self._world.environment
        return {**environment.all(), **place.env} if place is not None and place.env else None

    def variable(self, name: str) -> str | None:
        """Return the value of an environment variable, None when it isn't set."""
        place = self._place()
        own = None if place is None else place.env.get(name)
        return self._world.environment.get(name) if own is None else own

    def run(self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str]) -> Finished:
        """Run a program without input to its end. Raises OSError when it can't be started.

        None as ``cwd`` is the `directory`; ``env`` is added to the environment.
        """
        directory = self.directory() if cwd is None else self._absolute(cwd)
        inherited = self.environment() or self._world.environment.all()
        ended = self._waiting.wait(self._world.processes.run(argv, directory, {**inherited, **env}))
        out, err = (output.decode("utf-8", "replace") for output in (ended.out, ended.err))
        return Finished(out, err, max(ended.code, -1))

    def _absolute(self, path: str) -> str:
        return os.path.join(self._world.files.cwd(), path)


# Workers with a copy of a repository of their own: git worktrees. Spec: 07 §11.2, 08 §14.
#
# A worktree is created with its worker, and again when the worker receives a task after it was removed. Git
# itself refuses to remove one with uncommitted changes, so none are ever lost.


ADAPTER = "worktree"
KEEP, REMOVE = "keep", "remove"
_CLEANUPS = (KEEP, REMOVE)
_TEXTS = ("repo", "path", "branch", "base_ref", "cleanup")


def read_worktree(given: Any, caller: str) -> Dict:
    """Return the settings in a dict. Raises `MisuseError`, which names ``caller``."""
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


class Worktrees:
    """The worktrees of one program's workers. ``run_program`` runs git."""

    def __init__(self, world: World, run_program: RunProgram) -> None:
        self._world = world
        self._run_program = run_program

    def named(self, execution: Dict, worker_id: str) -> Dict:
        """Add the worktree that an execution asks for, by default named after its worker."""
        wanted = execution.get("worktree")
        if wanted is None:
            return execution
        here = self._world.files.cwd()
        path = os.path.join(here, wanted["path"] or os.path.join(self._directory(), worker_id))
        if not wanted["path"]:
            require_inside(self._world.unguarded, here, path)
        kept = {key: value for key, value in execution.items() if key != "worktree"}
        return {
            **kept,
            "cwd": _within(path, execution.get("cwd")),
            "adapter": ADAPTER,
            "repo_path": os.path.join(here, wanted["repo"]),
            "worktree_path": path,
            "branch": wanted["branch"] or f"harn/{worker_id}",
            "base_ref": wanted["base_ref"] or "HEAD",
            "cleanup": wanted["cleanup"],
        }

    def create(self, execution: Dict, caller: str) -> None:
        """Create the worktree of an execution, on a new branch at its base. Raises `MisuseError`."""
        path, branch, base = (execution[key] for key in ("worktree_path", "branch", "base_ref"))
        self._add(execution, caller, "-B", branch, path, base)

    def recreate(self, execution: Dict, caller: str) -> None:
        """Create the worktree again if it has been removed, on its branch."""
        if not is_worktree(execution) or self._exists(execution):
            return
        self._git(execution, "worktree", "prune")
        self._add(execution, caller, execution["worktree_path"], execution["branch"])

    def clean_up(self, execution: Dict) -> None:
        """Remove the worktree of a worker that rests, if that was asked for. One with changes stays."""
        if not is_worktree(execution) or execution["cleanup"] != REMOVE:
            return
        path = execution["worktree_path"]
        try:
            ended = self._git(execution, "worktree", "remove", path)
        except MisuseError as error:
            self._world.warn("agent.worker", error.message)
            return
        if ended.status != 0:
            self._world.warn("agent.worker", f"worktree '{path}' stays: {ended.stderr.strip()}")

    def _directory(self) -> str:
        """Return the directory of the worktrees without a path of their own (09 §7)."""
        env = self._world.unguarded.environment.get
        named = (env(WORKTREES_VARIABLE) or "").strip()
        return named or os.path.join(state_directory("", env(STATE_VARIABLE)), "worktrees")

    def _exists(self, execution: Dict) -> bool:
        try:
            asked = self._git(execution, "-C", execution["worktree_path"], "rev-parse", "--git-dir")
        except MisuseError:
            return False
        return asked.status == 0

    def _add(self, execution: Dict, caller: str, *arguments: str) -> None:
        ended = self._git(execution, "worktree", "add", "-q", *arguments)
        if ended.status != 0:
            raise MisuseError(f"{caller}: failed to create worktree: {ended.stderr.strip()}")

    def _git(self, execution: Dict, *arguments: str) -> Finished:
        repo = execution["repo_path"]
        try:
            return self._run_program(("git", *arguments), repo, {})
        except OSError as error:
            reason = error.strerror or error
            raise MisuseError(f"git can't be run in '{repo}': {reason}") from error


def mutation(execution: Dict) -> Dict:
    """Return what a worktree changes about its worker's mutation session."""
    return {"mutation_scope": "apply_worktree"} if is_worktree(execution) else {}


def is_worktree(execution: Dict) -> bool:
    return execution.get("adapter") == ADAPTER and bool(execution.get("worktree_path"))


def _within(worktree: str, cwd: str | None) -> str:
    """Return the directory to work in; an execution's ``cwd`` is relative to the worktree."""
    return worktree if not cwd else os.path.join(worktree, cwd)
