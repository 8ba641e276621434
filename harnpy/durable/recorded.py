"""The world of a program whose run is recorded: the real one, behind a journal. Spec: 10 §C19.1.

Each part answers by what is recorded, or does what is asked for and has it recorded. What can't be recorded
is refused by name.
"""

from __future__ import annotations

import os.path
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

from harnpy.durable.journal import (
    HOST,
    HTTP,
    HUMAN,
    ID,
    LOOK,
    MODEL,
    NOW,
    PROCESS,
    RANDOM,
    READ,
    STDIN,
    WRITE,
    NotDurable,
)
from harnpy.durable.values import told
from harnpy.formats.secrets.secret_names import is_secret_member, is_secret_name
from harnpy.llm.reply import Reply
from harnpy.world import World
from harnpy.world.files import TextFiles, private_files
from harnpy.world.host import Host, People

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
    from typing import BinaryIO, TypeVar

    import httpx2

    from harnpy.durable.journal import Asked, Journal
    from harnpy.durable.waits import OutlastingWaits
    from harnpy.llm.providers import Provider
    from harnpy.llm.request import Request
    from harnpy.workflow.engines.contract import Json
    from harnpy.world.egress import Egress
    from harnpy.world.files import Files
    from harnpy.world.http import Http
    from harnpy.world.processes import Companion, Ended, Heard
    from harnpy.world.random import Random
    from harnpy.world.streams import Streams

    T = TypeVar("T")


