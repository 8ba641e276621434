"""The one door to the outside: time, ids, chance, machine, files, processes, streams, HTTP and people.

In each module: what a program may ask of the world (a protocol), and the real thing beside it. `World`
gathers them. Recording, replaying, sandboxing and mocking replace parts of it; `harnpy.world.guarded` puts
rules before it. Every other room reaches the outside through a `World`; this room imports nothing but
`harnpy.faults`. On the start-up path: parts load on first use.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.world.clock import Clock
    from harnpy.world.environment import Environment, Machine
    from harnpy.world.files import Files
    from harnpy.world.host import Host, People, Stopping
    from harnpy.world.http import Http, Listening
    from harnpy.world.ids import Entropy, Ids
    from harnpy.world.processes import Processes
    from harnpy.world.random import Random
    from harnpy.world.streams import Streams

#: The real part of each name, and the module that defines it.
_REAL = {
    "clock": ("clock", "RealClock"),
    "entropy": ("ids", "RealEntropy"),
    "environment": ("environment", "RealEnvironment"),
    "files": ("files", "RealFiles"),
    "host": ("host", "Host"),
    "http": ("http", "RealHttp"),
    "ids": ("ids", "RealIds"),
    "listening": ("http", "RealListening"),
    "machine": ("environment", "RealMachine"),
    "people": ("host", "People"),
    "processes": ("processes", "RealProcesses"),
    "random": ("random", "RealRandom"),
    "stopping": ("host", "NeverAsked"),
    "streams": ("streams", "RealStreams"),
}


class World:
    """The real world, except for the parts that are given."""

    clock: Clock
    entropy: Entropy
    environment: Environment
    files: Files
    host: Host
    http: Http
    ids: Ids
    listening: Listening
    machine: Machine
    people: People
    processes: Processes
    random: Random
    stopping: Stopping
    streams: Streams

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        environment: Environment | None = None,
        files: Files | None = None,
        host: Host | None = None,
        http: Http | None = None,
        ids: Ids | None = None,
        listening: Listening | None = None,
        machine: Machine | None = None,
        people: People | None = None,
        processes: Processes | None = None,
        random: Random | None = None,
        stopping: Stopping | None = None,
        streams: Streams | None = None,
    ) -> None:
        given = {
            "clock": clock,
            "entropy": entropy,
            "environment": environment,
            "files": files,
            "host": host,
            "http": http,
            "ids": ids,
            "listening": listening,
            "machine": machine,
            "people": people,
            "processes": processes,
            "random": random,
            "stopping": stopping,
            "streams": streams,
        }
        self.__dict__.update({name: part for name, part in given.items() if part is not None})

    if not TYPE_CHECKING:  # mypy would let any name pass

        def __getattr__(self, name: str) -> object:
            """Make the real part of that name. A short program needs two of them."""
            if name not in _REAL:
                raise AttributeError(f"a world has no {name!r}")
            module, real = _REAL[name]
            part = getattr(__import__(f"{__package__}.{module}", fromlist=[real]), real)()
            setattr(self, name, part)
            return part

    @property
    def unguarded(self) -> World:
        """The world for what the Vm does on its own account, whatever the rules for programs are."""
        return self

    @property
    def state_files(self) -> Files:
        """The files in which programs keep what their next run finds again, where the runtime puts them."""
        from harnpy.world.files import private_files

        return private_files(self.files)

    @property
    def placed_state_files(self) -> Files:
        """The same where a program puts them."""
        return self.state_files

    def sees(self, path: str) -> bool:
        """Return whether there is something at ``path``, as far as the rules let programs look it up."""
        return self.files.exists(path)

    def require(self, effect: str, target: str) -> None:
        """Raise unless the rules allow an effect that isn't had through this world."""

    def require_place(self, effect: str, path: str) -> None:
        """Raise unless the rules allow an effect on a file, and there."""

    def held(self) -> World:
        """The world under the rules of this moment, for work whose writing comes later."""
        return self

    def warn(self, topic: str, message: str) -> None:
        """Write a warning of ours to standard error."""
        self.streams.write_err(f"warning: {topic}: {message}\n")
