"""A copy of a repository for a child to work in: a git worktree without a branch. Spec: 10 §A1.15."""

from __future__ import annotations

import logging
import os.path
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harnpy.session.errors import ChildError
from harnpy.storage.jsonl.layout import file_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.session.calling import Caller
    from harnpy.world import World
    from harnpy.world.processes import Ended

    Metadata = dict[str, str]

#: Where worktrees are unless they have a path of their own, below their repository.
_PLACE = os.path.join(".harn", "worktrees")


@dataclass(frozen=True)
class Worktree:
    """A directory that a child works in: the files of ``repo`` at ``ref``, in a directory of their own at
    ``path``.

    Without a ``path`` it is below the repository, called like the child. It is removed when the child has
    ended, unless it is to be kept, or has changes that aren't committed.
    """

    repo: str
    ref: str = "HEAD"
    path: str | None = None
    keep: bool = False

    @contextmanager
    def opened(self, name: str, world: World, call: Caller) -> Iterator[Metadata]:
        """Have it there. Give what events say of it. Raises `ChildError` where git refuses."""
        repo = os.path.abspath(self.repo)
        path = os.path.abspath(self.path or os.path.join(repo, _PLACE, file_name(name, folded=True)))
        git = _Git(repo, world, call)
        problem = git.problem("worktree", "add", "-q", "--detach", path, self.ref)
        if problem is not None:
            raise ChildError(f"spawn child: no worktree of '{repo}' at '{self.ref}': {problem}")
        try:
            yield {"workspace_path": path, "workspace_repo": repo}
        finally:
            problem = None if self.keep else git.problem("worktree", "remove", path)
            if problem is not None:
                logging.getLogger(__name__).warning("worktree '%s' stays: %s", path, problem)


class _Git:
    """git in a repository. ``call`` waits for it, also when the child was cancelled."""

    def __init__(self, repo: str, world: World, call: Caller) -> None:
        self._repo = repo
        self._world = world
        self._call = call

    def problem(self, *arguments: str) -> str | None:
        """Run it. Return what it says when it fails."""
        argv: Sequence[str] = ("git", *arguments)
        try:
            ended: Ended = self._call(self._world.processes.run, argv, self._repo)
        except OSError as error:
            return error.strerror or str(error)
        except RuntimeError:
            return "the event loop that would wait for it is closed"
        return None if ended.code == 0 else ended.err.decode(errors="replace").strip()