class RecordedWorld(World):
    """``real``, seen through a journal, from the directory ``cwd``."""

    waits: OutlastingWaits

    def __init__(
        self, real: World, journal: Journal, cwd: str, parts: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.real = real
        self._journal = journal
        self._cwd = cwd
        #: What makes a part of a real one and a journal.
        self._parts = {**_PARTS, **(parts or {})}

    if not TYPE_CHECKING:  # mypy would let any name pass

        def __getattr__(self, name: str) -> object:
            real, journal = getattr(self.real, name), self._journal
            if name == "files":
                part: object = RecordedFiles(real, journal, self._cwd)
            elif name in self._parts:
                part = self._parts[name](real, journal)
            elif name == "people":
                part = RecordedPeople(real, journal, self.waits)
            elif name in _KINDS:
                part = _Recorded(real, journal, _KINDS[name])
            else:
                part = real
            setattr(self, name, part)
            return part


class SettingsWorld(World):
    """``recorded``, for what the Vm does on its own account: settings are read anew by each process."""

    def __init__(self, recorded: RecordedWorld, files: Files) -> None:
        super().__init__(files=files)
        self._recorded = recorded

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            return getattr(self._recorded, name)


class _Recorded:
    """A part of the world whose calls return at once, each an effect of the kind that ``kinds`` says."""

    def __init__(self, part: Any, journal: Journal, kinds: Mapping[str, str]) -> None:
        self._part = part
        self._journal = journal
        self._kinds = kinds

    def __getattr__(self, name: str) -> Callable[..., Any]:
        kind = self._kinds.get(name)
        if kind is None:
            raise AttributeError(f"a recorded {type(self._part).__name__} has no {name!r}")
        call, journal = getattr(self._part, name), self._journal
        found = lambda *args, **options: journal.at_once(  # noqa: E731
            kind, lambda: call(*args, **options), lambda: [name, *told(args)]
        )
        setattr(self, name, found)
        return found


_KINDS = {
    "entropy": {"bytes": RANDOM},
    "ids": {"new": ID},
}


class RecordedClock:
    def __init__(self, clock: Any, journal: Journal) -> None:
        self._clock = clock
        self._journal = journal

    def now(self) -> float:
        now: Callable[[], float] = self._clock.now
        return self._journal.at_once(NOW, now, lambda: "now")

    def monotonic(self) -> float:
        if self._journal.passes():
            return self._journal.seconds
        self._journal.at_once(NOW, lambda: None)  # which moves the clock
        return self._journal.seconds

    def sleep(self, seconds: float | None) -> None:
        raise NotDurable("nothing may block a durable run: `sleep` lets its tasks go on")


class RecordedRandom:
    """What is chosen from may be no data, so places are recorded."""

    def __init__(self, random: Random, journal: Journal) -> None:
        self._random = random
        self._journal = journal

    def random(self) -> float:
        return self._journal.at_once(RANDOM, self._random.random)

    def randint(self, a: int, b: int) -> int:
        asked = lambda: ["randint", a, b]  # noqa: E731
        return self._journal.at_once(RANDOM, lambda: self._random.randint(a, b), asked)

    def choice(self, seq: Sequence[T]) -> T:
        size = len(seq)
        asked = lambda: ["choice", size]  # noqa: E731
        return seq[self._journal.at_once(RANDOM, lambda: self._random.choice(range(size)), asked)]

    def sample(self, population: Sequence[T], k: int) -> list[T]:
        size = len(population)
        asked = lambda: ["sample", size, k]  # noqa: E731
        places = self._journal.at_once(RANDOM, lambda: self._random.sample(range(size), k), asked)
        return [population[place] for place in places]


#: The variables of ours that programs see. The others are settings.
_OF_PROGRAMS = frozenset({"HARN_TASK", "HARN_PROJECT_ROOT"})


def _is_fact(name: str) -> bool:
    """Return whether a variable is part of what the program sees, and may be written down."""
    is_setting = name.startswith("HARN") and name not in _OF_PROGRAMS
    return not is_setting and not is_secret_name(name)


def is_secret(name: str, value: str | None) -> bool:
    """Return whether a variable's value is a secret or has one in it: a key, a URL with a password."""
    if not value:
        return False
    if is_secret_member(name, value):
        return True
    from harnpy.formats.secrets.masking import mask_secrets  # takes its time to load

    return mask_secrets(value) != value


class RecordedEnvironment:
    """Variables keep the values that they had when they were first asked for by name.

    But for secrets, as their names or values tell, which are recorded nowhere, and for harnpy's own settings:
    each process looks them up anew, and so it does all variables at once, which other programs inherit.
    """

    def __init__(self, environment: Any, journal: Journal) -> None:
        self._environment = environment
        self._journal = journal

    def get(self, name: str) -> str | None:
        look: Callable[[], str | None] = lambda: self._environment.get(name)  # noqa: E731
        if not _is_fact(name):
            return look()
        return self._journal.fact(f"variable/{name}", look, lambda value: not is_secret(name, value))

    def all(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self._environment.all()
        return found

    def login_shell(self) -> str | None:
        look: Callable[[], str | None] = self._environment.login_shell
        return self._journal.fact("login_shell", look)


class RecordedMachine:
    def __init__(self, machine: Any, journal: Journal) -> None:
        self._machine = machine
        self._journal = journal

    def __getattr__(self, name: str) -> Callable[[], Any]:
        look = getattr(self._machine, name)
        return lambda: self._journal.fact(f"machine/{name}", look)


READS = (
    "read_bytes",
    "list_dir",
    "entries",
    "status",
    "files_under",
    "modified",
    "exists",
    "is_dir",
    "is_file",
    "real_path",
)
_WRITES = ("write_bytes", "write_text", "replace_text", "remove", "make_directory")
_MOVES = ("rename", "copy", "delete_file")


class RecordedFiles:
    """Files, with relative paths from the directory that the run began in, wherever it goes on."""

    def __init__(self, files: Files, journal: Journal | _Unrecorded, cwd: str) -> None:
        self._files = files
        self._journal = journal
        self._cwd = cwd

    def private(self) -> RecordedFiles:
        return RecordedFiles(private_files(self._files), self._journal, self._cwd)

    def cwd(self) -> str:
        return self._cwd

    def _at(self, path: str) -> str:
        return path if not path or path.startswith("/") else os.path.join(self._cwd, path)

    def _asked(self, name: str, path: str, *args: Any) -> Asked:
        """Return what tells such a call: with a path from the run's directory, if it is in there."""
        return lambda: [name, self._at(path).removeprefix(self._cwd + "/"), *told(args)]

    if not TYPE_CHECKING:  # it has what `Files` has

        def __getattr__(self, name: str) -> object:
            call, journal, at = getattr(self._files, name), self._journal, self._at
            if name in READS or name in _WRITES:
                kind = READ if name in READS else WRITE

                def found(path, *args, **options):
                    act = lambda: call(at(path), *args, **options)  # noqa: E731
                    return journal.at_once(kind, act, self._asked(name, path, *args, *options.values()))

            elif name in _MOVES:

                def found(path, new):
                    act = lambda: call(at(path), at(new))  # noqa: E731
                    return journal.at_once(WRITE, act, self._asked(name, path, new))

            else:
                raise AttributeError(f"recorded files have no {name!r}")
            setattr(self, name, found)
            return found

    def read_text(self, path: str, errors: str = "strict") -> str:
        act = lambda: self._files.read_text(self._at(path), errors)  # noqa: E731
        return self._journal.at_once(READ, act, self._asked("read_text", path))

    def reader(self, path: str) -> BinaryIO:
        def whole() -> bytes:
            with self._files.reader(self._at(path)) as file:
                return file.read()

        return BytesIO(self._journal.at_once(READ, whole, self._asked("read_bytes", path)))

    async def pour(self, path: str, pieces: AsyncGenerator[bytes, None]) -> int:
        data = b"".join([piece async for piece in pieces])

        async def whole() -> AsyncGenerator[bytes, None]:
            yield data

        from harnpy.net.http_replies import at_once  # who pours has loaded it

        act = lambda: at_once(self._files.pour(self._at(path), whole()))  # noqa: E731
        return self._journal.at_once(WRITE, act, self._asked("write_bytes", path, data))

    def try_lock(self, path: str) -> Callable[[], object] | None:
        """Whether it was free is recorded; another process holds it anew."""
        held: list[Callable[[], object]] = []

        def take() -> bool:
            release = self._files.try_lock(self._at(path))
            if release is not None:
                held.append(release)
            return release is not None

        if not self._journal.at_once(WRITE, take, self._asked("try_lock", path)):
            return None
        if not held and self._journal.renews():
            take()
        return lambda: [release() for release in held]


class _Unrecorded:
    """A journal that keeps nothing."""

    def renews(self) -> bool:
        """Return True: all is done by each process."""
        return True

    def at_once(self, kind: str, act: Callable[[], T], asked: Asked | None = None) -> T:
        return act()

    async def waited(self, kind: str, begin: Callable[[], Awaitable[T]], asked: Asked | None = None) -> T:
        return await begin()


def placed(files: Files, cwd: str) -> Files:
    """Return files whose relative paths count from ``cwd``."""
    if files.cwd() == cwd:
        return files
    return RecordedFiles(files, _Unrecorded(), cwd)  # type: ignore[return-value]


class RecordedProcesses:
    def __init__(self, processes: Any, journal: Journal) -> None:
        self._processes = processes
        self._journal = journal

    async def run(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Ended:
        asked = lambda: ["run", told(argv)]  # noqa: E731
        return await self._journal.waited(
            PROCESS, lambda: self._processes.run(argv, cwd, env, timeout), asked
        )

    async def start(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str] | None = None,
        heard: Heard | None = None,
    ) -> Companion:
        raise NotDurable(
            f"a durable run can't talk to a process that it starts (`{argv[0]}`): it would not survive a "
            "restart; run it to its end, or reach the service by HTTP"
        )


class RecordedHttp:
    def __init__(self, http: Http, journal: Journal) -> None:
        self._http = http
        self._journal = journal

    def behind(self, egress: Egress) -> RecordedHttp:
        return type(self)(self._http.behind(egress), self._journal)

    def client(self, surface: str, **options: Any) -> httpx2.AsyncClient:
        client: httpx2.AsyncClient = self._recorded(self._http.client(surface, **options))
        return client

    def sdk_client(self, sdk: Any, most: int) -> Any:
        return self._recorded(self._http.sdk_client(sdk, most))

    async def status(
        self, method: str, url: str, headers: Mapping[str, str], timeout: float, body: Any = None
    ) -> int:
        return await self._journal.waited(
            HTTP,
            lambda: self._http.status(method, url, headers, timeout, body),
            lambda: [method, told(url), told(body)],
        )

    def _recorded(self, client: Any) -> Any:
        client._transport = self._transport(client._transport)
        for pattern, transport in client._mounts.items():
            if transport is not None:
                client._mounts[pattern] = self._transport(transport)
        return client

    def _transport(self, real: Any) -> Any:
        from harnpy.durable.transport import RecordedTransport

        return RecordedTransport(real, self._journal)


class _RefusedListening:
    def __init__(self, listening: Any, journal: Journal) -> None:
        pass

    async def listen(self, application: Any, place: Any) -> Any:
        raise NotDurable(
            f"a durable run can't listen on {place.host}:{place.port}: who is connected would not survive a "
            "restart; have a server start durable runs instead"
        )


class RecordedStreams:
    def __init__(self, streams: Streams, journal: Journal) -> None:
        self._streams = streams
        self._journal = journal

    def write_out(self, text: str) -> None:
        self._journal.write(self._streams.write_out, text)

    def write_err(self, text: str) -> None:
        self._journal.write(self._streams.write_err, text)

    def read_line(self, within: float | None = None) -> str | None:
        act = lambda: self._read(self._streams.read_line, within)  # noqa: E731
        return self._journal.at_once(STDIN, act, lambda: ["read_line"])

    def read_all(self, within: float | None = None) -> str:
        act = lambda: self._read(self._streams.read_all, within)  # noqa: E731
        return self._journal.at_once(STDIN, act, lambda: ["read_all"])

    def _read(self, read: Callable[[float | None], T], within: float | None) -> T:
        """Nothing interrupts a thread that reads, so it looks up now and then."""
        while True:
            try:
                return read(LOOK if within is None else min(within, LOOK))
            except TimeoutError:
                self._journal.take()
                if within is not None:
                    within -= LOOK
                    if within <= 0:
                        raise

    def isatty(self, stream: str) -> bool:
        return self._journal.fact(f"isatty/{stream}", lambda: self._streams.isatty(stream))


def effect(
    kind: str,
    call: Callable[..., Any],
    journal: Journal,
    asked: Callable[..., Json] = lambda *args: told(args),
) -> Callable[..., Awaitable[Any]]:
    """Return ``call``, which may return a coroutine, as an effect that waits."""

    def recorded(*args: Any) -> Awaitable[Any]:
        async def perform() -> Any:
            answer = call(*args)
            return await answer if hasattr(answer, "__await__") else answer

        return journal.waited(kind, perform, lambda: asked(*args))

    return recorded


class RecordedPeople(People):
    """Where nobody is there, people answer by completing a waitpoint, if it outlasts the process.

    Whether anybody can answer is a fact of the run.
    """

    def __init__(self, people: People, journal: Journal, waits: OutlastingWaits) -> None:
        super().__init__()
        lasts = waits.last  # looked up each time: that is recorded, too
        if journal.fact("people", lambda: people.ask is not None or lasts):
            self.ask = effect(HUMAN, people.ask or waits.answer, journal)


class RecordedHost(Host):
    """So is what the host offers."""

    def __init__(self, host: Host, journal: Journal) -> None:
        super().__init__()
        names = journal.fact("host/operations", lambda: sorted(host.operations))
        self.operations = {
            name: effect(HOST, _operation(host, name), journal, partial(_told_operation, name))
            for name in names
        }
        if journal.fact("host/bridge", lambda: host.bridge is not None):
            self.bridge = _RecordedBridge(host.bridge, journal)


def _told_operation(name: str, params: dict[str, Any]) -> Json:
    return [name, told(params)]


def _operation(host: Host, name: str) -> Callable[..., Any]:
    def perform(params: dict[str, Any]) -> Any:
        if name not in host.operations:
            raise NotDurable(f"the host of this process has no operation '{name}', which the run began with")
        return host.operations[name](params)

    return perform


class _RecordedBridge:
    def __init__(self, bridge: Any, journal: Journal) -> None:
        self._bridge = bridge
        self._journal = journal
        self.call = effect(HOST, lambda name, arguments: bridge.call(name, arguments), journal)

    def list(self) -> list[dict[str, Any]]:
        return self._journal.fact("host/tools", self._bridge.list)


_PARTS: Mapping[str, Any] = {
    "clock": RecordedClock,
    "environment": RecordedEnvironment,
    "host": RecordedHost,
    "http": RecordedHttp,
    "listening": _RefusedListening,
    "machine": RecordedMachine,
    "processes": RecordedProcesses,
    "random": RecordedRandom,
    "streams": RecordedStreams,
}


class RecordedProvider:
    """A provider of models whose calls are effects."""

    def __init__(self, provider: Provider, journal: Journal) -> None:
        self._provider = provider
        self._journal = journal
        self.complete = effect(MODEL, provider.complete, journal)

    def stream(self, request: Request) -> _WholeReply:
        return _WholeReply(self.complete(request))


class _WholeReply:
    """The text of a reply, in one piece: it comes when the whole reply is recorded."""

    def __init__(self, reply: Awaitable[Reply]) -> None:
        self._coming: Awaitable[Reply] | None = reply
        self._reply: Reply | None = None

    def __aiter__(self) -> _WholeReply:
        return self

    async def __anext__(self) -> str:
        coming, self._coming = self._coming, None
        if coming is None:
            raise StopAsyncIteration
        self._reply = await coming
        return self._reply.text

    async def aclose(self) -> None:
        """There is nothing to close."""

    def so_far(self) -> Reply:
        return Reply("", "", "", "", 0, 0) if self._reply is None else self._reply


class ProgramFiles(TextFiles):
    """The texts that a run began with, by absolute path, wherever the process is. ``links`` are further paths
    of theirs."""

    def __init__(self, texts: Mapping[str, str], links: Mapping[str, str], cwd: str) -> None:
        super().__init__({os.path.join(cwd, path): text for path, text in texts.items()}, disk=False)
        self._links = links
        self._cwd = cwd

    def cwd(self) -> str:
        return self._cwd

    def real_path(self, path: str) -> str:
        path = super().real_path(path)
        return self._links.get(path, path)

    def read_text(self, path: str, errors: str = "strict") -> str:
        return super().read_text(self.real_path(path), errors)

    def is_file(self, path: str) -> bool:
        return super().is_file(self.real_path(path))
