"""The embedder's side: a Vm whose programs run in another process. Spec: 09 §16.3."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from inspect import isawaitable
from math import isfinite
from typing import Any

from harnpy.isolation.process import Process, exceeded, read_size, reason
from harnpy.isolation.protocol import (
    Frames,
    Packing,
    ProtocolError,
    RemoteFunction,
    Unpacking,
    frame,
    packed,
    unpacked,
)
from harnpy.net.egress_policies import embedders_policy
from harnpy.vm.declare import name_of
from harnpy.vm.errors import Cancelled, HostError, VmError
from harnpy.vm.limits import Limits
from harnpy.vm.values.given import given
from harnpy.world.egress import VARIABLES

Value = Any

_CHUNK = 1 << 16
#: Seconds after which a program that was asked to end, or whose time is over, is ended with its process.
_GRACE = 0.5


class IsolatedVm:
    """A Vm in a process of its own: what its programs do can't reach this one.

    ``memory``: the most that the process may have, in bytes or as ``"512M"``; ``seconds``: of each run;
    ``cpu``: seconds of processor time of each run; ``limits``: the others (`harnpy.Limits`). ``env``: the
    process's whole environment, but for our own policy on what may be reached (04 §21.4). ``directory``: its
    working directory. ``write_out``, ``write_err``: receive output as it comes. ``operations``, ``ask``:
    answer `host_call` and questions to people, here. ``events``: receives what agents do. ``deny``,
    ``allow``, ``capabilities``, ``evaluator``, ``egress``: as for `harnpy.Vm`.

    The process starts with the first run, and again after it has ended. Close the Vm, or use it in a `with`.
    """

    def __init__(
        self,
        *,
        memory: int | str | None = None,
        seconds: float | None = None,
        cpu: float | None = None,
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
        directory: str | None = None,
        write_out: Callable[[str], object] | None = None,
        write_err: Callable[[str], object] | None = None,
        operations: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
        ask: Callable[[dict[str, Any]], Any] | None = None,
        events: Callable[[dict[str, Any]], object] | None = None,
        deny: Iterable[str] = (),
        allow: Iterable[str] | None = None,
        capabilities: Iterable[str] | None = None,
        evaluator: str = "compile",
        egress: Mapping[str, Any] | None = None,
    ) -> None:
        if egress is not None:
            embedders_policy(egress)  # refuses it here rather than in the child
        self._memory = None if memory is None else read_size(memory)
        if seconds is not None:
            limits = replace(Limits() if limits is None else limits, seconds=seconds)
        _require_seconds("cpu", cpu)
        self._cpu, self._seconds = cpu, seconds
        self._env = _with_our_policy(env or {})
        self._directory = directory
        self._write = {
            "out": (lambda text: sys.stdout.write(text)) if write_out is None else write_out,
            "err": (lambda text: sys.stderr.write(text)) if write_err is None else write_err,
        }
        self._operations = dict(operations or {})
        self._ask = ask
        self._events = events
        self._globals: dict[str, Value] = {}
        self._builtins: dict[str, Callable[..., Any]] = {}
        self._settings = {
            "memory": self._memory,
            "cpu": cpu,
            "env": self._env,
            "limits": None if limits is None else asdict(limits),
            "operations": list(self._operations),
            "people": ask is not None,
            "events": events is not None,
            "vm": {
                "deny": list(deny),
                "allow": None if allow is None else list(allow),
                "capabilities": None if capabilities is None else list(capabilities),
                "evaluator": evaluator,
                "egress": None if egress is None else dict(egress),
            },
        }
        self._child: Child | None = None
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False

    # --- running ----------------------------------------------------------------------------------

    def run_source(self, source: str, **how: Any) -> Value:
        """Run a program and return its value; the arguments of `harnpy.Vm.run_source`."""
        return self._wait(lambda: self.run_async(source, **how))

    def run_file(
        self, path: str, *, args: Sequence[str] = (), entry: str | None = None, checked: bool = True
    ) -> Value:
        """Run the program in the file ``path``, which is read here. Raises OSError."""
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            source = file.read()
        return self.run_source(source, file=os.path.abspath(path), args=args, entry=entry, checked=checked)

    async def run_async(
        self,
        source: str,
        *,
        file: str = "<script>",
        directory: str | None = None,
        args: Sequence[str] = (),
        entry: str | None = None,
        checked: bool = True,
    ) -> Value:
        """Like `run_source`, inside the running asyncio loop; cancelling it ends the program."""
        how = {"file": file, "directory": directory, "args": list(args), "entry": entry, "checked": checked}
        return await self._converse("run", source, {"how": how, **self._offers()})

    def call(self, function: RemoteFunction, *args: Value) -> Value:
        """Call a function that a program of this Vm returned. Raises UnsupportedValue."""
        return self._wait(lambda: self.call_async(function, *args))

    async def call_async(self, function: RemoteFunction, *args: Value) -> Value:
        """Like `call`, inside the running asyncio loop; cancelling it ends the function."""
        given_args = [given(value, f"argument {n} of `call`") for n, value in enumerate(args, 1)]
        return await self._converse("call", function, given_args, self._offers())

    def cancel(self) -> None:
        """End what runs, from any thread: it raises `Cancelled`."""
        task = self._task
        if task is not None:
            self._cancelled = True
            task.get_loop().call_soon_threadsafe(task.cancel)

    def close(self) -> None:
        """End the process and all that it has started. The next run starts a new one."""
        child, self._child = self._child, None
        if child is not None:
            child.process.end()

    def __enter__(self) -> IsolatedVm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- names ------------------------------------------------------------------------------------

    def set_global(self, name: str, value: Value) -> None:
        """Give programs a value, which crosses as plain data. Raises UnsupportedValue."""
        self._globals[name] = given(value, f"the global `{name}`")

    def register(self, signature: str, function: Callable[..., Any]) -> None:
        """Make ``function``, which runs here, a builtin there; it may be a coroutine function."""
        self._builtins[signature] = function

    def _offers(self) -> dict[str, Any]:
        return {"globals": self._globals, "builtins": list(self._builtins)}

    # --- the conversation -------------------------------------------------------------------------

    def _wait(self, converse: Callable[[], Any]) -> Value:
        if asyncio._get_running_loop():
            raise RuntimeError("inside a running asyncio loop, use `run_async` or `call_async`")
        return asyncio.run(converse())

    async def _converse(self, *command: Any) -> Value:
        """Tell the child what to do, answer its questions, and return what comes of it."""
        if self._task is not None:
            raise RuntimeError("this Vm is running a program already; use another Vm")
        self._task, self._cancelled = asyncio.current_task(), False
        try:
            return await self._carry_out(*command)
        except asyncio.CancelledError:
            await self._stop()
            if self._cancelled:
                raise Cancelled from None
            raise
        finally:
            self._task = None

    async def _carry_out(self, *command: Any) -> Value:
        child = self._child = self._child or Child(Process(self._env, self._directory), self._settings)
        child.sending = asyncio.Lock()  # those of other runs belong to other loops
        questions = Questions(self, child)
        over = None
        if self._seconds is not None:
            loop = asyncio.get_running_loop()
            over = loop.call_later(self._seconds + _GRACE, child.end_late)
        try:
            await child.send(*command)
            async for kind, *content in child.messages():
                match kind:
                    case "out" | "err":
                        self._write[kind](content[0])
                    case "event" if self._events is not None:
                        self._events(content[0])
                    case "ask":
                        questions.answer(*content)
                    case "done":
                        return content[0]
                    case "failed":
                        raise questions.caused(unpacked(content[0]))
            raise self._end_of(child)
        except ProtocolError:
            self.close()
            raise
        finally:
            if over is not None:
                over.cancel()
            await questions.close()

    def _end_of(self, child: Child) -> VmError:
        """Return why the child has ended in the middle of a run."""
        self._child = None
        status = child.process.status()
        if child.late:
            return exceeded("seconds", f"{self._seconds:g} seconds")
        return reason(status, self._memory, self._cpu, child.process.killed_before)

    async def _stop(self) -> None:
        """Ask the child to end what it does, and end the child when it doesn't."""
        child = self._child
        if child is None:
            return
        try:
            async with asyncio.timeout(_GRACE):
                await child.send("cancel")
                async for kind, *_ in child.messages():
                    if kind in ("done", "failed", "cancelled"):
                        return
        except (TimeoutError, ProtocolError):
            pass
        self.close()

    async def answer(self, whom: str, name: str, args: list[Any]) -> Any:
        """Answer a question of the child."""
        match whom:
            case "builtin":
                answer, door = self._builtins[name](*args), name_of(name)
            case "operation":
                answer, door = self._operations[name](*args), name
            case "person" if self._ask is not None:
                answer, door = self._ask(*args), "people.ask"
            case _:
                raise ProtocolError(f"a question to {whom!r}")
        return given(await answer if isawaitable(answer) else answer, f"the result of `{door}`")


