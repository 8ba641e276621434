"""A world that does nothing real: it records what reaches it, whoever let it pass.

What a program does is told from what the Vm does on its own account by its target: files below `/elsewhere`
or with `marked` in their names, and variables with `MARKED`, are nobody's but a program's; files below
`.harn`, `.harn-runs` and `/kept` are what programs keep for their next run.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence, Set
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from harnpy.llm.reply import Reply
from harnpy.world import World
from harnpy.world.environment import Variables
from harnpy.world.files import Entry
from harnpy.world.host import Host, People
from harnpy.world.processes import Ended

if TYPE_CHECKING:
    from harnpy.world.connections import Application, Listener, Place
    from harnpy.world.host import ToolBridge
    from harnpy.world.processes import Companion, Heard

HOME = "/program"
_KEPT = ("/kept", f"{HOME}/.harn", f"{HOME}/.harn-runs")
_FOREIGN = "/elsewhere"
_AT_PATHS = ("read", "list", "write", "delete", "process", "state")


class Happened(NamedTuple):
    """``place`` is the part of the program that was at work; ``file_effect`` what was done to kept state.

    The ``target`` of a process is the directory that it runs in.
    """

    place: str
    effect: str
    target: str
    file_effect: str | None = None

    def is_among(self, allowed: Set[str]) -> bool:
        return self.effect in allowed or self.file_effect in allowed

    def is_below(self, root: str) -> bool:
        """Whether it happened below ``root``, if it happened at a path at all."""
        return self.effect not in _AT_PATHS or _below(self.target, root)


class Record:
    """What happened so far."""

    def __init__(self) -> None:
        self.place = ""
        #: The places that the program got to, in order; why it ended early, if it did.
        self.visited: list[str] = []
        self.failure = ""
        self.happened: list[Happened] = []

    def visit(self, place: str) -> None:
        self.place = place
        self.visited.append(place)

    def add(self, effect: str, target: str, file_effect: str | None = None) -> None:
        self.happened.append(Happened(self.place, effect, target, file_effect))

    def effects(self, place: str | None = None) -> set[str]:
        return {each.effect for each in self.happened if place in (None, each.place)}


def recording_world(record: Record, files: Mapping[str, str], bridge: ToolBridge | None = None) -> World:
    return World(
        environment=RecordedEnvironment(record),
        files=RecordedFiles(record, files),
        host=Host({"house.open": lambda params: "opened"}, bridge),
        http=RecordedHttp(record),
        listening=RecordedListening(record),
        people=People(lambda request: _person(record, request)),
        processes=RecordedProcesses(record),
        streams=RecordedStreams(record),
    )


def _person(record: Record, request: Mapping[str, Any]) -> Any:
    record.add("person", str(request.get("kind")))
    return True


class RecordedModel:
    """A provider whose replies have no tool calls."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def complete(self, request: Any) -> Reply:
        self._record.add("model", "recorded")
        return Reply("a reply ##DONE##", "m", "recorded", "m", 1, 1)


class RecordedEnvironment(Variables):
    def __init__(self, record: Record) -> None:
        super().__init__(
            {
                "HARN_MARKED": "secret",
                "HARN_TRUST": "1",
                "PATH": "/bin",
                "HARN_SESSION_STORE": "memory:",
                "HARN_LLM_PROVIDER": "recorded",
                "HARN_LLM_MODEL": "m",
                "OPENAI_API_KEY": "sk-not-a-key",
            }
        )
        self._record = record

    def get(self, name: str) -> str | None:
        if "MARKED" in name:
            self._record.add("environment", name)
        return super().get(name)

    def all(self) -> Mapping[str, str]:
        self._record.add("environment", "*")
        return super().all()


