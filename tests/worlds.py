"""Worlds for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from harnpy.agent.tasks import OneTask
from harnpy.llm.call import Models
from harnpy.world import World
from harnpy.world.clock import RealClock
from harnpy.world.environment import RealEnvironment
from harnpy.world.files import RealFiles
from harnpy.world.ids import RealIds
from harnpy.world.processes import RealProcesses
from harnpy.world.streams import RealStreams

if TYPE_CHECKING:
    from harnpy.llm.providers import Provider
    from harnpy.world.clock import Clock


class OwnWorld(World, RealEnvironment, RealFiles, RealIds, RealProcesses, RealStreams):
    """The real world, as one object that is most of its parts: a test overrides the methods that it wants."""

    def __init__(
        self,
        stdout: Callable[[str], object] | None = None,
        stderr: Callable[[str], object] | None = None,
        stdin: TextIO | None = None,
        clock: Clock | None = None,
    ) -> None:
        RealFiles.__init__(self)
        RealIds.__init__(self)
        RealStreams.__init__(self, stdout, stderr, stdin)
        if clock:
            self.clock = clock
        self.environment = self.files = self.ids = self.processes = self.streams = self


_CLOCK = ("now", "monotonic")


def world_with(**methods: Callable[..., Any]) -> OwnWorld:
    """The real world with some of its functions replaced, such as ``now``, ``new``, ``cwd`` or ``get``."""
    world = OwnWorld(clock=RealClock())
    for name, method in methods.items():
        if name in _CLOCK:
            setattr(world.clock, name, method)
            continue
        if not hasattr(world, name):
            raise AttributeError(name)
        setattr(world, name, method)
    return world


class Waits(OneTask):
    """Waiting in which time is only noted: ``slept`` has the seconds of every sleep."""

    def __init__(self, sleep: Callable[[float], Any]) -> None:
        super().__init__(RealClock())
        self._note = sleep

    def sleep(self, seconds: float) -> None:
        self._note(seconds)


def models_with(
    env: Mapping[str, str] | None = None,
    *,
    sleep: Callable[[float], Any] | None = None,
    directory: Callable[[], str] | None = None,
    provided: Mapping[str, Provider] | None = None,
    **methods: Callable[..., Any],
) -> Models:
    """The models of a world that has these variables only, and some functions of its own."""
    world = world_with(get=(env or {}).get, **methods)
    return Models(world, Waits(sleep) if sleep else None, directory=directory, provided=provided)
