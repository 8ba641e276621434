"""Worlds for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

from harnpy.world import World
from harnpy.world.clock import RealClock
from harnpy.world.environment import RealEnvironment
from harnpy.world.files import RealFiles
from harnpy.world.ids import RealIds
from harnpy.world.processes import RealProcesses
from harnpy.world.streams import RealStreams

if TYPE_CHECKING:
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
        RealStreams.__init__(self, stdout, stderr, stdin)
        if clock:
            self.clock = clock
        self.environment = self.files = self.ids = self.processes = self.streams = self


def world_with(now: Callable[[], float] | None = None, **methods: Callable[..., Any]) -> OwnWorld:
    """The real world with some of its functions replaced, such as ``now``, ``new``, ``cwd`` or ``get``."""
    world = OwnWorld()
    if now:
        clock: Any = RealClock()
        clock.now = now
        world.clock = clock
    for name, method in methods.items():
        if not hasattr(world, name):
            raise AttributeError(name)
        setattr(world, name, method)
    return world
