"""Python processes that are forked from one which has imported harnpy already.

Importing it is most of what a short command does, and the suite runs thousands of them. What depends on how
an interpreter starts, and start-up itself, is tested in processes of their own. Run as a program, this is the
process that has imported everything: it forks for each order that comes over its socket.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import random
import runpy
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from threading import Lock
from types import ModuleType
from typing import Any

#: Rooms that only some commands enter, and modules whose presence changes how a process ends.
_UNUSED = (
    "adapters",
    "faces",
    "isolation",
    "serve",
    "mcp",
    "llm.providers",
    "storage.postgres",
    "workflow.engines.dbos",
    "cli.debugger",
    "cli.profile",
)


class Forks:
    """The process that forks, for one process of the suite. It imports ``modules``, too, if there are any."""

    def __init__(self, root: Path, *modules: str) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._one_at_a_time = Lock()
        with theirs:
            command = [sys.executable, "-m", "tests.forked", str(theirs.fileno()), *modules]
            # Streams are made for what they are at the start: pipes, as those of the commands.
            self._process = subprocess.Popen(
                command,
                cwd=root,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )

    def run(
        self, args: Sequence[str], stdin: str, cwd: Path, env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a `harnpy` command as `subprocess.run` does, with its output captured."""
        command = [sys.executable, "-m", "harnpy", *args]
        pipe = subprocess.PIPE
        with self.popen(
            command, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8"
        ) as process:
            try:
                out, err = process.communicate(stdin, timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def popen(self, args: Sequence[str | Path], **options: Any) -> subprocess.Popen[Any]:
        """Start Python as `subprocess.Popen` does: ``[sys.executable, "-m" or "-c" or a script, …]``."""
        return _Forked(self, list(map(str, args)), options)

    def order(self, order: dict[str, Any], fds: Sequence[int]) -> int:
        """Have a process forked that gets these descriptors; return its id."""
        with self._one_at_a_time:
            socket.send_fds(self._channel, [json.dumps(order).encode()], fds)
            return int(self._channel.recv(64))

    def end(self) -> None:
        self._channel.close()
        self._process.communicate()


class _Forked(subprocess.Popen[Any]):
    """A forked process. It is no child of ours: how it ended is what comes out of a pipe."""

    def __init__(self, forks: Forks, args: list[str], options: dict[str, Any]) -> None:
        assert args[0] == sys.executable
        assert not options.keys() & {"pass_fds", "preexec_fn", "shell", "start_new_session"}
        self._forks = forks
        self._status = -1
        super().__init__(args, **options)

    def _execute_child(self, args: list[str], *given: Any) -> None:
        _, _, _, _, cwd, env, _, _, _, stdin, p2cwrite, c2pread, stdout, errread, stderr, *_ = given
        order = {"args": args[1:], "cwd": str(cwd or os.getcwd()), "env": dict(env or os.environ)}
        self._status, its_status = os.pipe()
        streams = [own if given < 0 else given for own, given in enumerate((stdin, stdout, stderr))]
        self.pid = self._forks.order(order, [*streams, its_status])
        self._child_created = True
        os.close(its_status)
        self._close_pipe_fds(stdin, p2cwrite, c2pread, stdout, errread, stderr)  # type: ignore[attr-defined]

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if flags & os.WNOHANG:
            with DefaultSelector() as selector:
                selector.register(self._status, EVENT_READ)
                if not selector.select(0):
                    return 0, 0
        status = int(os.read(self._status, 64))
        os.close(self._status)
        return self.pid, status

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        if self.returncode is None:
            with self._waitpid_lock:  # type: ignore[attr-defined]
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid:
                        self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode


def fits(env: Mapping[str, str]) -> bool:
    """Whether a command may run in a fork: with these variables, its interpreter starts as any other."""
    return not any(name.startswith(("PYTHON", "LC_", "LANG")) for name in env)


def _serve(channel: socket.socket) -> list[str]:
    """Fork for each order; return in the forked processes, set up for what each is to do: its arguments."""
    with DefaultSelector() as selector:
        selector.register(channel, EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not channel:
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    pid, status = key.data
                    with open(status, "wb", 0) as told, suppress(BrokenPipeError):
                        told.write(b"%d" % os.waitpid(pid, 0)[1])
                    continue
                order, fds, _, _ = socket.recv_fds(channel, 1 << 20, 4)
                if not order:
                    os._exit(0)
                pid = os.fork()
                if pid == 0:
                    channel.close()
                    for other in list(selector.get_map().values()):
                        if other.data is not None:
                            os.close(other.fd)
                            os.close(other.data[1])
                    return _become(json.loads(order), fds)
                *streams, status = fds
                for fd in streams:
                    os.close(fd)
                selector.register(os.pidfd_open(pid), EVENT_READ, (pid, status))
                channel.send(b"%d" % pid)


def _become(order: dict[str, Any], fds: list[int]) -> list[str]:
    """Give this process the place, the environment and the streams of an order; return its arguments."""
    *streams, status = fds
    os.close(status)
    for target, fd in enumerate(streams):
        os.dup2(fd, target)
        os.close(fd)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    random.seed()
    sys.path[0] = order["cwd"]
    return list(order["args"])


def _do(args: list[str]) -> None:
    """Do what Python does that is started with these arguments."""
    match args:
        case ["-c", code, *rest]:
            sys.argv[:] = ["-c", *rest]
            main = sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(code, "<string>", "exec"), vars(main))  # noqa: S102
        case ["-m", "harnpy", *rest]:
            from harnpy.cli.main import entry

            sys.argv[:] = ["harnpy", *rest]
            entry()
        case ["-m", module, *rest]:
            sys.argv[:] = [module, *rest]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [script, *_]:
            sys.argv[:] = args
            sys.path[0] = os.path.dirname(os.path.abspath(script))
            runpy.run_path(script, run_name="__main__")


def end_process(status: int) -> None:
    """End as an interpreter does, but leave it to the system to free what is there: taking apart all modules
    copies each page that is shared with the other forks, twenty times the cost of most commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            status = 120
    os._exit(status)


def import_everything(*modules: str) -> None:
    import harnpy

    for module in pkgutil.walk_packages(harnpy.__path__, "harnpy.", onerror=lambda name: None):
        if not module.name.removeprefix("harnpy.").startswith((*_UNUSED, "__main__")):
            try:
                import_module(module.name)
            except ImportError:
                continue
    for name in modules:
        with suppress(ImportError):
            import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        import_everything(*sys.argv[2:])
        arguments = _serve(orders)
    try:
        _do(arguments)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        end_process(end.code or 0)
    end_process(0)
