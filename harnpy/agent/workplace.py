"""Where a task works: what relative paths are relative to, and how it runs programs. Spec: 04 §19, §20."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

from harnpy.agent.programs import Finished
from harnpy.world.disk.reached import names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.agent.context import Place
    from harnpy.llm.waiting import Waiting
    from harnpy.world import World
    from harnpy.world.files import Files


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