class RecordedFiles:
    """Files in memory; a directory is there when a file or directory below it is."""

    def __init__(self, record: Record, files: Mapping[str, str]) -> None:
        self._record = record
        self._texts = dict(files)
        self._directories = {"/", HOME}

    def _seen(self, effect: str, path: str) -> str:
        path = self.real_path(path)
        if _below(path, _FOREIGN) or "marked" in path:
            self._record.add(effect, path)
        elif any(_below(path, kept) for kept in _KEPT):
            self._record.add("state", path, effect)
        return path

    def cwd(self) -> str:
        return HOME

    def real_path(self, path: str) -> str:
        """Recorded by nobody: rules ask this before they decide."""
        return os.path.normpath(os.path.join(HOME, path))

    def read_text(self, path: str, errors: str = "strict") -> str:
        path = self._seen("read", path)
        if path not in self._texts:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._texts[path]

    def read_bytes(self, path: str, most: int | None = None) -> bytes:
        return self.read_text(path).encode()

    def reader(self, path: str) -> BinaryIO:
        return BytesIO(self.read_bytes(path))

    def write_bytes(self, path: str, data: bytes, append: bool = False, durable: bool = False) -> None:
        self.write_text(path, data.decode(), append)

    def copy(self, path: str, new: str) -> None:
        self.write_text(new, self.read_text(path))

    def remove(self, path: str) -> None:
        if self._texts.pop(self._seen("delete", path), None) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def entries(self, path: str) -> list[Entry]:
        names = {name.partition("/")[::2] for name in self.files_under(path)}
        return [Entry(name, bool(rest), not rest) for name, rest in sorted(names)]

    def status(self, path: str) -> os.stat_result:
        path = self._seen("list", path)
        if path not in self._texts:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return os.stat_result((0o100644, 0, 0, 1, 0, 0, len(self._texts[path]), 1, 1, 1))

    def write_text(self, path: str, text: str, append: bool = False, durable: bool = False) -> None:
        path = self._seen("write", path)
        self._texts[path] = (self._texts.get(path, "") if append else "") + text

    def replace_text(self, path: str, text: str, durable: bool = True, mark: str = "") -> None:
        self._texts[self._seen("write", path)] = text

    async def pour(self, path: str, pieces: Any) -> int:
        data = b"".join([piece async for piece in pieces])
        self._texts[self._seen("write", path)] = data.decode()
        return len(data)

    def rename(self, path: str, new: str) -> None:
        self._texts[self._seen("write", new)] = self._texts.pop(self._seen("delete", path))

    def delete_file(self, path: str, root: str) -> None:
        self._texts.pop(self._seen("delete", path), None)

    def make_directory(self, path: str) -> None:
        self._directories.add(self._seen("write", path))

    def list_dir(self, path: str) -> list[str]:
        return sorted({name.partition("/")[0] for name in self.files_under(path)})

    def files_under(self, directory: str) -> list[str]:
        directory = self._seen("list", directory)
        return [os.path.relpath(path, directory) for path in self._texts if _below(path, directory)]

    def modified(self, path: str) -> int | None:
        return 1 if self._seen("list", path) in self._texts else None

    def exists(self, path: str) -> bool:
        return self.is_file(path) or self.is_dir(path)

    def is_dir(self, path: str) -> bool:
        path = self._seen("list", path)
        return path in self._directories or any(text.startswith(f"{path}/") for text in self._texts)

    def is_file(self, path: str) -> bool:
        return self._seen("list", path) in self._texts

    def try_lock(self, path: str) -> Callable[[], object] | None:
        self._seen("write", path)
        return lambda: None


class RecordedProcesses:
    def __init__(self, record: Record) -> None:
        self._record = record

    async def run(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Ended:
        self._record.add("process", cwd)
        if env is None:
            self._record.add("environment", "*")
        return Ended(1, 0, b"out\n", b"")

    async def start(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str] | None = None,
        heard: Heard | None = None,
    ) -> Companion:
        self._record.add("process", cwd)
        if env is None:
            self._record.add("environment", "*")
        raise FileNotFoundError(2, "No such file or directory")


class RecordedListening:
    def __init__(self, record: Record) -> None:
        self._record = record

    async def listen(self, application: Application, place: Place) -> Listener:
        self._record.add("network", place.host)
        raise OSError("there is no network")


class RecordedHttp:
    def __init__(self, record: Record) -> None:
        self._record = record

    async def status(
        self, method: str, url: str, headers: Mapping[str, str], timeout: float, body: Any = None
    ) -> int:
        self._record.add("network", url)
        return 200

    def behind(self, egress: Any) -> RecordedHttp:
        return self

    def client(self, surface: str, *, permit: Any = None, **options: Any) -> Any:
        """A client that asks as a real one does; whatever it sends, the response is empty."""
        import httpx2

        def reach(request: httpx2.Request) -> httpx2.Response:
            if permit is not None:
                permit(str(request.url))
            self._record.add("network", str(request.url))
            return httpx2.Response(200, content=b"")

        return httpx2.AsyncClient(transport=httpx2.MockTransport(reach))

    def sdk_client(self, sdk: Any, most: int) -> Any:
        self._record.add("model", sdk.__name__)
        raise OSError("there is no network")


class RecordedStreams:
    def __init__(self, record: Record) -> None:
        self._record = record
        self.written: list[str] = []

    def write_out(self, text: str) -> None:
        self.written.append(text)

    write_err = write_out

    def read_line(self, within: float | None = None) -> str | None:
        self._record.add("person", "input")
        return "a line"

    def read_all(self, within: float | None = None) -> str:
        self._record.add("person", "input")
        return "a line\n"

    def isatty(self, stream: str) -> bool:
        return False


def _below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
