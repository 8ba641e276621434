"""A server that is a program of ours: a message is a line of its input or output. Spec: 07 §15.1."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from anyio import BrokenResourceError, EndOfStream
from mcp.shared.message import SessionMessage

from harnpy.mcp.errors import NotStarted
from harnpy.mcp.messages import read_message, write_message
from harnpy.text.json.reader import JsonError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from harnpy.mcp.server_spec import ServerSpec
    from harnpy.mcp.transport import Streams
    from harnpy.world import World
    from harnpy.world.companions import Companion


class Stdio:
    """Starts the program of ``spec`` in the working directory, with our environment and standard error."""

    def __init__(self, spec: ServerSpec, world: World) -> None:
        self.session: str | None = None
        self.version = spec.protocol_version
        self.ended = False
        self._spec = spec
        self._world = world

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
        """Raises `NotStarted`."""
        program = await self._started()
        try:
            yield _Output(program, self._end), _Input(program, self._end)
        finally:
            await program.stop()

    def _end(self) -> None:
        self.ended = True

    async def _started(self) -> Companion:
        world, command, added = self._world, self._spec.command, self._spec.env
        env = {**world.environment.all(), **added} if added else None
        try:
            return await world.processes.start(command, world.unguarded.files.cwd(), env)
        except OSError as error:
            reason = f"{error.strerror} (os error {error.errno})"
        except ValueError as error:  # a text that no program can be given
            reason = str(error)
        raise NotStarted(f"failed to spawn '{command[0]}': {reason}")


class _Stream:
    """What the SDK's dispatcher wants of a stream: the program ends with the transport."""

    def __init__(self, program: Companion, end: Callable[[], None]) -> None:
        self._program = program
        self._end = end

    async def aclose(self) -> None:
        """Nothing to be done."""

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing to be done."""


class _Output(_Stream):
    """The messages that the program writes; other lines are skipped."""

    async def receive(self) -> SessionMessage:
        while line := await self._program.line():
            message = _message(line)
            if message is not None:
                return message
        self._end()
        raise EndOfStream

    def __aiter__(self) -> _Output:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None


class _Input(_Stream):
    async def send(self, item: SessionMessage) -> None:
        try:
            await self._program.write(write_message(item.message).encode("utf-8", "surrogatepass") + b"\n")
        except ConnectionError:
            self._end()
            raise BrokenResourceError from None


def _message(line: bytes) -> SessionMessage | None:
    try:
        message = read_message(line.decode())
    except (JsonError, UnicodeDecodeError):
        return None
    return None if message is None else SessionMessage(message)
