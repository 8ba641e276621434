"""The child's side: a Vm that runs what it is told to, one thing at a time. Spec: 09 §16.3.

It reads its socket in an asyncio loop, which has turns while a program computes: so a program can be
cancelled, and the child ends when the embedder does. What a program writes is sent at once, however long that
takes.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import select
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import ceil
from typing import Any, Never

from harnpy.embedding import Vm
from harnpy.isolation.process import (
    OUT_OF_MEMORY,
    adopt_orphans,
    exceeded,
    is_lack_of_memory,
    kill_below,
    size_text,
)
from harnpy.isolation.protocol import Frames, Packing, Unpacking, frame, is_function, packed, unpacked
from harnpy.vm.errors import VmError
from harnpy.vm.limits import Limits
from harnpy.vm.run.aio import run_inside
from harnpy.world import World
from harnpy.world.host import Host, People
from harnpy.world.streams import RealStreams

Data = dict[str, Any]

_CHUNK = 1 << 16
#: Bytes that a limit of memory must leave beside what an interpreter has at its start.
_LEAST = 16 << 20
_M_ARENA_MAX = -8


def main(descriptor: int) -> None:
    """Serve the embedder at the other end of the socket until it goes away."""
    adopt_orphans()
    status = 1
    try:
        asyncio.run(Child(socket.socket(fileno=descriptor)).serve())
        status = 0
    except MemoryError:
        status = OUT_OF_MEMORY
    finally:
        leave(status)


def leave(status: int) -> Never:
    """End this process at once, with all that programs have started."""
    kill_below(os.getpid())
    os._exit(status)


class Child:
    """One Vm, and the socket to its embedder."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._functions: list[Any] = []
        self._packing = Packing(self._pack_function)
        self._frames = Frames(Unpacking(lambda number: self._functions[number]).unpack)
        self._questions: dict[int, asyncio.Future[Any]] = {}
        self._asked = 0
        self._settings: Data = {}
        self._vm: Vm | None = None
        self._registered: set[str] = set()
        self._running: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(self._socket, _CHUNK):
            for kind, *content in self._frames.feed(data):
                self._take(kind, content)

    def send(self, *message: Any) -> None:
        """Send a message; a program waits while the embedder is too busy to receive it."""
        left = memoryview(frame(message, self._packing.pack))
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                select.select([], [self._socket], [])
            except OSError:
                leave(0)  # the embedder has gone

    def _take(self, kind: str, content: list[Any]) -> None:
        match kind:
            case "begin":
                self._settings = content[0]
                # Python adds to an environment without a locale.
                os.environ.clear()
                os.environ.update(content[0]["env"])
            case "run" | "call":
                work = self._run if kind == "run" else self._call
                self._running = asyncio.create_task(self._report(lambda: work(*content)))
                self._running.add_done_callback(self._reported)
            case "cancel" if self._running is not None:
                self._running.cancel()
            case "answer" | "refusal":
                self._answered(kind, *content)

    async def _report(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Do some work and report how it ended."""
        try:
            self._limit_processor_time()
            value = await work()
        except asyncio.CancelledError:
            self.send("cancelled")
            return
        except BaseException as error:
            self._send_failure(error)
            return
        try:
            self.send("done", value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            self._send_failure(VmError(f"the result can't be returned: {error}"))

    def _reported(self, task: asyncio.Task[None]) -> None:
        """Let no run end without a word, which the embedder would wait for."""
        if task.cancelled():  # before it began
            self.send("cancelled")
        elif error := task.exception():
            leave(OUT_OF_MEMORY if is_lack_of_memory(error) else 1)

    def _send_failure(self, error: BaseException) -> None:
        if self._settings["memory"] is not None and is_lack_of_memory(error):
            failure: VmError = exceeded("memory", f"{size_text(self._settings['memory'])} of memory")
            failure.frames = getattr(error, "frames", ())
            error = failure
        data = packed(error)
        try:
            self.send("failed", data)
        except (TypeError, ValueError, OverflowError, RecursionError):
            text = VmError(str(error))
            text.frames = getattr(error, "frames", ())
            self.send("failed", packed(text))

    # --- the Vm -----------------------------------------------------------------------------------

    async def _run(self, source: str, options: Data) -> Any:
        vm = self.vm(options)
        return await run_inside(vm.tasks, lambda: vm.run_source(source, **options["how"]))

    async def _call(self, function: Any, args: list[Any], options: Data) -> Any:
        return await self.vm(options).call_async(function, *args)

    def vm(self, options: Data) -> Vm:
        """The Vm, with the names that the embedder gives its programs now."""
        vm = self._vm = self._vm or self._new_vm()
        for name, value in options["globals"].items():
            vm.set_global(name, value)
        for signature in options["builtins"]:
            if signature not in self._registered:
                self._registered.add(signature)
                vm.register(signature, self._asking("builtin", signature))
        return vm

    def _new_vm(self) -> Vm:
        settings = self._settings
        self._limit_memory()
        operations = {name: self._asking("operation", name) for name in settings["operations"]}
        person = self._asking("person", "") if settings["people"] else None
        world = World(
            streams=RealStreams(lambda text: self._write("out", text), lambda text: self._write("err", text)),
            host=Host(operations),
            people=People(person),
        )
        limits = Limits(**settings["limits"]) if settings["limits"] else None
        vm = Vm(world, limits=limits, **settings["vm"])
        if settings["events"]:
            vm.sessions.observers.append(lambda event: self.send("event", event))
        return vm

    def _write(self, stream: str, text: str) -> None:
        try:
            self.send(stream, text)
        except UnicodeEncodeError:
            self.send(stream, text.encode("utf-8", "replace").decode())

    def _limit_memory(self) -> None:
        memory = self._settings["memory"]
        if memory is None:
            return
        least = _address_space() + _LEAST
        if memory < least:
            needed = size_text(-(-least >> 20) << 20)
            raise VmError(
                f"a limit of {size_text(memory)} of memory is too low: an interpreter needs {needed}"
            )
        _share_one_heap()
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def _limit_processor_time(self) -> None:
        cpu = self._settings["cpu"]
        if cpu is not None:
            used = resource.getrusage(resource.RUSAGE_SELF)
            most = ceil(used.ru_utime + used.ru_stime + cpu)
            resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))

    # --- questions --------------------------------------------------------------------------------

    def _asking(self, whom: str, name: str) -> Callable[..., Awaitable[Any]]:
        """A function that the embedder answers."""

        async def ask(*args: Any) -> Any:
            self._asked += 1
            number = self._asked
            self._questions[number] = asyncio.get_running_loop().create_future()
            try:
                self.send("ask", number, whom, name, args)
                return await self._questions[number]
            except TypeError as error:
                raise VmError(str(error)) from None
            finally:
                del self._questions[number]

        return ask

    def _answered(self, kind: str, number: int, content: Any) -> None:
        future = self._questions.get(number)
        if future is None or future.done():
            return  # nobody waits for it any more
        if kind == "answer":
            future.set_result(content)
        else:
            future.set_exception(unpacked(content))

    def _pack_function(self, value: Any) -> list[Any] | None:
        """Return what stands for a function: its number and name."""
        if not is_function(value):
            return None
        self._functions.append(value)
        return [len(self._functions) - 1, value.name]


def _share_one_heap() -> None:
    """Let all threads allocate from one heap, where the C library is GNU's.

    A second thread's own would take 64 MiB of the address space, and be filled so slowly at its end, a failed
    system call or two for each small object, that the limit of memory might not be reached for a minute.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def _address_space() -> int:
    """The bytes of address space that this process has; 0 where the system doesn't say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0
