"""The world as programs reach it: rules are asked before every effect. Spec: 07 §8.5.

A `GuardedWorld` is another `World` behind a `Guard`. What restricts nobody passes: time, chance, ids, output,
and what the embedder offers as `Host`. Whoever acts on the Vm's own account (its settings, its logs, the
modules of a program) says so by `world.unguarded`, what keeps state for a program's next run by
`world.state_files`, or `placed_state_files` where the program names the place.
"""

from __future__ import annotations

import os.path

from harnpy.world import World
from harnpy.world.effects import ENVIRONMENT, LIST, NETWORK, PERSON, PROCESS, STATE
from harnpy.world.files import private_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    import httpx2

    from harnpy.world.clock import Clock
    from harnpy.world.connections import Application, Listener, Place
    from harnpy.world.effects import Guard
    from harnpy.world.egress import Egress
    from harnpy.world.environment import Environment
    from harnpy.world.files import Files
    from harnpy.world.host import People
    from harnpy.world.http import Http, Listening
    from harnpy.world.processes import Companion, Ended, Heard, Processes
    from harnpy.world.streams import Streams


class GuardedWorld(World):
    """``unguarded``, where ``guard`` is asked before each effect, and the time is what ``clock`` shows."""

    def __init__(self, unguarded: World, guard: Guard, clock: Clock) -> None:
        super().__init__(clock=clock)
        self._unguarded = unguarded
        self._guard = guard

    @property
    def unguarded(self) -> World:
        return self._unguarded

    @property
    def state_files(self) -> Files:
        return _files(private_files(self._unguarded.files), _Keeping(self._guard, anywhere=True))

    @property
    def placed_state_files(self) -> Files:
        return _files(private_files(self._unguarded.files), _Keeping(self._guard, anywhere=False))

    def sees(self, path: str) -> bool:
        if self._guard.in_force():
            try:
                real = self._unguarded.files.real_path(path)
            except (ValueError, OSError):  # a path that nothing can have
                return False
            if self._guard.refuses(LIST, real) or self._guard.refuses_place(LIST, real, path):
                return False
        return self.files.exists(path)

    def require(self, effect: str, target: str) -> None:
        if self._guard.in_force():
            self._guard.require(effect, target)

    def require_place(self, effect: str, path: str) -> None:
        if self._guard.in_force():
            try:
                real = self._unguarded.files.real_path(path)
            except (OSError, ValueError):  # no file can be called so: whoever opens it says so
                real = path
            self._guard.require(effect, real)
            self._guard.require_place(effect, real, path)

    def held(self) -> World:
        return GuardedWorld(self._unguarded, self._guard.held(), self.clock)

    if not TYPE_CHECKING:  # mypy would let any name pass

        def __getattr__(self, name: str) -> object:
            part = getattr(self._unguarded, name)
            if name in _GUARDED:
                part = _GUARDED[name](part, self._guard)
            setattr(self, name, part)
            return part


class _Keeping:
    """``guard`` for files that keep state, whatever is done to them; ``anywhere``: wherever they are."""

    def __init__(self, guard: Guard, anywhere: bool) -> None:
        self._guard = guard
        self._anywhere = anywhere
        self.in_force = guard.in_force
        self.look = guard.look

    def refuses(self, effect: str, target: str) -> str | None:
        return self._guard.refuses(STATE, target)

    def require(self, effect: str, target: str) -> None:
        self._guard.require(STATE, target)

    def refuses_place(self, effect: str, path: str, named: str) -> str | None:
        return None if self._anywhere else self._guard.refuses_place(effect, path, named)

    def require_place(self, effect: str, path: str, named: str) -> None:
        if not self._anywhere:
            self._guard.require_place(effect, path, named)

    def held(self) -> Guard:
        return _Keeping(self._guard.held(), self._anywhere)


def _files(files: Files, guard: Guard) -> Files:
    from harnpy.world.checked_files import guarded_files

    return guarded_files(files, guard)