def _with_our_policy(env: Mapping[str, str]) -> dict[str, str]:
    """A child's environment: it may reach what this process may, unless ``env`` says otherwise."""
    if any(name in env for name in VARIABLES):
        return dict(env)
    return {name: os.environ[name] for name in VARIABLES if name in os.environ} | dict(env)


def _require_seconds(name: str, value: float | None) -> None:
    if value is not None and not (type(value) in (int, float) and isfinite(value) and value > 0):
        raise ValueError(f"{name}={value!r}: a positive number of seconds is needed, or None")


class Child:
    """The process, and what is said to it and received from it."""

    sending: asyncio.Lock

    def __init__(self, process: Process, settings: dict[str, Any]) -> None:
        self.process = process
        self.late = False
        self._packing = Packing(self._pack_function)
        self._frames = Frames(Unpacking(self._unpack_function).unpack)
        self._received: list[list[Any]] = []
        self._unsent = frame(("begin", settings))

    async def send(self, *message: Any) -> None:
        data = frame(message, self._packing.pack)
        async with self.sending:
            data, self._unsent = self._unsent + data, b""
            # When the child has gone, `messages` reports it.
            with suppress(ConnectionError):
                await asyncio.get_running_loop().sock_sendall(self.process.socket, data)

    async def messages(self) -> AsyncIterator[list[Any]]:
        """Yield the messages of the child, until it has ended."""
        loop = asyncio.get_running_loop()
        while True:
            while self._received:
                yield self._received.pop(0)
            data = b""
            with suppress(ConnectionError):
                data = await loop.sock_recv(self.process.socket, _CHUNK)
            if not data:
                return
            self._received += self._frames.feed(data)

    def end_late(self) -> None:
        """The time is over, and the program has not ended by itself."""
        self.late = True
        self.process.kill()

    def _pack_function(self, value: Any) -> list[Any] | None:
        if not isinstance(value, RemoteFunction):
            return None
        if value.child != self.process.pid:
            raise TypeError(f"{value!r} belongs to another process, or to one that has ended")
        return [value.number]

    def _unpack_function(self, number: int, name: str | None) -> RemoteFunction:
        return RemoteFunction(self.process.pid, number, name)


class Questions:
    """The questions of one run that are being answered."""

    def __init__(self, vm: IsolatedVm, child: Child) -> None:
        self._vm = vm
        self._child = child
        self._open: set[asyncio.Task[None]] = set()
        self._raised: list[Exception] = []

    def caused(self, error: BaseException) -> BaseException:
        """Return what a run has failed with, with the exception of ours that it comes from."""
        if isinstance(error, HostError):
            told = error.value["type"], error.value["message"]
            for cause in reversed(self._raised):
                if (type(cause).__name__, str(cause)) == told:
                    error.__cause__ = cause
                    break
        return error

    def answer(self, number: int, whom: str, name: str, args: list[Any]) -> None:
        """Begin to answer; the child goes on meanwhile."""
        task = asyncio.create_task(self._answer(number, whom, name, args))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def close(self) -> None:
        """Nobody waits for the answers any more."""
        left = list(self._open)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _answer(self, number: int, whom: str, name: str, args: list[Any]) -> None:
        try:
            await self._child.send("answer", number, await self._vm.answer(whom, name, args))
        except Exception as error:
            self._raised.append(error)
            await self._child.send("refusal", number, packed(error))
