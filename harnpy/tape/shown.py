"""What a replay of a tape shows: what the program printed and wrote, and where it asked for an effect.

Spec: 13 §6.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from harnpy.durable.journal import ENV, Ending
from harnpy.embedding import Vm
from harnpy.tape.journal import Follower
from harnpy.tape.rules import TapeDiverged
from harnpy.tape.tapes import TapeError
from harnpy.tape.worlds import Replaying
from harnpy.vm.errors import ExitRequest, VmError
from harnpy.workflow.engines.contract import PROGRAM, Step
from harnpy.world import World
from harnpy.world.streams import RealStreams

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from harnpy.tape.directory import Changed
    from harnpy.tape.effects import Effect
    from harnpy.tape.tapes import Tape
    from harnpy.tape.worlds import TapedWorld

    #: Prepares the Vm of a replay as that of the recorded run was, given the program's file.
    Prepare = Callable[[Vm, str], object]


class Shown(Struct):
    """``files`` has, by path from the run's directory, what the program has left there, None for nothing, of
    all files that it wrote; ``error`` is why the replay didn't come to the end of the tape."""

    output: str = ""
    files: dict[str, bytes | None] = {}
    error: str | None = None


def shown(tape: Tape, prepare: Prepare | None = None) -> Shown:
    """Replay the tape, and return what was printed and written."""
    if tape.job.kind != PROGRAM:
        return Shown(error="harnpy doesn't run the Python program that was recorded")
    printed: list[str] = []
    streams = RealStreams(printed.append, printed.append)
    world = Replaying(tape, World(streams=streams))
    contents = _Contents(tape.job.body["cwd"])
    world.on_begin.append(lambda journal, vm: contents.watch(vm))
    error = _run(world, tape, prepare)
    return Shown("".join(printed), contents.written(), None if error is None else str(error))


def place_of(tape: Tape, effect: Effect, prepare: Prepare | None = None) -> str:
    """Return where the program asks for an effect, as ``file:line:column``; empty where that isn't known.

    The replay has, in place of the effect's record, one that is asked for otherwise.
    """
    if tape.job.kind != PROGRAM:
        return ""
    record = tape.steps[effect.index]
    facts = [step for step in tape.steps[effect.index :] if step.key.endswith(f":{ENV}")]
    other = Step(record.key, {**record.output, "asked": {"compared": effect.number}})
    world = Replaying(tape, World(streams=RealStreams(_ignored, _ignored)))
    world.steps = [*facts, *tape.steps[: effect.index], other]
    error = _run(world, tape, prepare)
    if not isinstance(error, TapeDiverged) or error.asked is None or error.asked[0] != effect.key:
        return ""
    return error.place.removeprefix(" at ")


def _ignored(text: str) -> None:
    """Print nothing."""


def _run(world: TapedWorld, tape: Tape, prepare: Prepare | None) -> TapeError | None:
    """Run the tape's program; return why it didn't come to the tape's end. How it ended is on the tape."""
    try:
        vm: Any = Vm(world)
        if prepare is not None:
            prepare(vm, tape.job.body["entry"])
        vm.run_recorded()
    except TapeError as error:
        return error
    except Ending as over:
        return over.error if isinstance(over.error, TapeError) else TapeError(str(over.error))
    except (ExitRequest, VmError):
        return None
    return None


class _Contents(Follower):
    """The contents of the files that a program writes, and of those that it has read before."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._known: dict[str, bytes | None] = {}
        self._written: dict[str, None] = {}

    def watch(self, vm: Any) -> None:
        """Note what the Vm's program does with files."""
        vm.recorded.files = _Watched(vm.recorded.files, self)
        vm.journal.follower = self

    def written(self) -> dict[str, bytes | None]:
        """Return what there is by now at each path that was written to, the first one first."""
        return {path: self._known.get(path) for path in self._written}

    def read(self, path: str, data: bytes) -> None:
        """A file was read that may be changed later."""
        self._known.setdefault(self._at(path), data)

    def write(self, path: str, data: bytes | None, *, appends: bool = False) -> None:
        """A file was written; None: it was removed."""
        path = self._at(path)
        if appends and data is not None:
            data = (self._known.get(path) or b"") + data
        self._known[path] = data
        self._written[path] = None

    def changed(self, changed: Changed) -> None:
        for path, content in changed.files.items():
            if not path.endswith("/"):
                data = json.dumps(content).encode() if isinstance(content, dict) else content
                self.write(path, data)

    def move(self, path: str, new: str, *, keeps: bool) -> None:
        """A file was renamed, or copied."""
        data = self._known.get(self._at(path))
        self.write(new, b"" if data is None else data)
        if not keeps:
            self.write(path, None)

    def _at(self, path: str) -> str:
        return path.removeprefix(f"{self._cwd}/")


class _Watched:
    """Files of a replay, whose changes are noted."""

    def __init__(self, files: Any, contents: _Contents) -> None:
        self._files = files
        self._contents = contents

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def private(self) -> _Watched:
        return _Watched(self._files.private(), self._contents)

    def read_bytes(self, path: str, *args: Any, **options: Any) -> bytes:
        data: bytes = self._files.read_bytes(path, *args, **options)
        self._contents.read(path, data)
        return data

    def read_text(self, path: str, *args: Any, **options: Any) -> str:
        text: str = self._files.read_text(path, *args, **options)
        self._contents.read(path, _encoded(text))
        return text

    # Arguments are passed on as they came: they are part of what tells the effect.

    def write_bytes(self, path: str, data: bytes, *args: Any, **options: Any) -> None:
        self._files.write_bytes(path, data, *args, **options)
        self._contents.write(path, data, appends=_appends(*args, **options))

    def write_text(self, path: str, text: str, *args: Any, **options: Any) -> None:
        self._files.write_text(path, text, *args, **options)
        self._contents.write(path, _encoded(text), appends=_appends(*args, **options))

    def replace_text(self, path: str, text: str, *args: Any, **options: Any) -> None:
        self._files.replace_text(path, text, *args, **options)
        self._contents.write(path, _encoded(text))

    async def pour(self, path: str, pieces: AsyncGenerator[bytes, None]) -> int:
        came = [piece async for piece in pieces]

        async def again() -> AsyncGenerator[bytes, None]:
            for piece in came:
                yield piece

        size: int = await self._files.pour(path, again())
        self._contents.write(path, b"".join(came))
        return size

    def rename(self, path: str, new: str) -> None:
        self._files.rename(path, new)
        self._contents.move(path, new, keeps=False)

    def copy(self, path: str, new: str) -> None:
        self._files.copy(path, new)
        self._contents.move(path, new, keeps=True)

    def remove(self, path: str) -> None:
        self._files.remove(path)
        self._contents.write(path, None)

    def delete_file(self, path: str, root: str) -> None:
        self._files.delete_file(path, root)
        self._contents.write(path, None)


def _appends(append: bool = False, durable: bool = False) -> bool:
    """Return what the further arguments of a write say."""
    return append


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
