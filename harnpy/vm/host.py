"""Every effect a program has on the world goes through a `Host`.

The real one is here; a test, a sandbox or a replay hands the Vm another. Nothing else in the VM or the
builtins touches clocks, files, streams, randomness or the environment.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    class ToolBridge(Protocol):
        """Tools that the embedder runs, for `host_tool_list` and `host_tool_call`."""

        def list(self) -> list[dict[str, Any]]: ...

        def call(self, name: str, arguments: dict[str, Any]) -> Any: ...


class Leaving(BaseException):
    """Unwinds a program or task that is over: none of its `finally` and `defer` blocks run any more."""


class ExitRequest(Leaving):
    """The program called `exit(code)`."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Ended:
    """A process that ran: ``code`` is None when its time was over, negative when a signal ended it."""

    __slots__ = ("code", "err", "out", "pid")

    def __init__(self, pid: int, code: int | None, out: bytes, err: bytes) -> None:
        self.pid = pid
        self.code = code
        self.out = out
        self.err = err


class Host:
    """The real world. ``stdout`` and ``stderr`` are functions that take text; ``stdin`` a text stream.

    What only an embedder can offer, each a function that may be a coroutine function: ``human`` puts a
    request to a person (docs/embedding.md), ``operations`` are those of `host_call` by
    ``"capability.operation"``, ``bridge`` runs tools.
    """

    human: Callable[[dict[str, Any]], Any] | None = None
    operations: Mapping[str, Callable[[dict[str, Any]], Any]] = {}
    bridge: ToolBridge | None = None

    def __init__(
        self,
        stdout: Callable[[str], object] | None = None,
        stderr: Callable[[str], object] | None = None,
        stdin: object = None,
        *,
        human: Callable[[dict[str, Any]], Any] | None = None,
        operations: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
        bridge: ToolBridge | None = None,
    ) -> None:
        self.write_out = stdout or _writer("stdout")
        self.write_err = stderr or _writer("stderr")
        self._stdin = stdin
        self._random: random.Random | None = None
        if human:
            self.human = human
        if operations:
            self.operations = operations
        if bridge:
            self.bridge = bridge

    # --- streams ----------------------------------------------------------------------------------

    @property
    def stdin(self):  # type: ignore[no-untyped-def]
        return self._stdin or sys.stdin

    def read_line(self) -> str | None:
        """One line of standard input without its line ending; None at its end."""
        line: str = self.stdin.readline()
        return line.removesuffix("\n").removesuffix("\r") if line else None

    def read_all(self) -> str:
        """All that is left of standard input."""
        text: str = self.stdin.read()
        return text

    def isatty(self, stream: str) -> bool:
        """Whether ``"stdin"``, ``"stdout"`` or ``"stderr"`` is a terminal."""
        target = self.stdin if stream == "stdin" else getattr(sys, stream)
        return bool(target) and bool(target.isatty())

    # --- files -------------------------------------------------------------------------------------

    def cwd(self) -> str:
        """The working directory, absolute: what relative paths are relative to."""
        return os.getcwd()

    def read_text(self, path: str) -> str:
        """The text of a UTF-8 file as it is. Raises OSError and UnicodeDecodeError."""
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()

    def write_text(self, path: str, text: str, append: bool = False, durable: bool = False) -> None:
        """Write a UTF-8 file, or add to it; its directory is made if need be. Raises OSError.

        What is written ``durable`` is on the disk when this returns.
        """
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        mode = "a" if append else "w"
        with open(path, mode, encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())

    def replace_text(self, path: str, text: str, temporary: str | None = None) -> None:
        """Write a UTF-8 file as a whole or not at all, by way of the file ``temporary``. Raises OSError."""
        temporary = temporary or f"{path}.partial"
        self.write_text(temporary, text, durable=True)
        self.rename(temporary, path)

    def rename(self, path: str, new: str) -> None:
        """Give a file another path; what is there is replaced. Raises OSError."""
        os.replace(path, new)

    def modified(self, path: str) -> int | None:
        """When a file was written last, in ns since 1970; None when there is none that can be looked at."""
        try:
            return os.stat(path).st_mtime_ns
        except OSError:
            return None

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_dir(self, path: str) -> list[str]:
        """The names in a directory, sorted; those of directories end in ``/``. Raises OSError."""
        with os.scandir(path) as entries:
            return sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries)

    def delete_file(self, path: str, root: str) -> None:
        """Delete a file, and the directories below ``root`` that it leaves empty; a missing one is fine."""
        try:
            os.remove(path)
        except FileNotFoundError:
            return
        directory = os.path.dirname(path)
        while directory != root and not os.listdir(directory):
            os.rmdir(directory)
            directory = os.path.dirname(directory)

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it; one that is there is fine. Raises OSError."""
        os.makedirs(path, exist_ok=True)

    def files_under(self, directory: str) -> list[str]:
        """The files in a directory and all below it, relative to it, in no order."""
        walk = ((where, name) for where, _, names in os.walk(directory) for name in names)
        return [os.path.relpath(os.path.join(where, name), directory) for where, name in walk]

    def try_lock(self, path: str) -> Callable[[], object] | None:
        """Take the lock that processes share by the file ``path``; what releases it, None when it is taken.

        Its directory must be there. The lock of a process that dies is free. Raises OSError.
        """
        from filelock import FileLock, Timeout

        lock = FileLock(path)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return None
        return lock.release

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_file(self, path: str) -> bool:
        return os.path.isfile(path)

    def real_path(self, path: str) -> str:
        """The one absolute path of what ``path`` leads to, symbolic links followed."""
        return os.path.realpath(os.path.join(self.cwd(), path))

    # --- processes --------------------------------------------------------------------------------

    async def run_process(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Ended:
        """Run a program to its end, and to that of everything that writes to its pipes.

        ``env`` is its whole environment, None for ours. Raises OSError when it can't be started.
        """
        import asyncio
        from asyncio.subprocess import DEVNULL, PIPE

        process = await asyncio.create_subprocess_exec(
            *argv, cwd=cwd, env=env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout)
        except TimeoutError:
            return Ended(process.pid, None, b"", b"")
        finally:
            if process.returncode is None:
                # Its own group: what it has started goes with it, or would keep the pipes open.
                os.killpg(process.pid, 9)
                await process.wait()
        return Ended(process.pid, process.returncode, out, err)

    def environment(self) -> Mapping[str, str]:
        """All environment variables."""
        return os.environ

    def login_shell(self) -> str | None:
        """The shell that the user's account names."""
        import pwd

        try:
            return pwd.getpwuid(os.getuid()).pw_shell or None
        except KeyError:
            return None

    # --- time, environment, chance ----------------------------------------------------------------

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.monotonic()

    def sleep(self, seconds: float | None) -> None:
        """Block the whole thread; None is for ever, or until a signal."""
        time.sleep(1e9 if seconds is None else seconds)

    def env(self, name: str) -> str | None:
        return os.environ.get(name)

    @property
    def random(self) -> random.Random:
        if self._random is None:
            import random

            self._random = random.Random()
        return self._random

    def uuid7(self) -> str:
        """A new time-ordered id, as 36 characters."""
        from uuid6 import uuid7

        return str(uuid7())


def _writer(name: str) -> Callable[[str], object]:
    """Writes to the process's stream, whatever it is at that moment; stderr shows after what came before."""

    def write(text: str) -> None:
        if name == "stderr":
            sys.stdout.flush()
        getattr(sys, name).write(text)

    return write