class GuardedEnvironment:
    def __init__(self, environment: Environment, guard: Guard) -> None:
        self._environment = environment
        self._guard = guard

    def get(self, name: str) -> str | None:
        self._guard.require(ENVIRONMENT, name)
        return self._environment.get(name)

    def all(self) -> Mapping[str, str]:
        return {} if self._guard.refuses(ENVIRONMENT, "*") else self._environment.all()

    def login_shell(self) -> str | None:
        return self._environment.login_shell()


class GuardedProcesses:
    def __init__(self, processes: Processes, guard: Guard) -> None:
        self._processes = processes
        self._guard = guard

    async def run(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Ended:
        cwd, env = self._admitted(argv, cwd, env)
        return await self._processes.run(argv, cwd, env, timeout)

    async def start(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str] | None = None,
        heard: Heard | None = None,
    ) -> Companion:
        cwd, env = self._admitted(argv, cwd, env)
        return await self._processes.start(argv, cwd, env, heard)

    def _admitted(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str] | None
    ) -> tuple[str, Mapping[str, str] | None]:
        """Return where a program may run, and in which environment."""
        self._guard.require(PROCESS, argv[0])
        if self._guard.in_force():
            named, cwd = os.path.abspath(cwd), os.path.realpath(cwd)
            self._guard.require_place(PROCESS, cwd, named)
        if env is None and self._guard.refuses(ENVIRONMENT, "*"):
            env = {}
        return cwd, env


class GuardedHttp:
    def __init__(self, http: Http, guard: Guard) -> None:
        self._http = http
        self._guard = guard

    async def status(
        self, method: str, url: str, headers: Mapping[str, str], timeout: float, body: Any = None
    ) -> int:
        self._guard.require(NETWORK, url)
        return await self._http.status(method, url, headers, timeout, body)

    def behind(self, egress: Egress) -> GuardedHttp:
        return GuardedHttp(self._http.behind(egress), self._guard)

    def client(
        self, surface: str, *, permit: Callable[[str], object] | None = None, **options: Any
    ) -> httpx2.AsyncClient:
        def permitted(url: str) -> None:
            self._guard.require(NETWORK, url)
            if permit is not None:
                permit(url)

        return self._http.client(surface, permit=permitted, **options)

    def sdk_client(self, sdk: Any, most: int) -> Any:
        self._guard.require(NETWORK, sdk.__name__)
        return self._http.sdk_client(sdk, most)


class GuardedListening:
    def __init__(self, listening: Listening, guard: Guard) -> None:
        self._listening = listening
        self._guard = guard

    async def listen(self, application: Application, place: Place) -> Listener:
        self._guard.require(NETWORK, f"listen://{place.host}:{place.port}")
        return await self._listening.listen(application, place)


class GuardedStreams:
    """Output passes; input is a person's."""

    def __init__(self, streams: Streams, guard: Guard) -> None:
        self._streams = streams
        self._guard = guard
        self.write_out = streams.write_out
        self.write_err = streams.write_err
        self.isatty = streams.isatty

    def read_line(self, within: float | None = None) -> str | None:
        self._guard.require(PERSON, "input")
        return self._streams.read_line(within)

    def read_all(self, within: float | None = None) -> str:
        self._guard.require(PERSON, "input")
        return self._streams.read_all(within)


def _guarded_people(people: People, guard: Guard) -> People:
    from harnpy.world.host import People

    ask = people.ask
    if ask is None:
        return people

    def guarded(request: dict[str, Any]) -> Any:
        guard.require(PERSON, "request")
        return ask(request)

    return People(guarded)


_GUARDED: Mapping[str, Any] = {
    "environment": GuardedEnvironment,
    "files": _files,
    "http": GuardedHttp,
    "listening": GuardedListening,
    "people": _guarded_people,
    "processes": GuardedProcesses,
    "streams": GuardedStreams,
}
