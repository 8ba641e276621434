"""The `harnpy` command as a real process that is forked from one which has imported harnpy already.

Importing it is most of what a short command does, and the suite runs hundreds of them. What depends on how an
interpreter starts, and start-up itself, is tested in processes of their own. Run as a program, this is the
process that has imported everything: it forks for each order that comes over its socket.
"""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector

#: Rooms that only some commands enter, and modules whose presence changes how a process ends.
_UNUSED = (
    "adapters",
    "faces",
    "isolation",
    "serve",
    "mcp",
    "llm.providers",
    "storage.postgres",
    "cli.debugger",
    "cli.profile",
)
#: What fits into a pipe before anybody reads it.
_PIPE = 1 << 16


class Forks:
    """The process that forks, for one process of the suite."""

    def __init__(self, root: Path) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "tests.forked", str(theirs.fileno())]
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
        """Run a command as `subprocess.run` does, with its output captured."""
        given, taken = os.pipe()
        os.write(taken, stdin.encode("utf-8"))
        os.close(taken)
        out, its_out = os.pipe()
        err, its_err = os.pipe()
        order = json.dumps({"args": args, "cwd": str(cwd), "env": dict(env)}).encode()
        socket.send_fds(self._channel, [order], [given, its_out, its_err])
        for fd in (given, its_out, its_err):
            os.close(fd)
        pid = int(self._channel.recv(64))
        try:
            texts = _read([out, err], timeout)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(["harnpy", *args], timeout) from None
        finally:
            os.close(out)
            os.close(err)
        status = os.waitstatus_to_exitcode(int(self._channel.recv(64)))
        return subprocess.CompletedProcess(["harnpy", *args], status, *texts)

    def end(self) -> None:
        self._channel.close()
        self._process.communicate()


def fits(stdin: str, env: Mapping[str, str]) -> bool:
    """Whether a command may run in a fork: its input is short, and its interpreter starts as any other."""
    return len(stdin) < _PIPE // 4 and not any(name.startswith(("PYTHON", "LC_", "LANG")) for name in env)


def _read(fds: list[int], timeout: float) -> list[str]:
    """Return all that comes out of pipes, as text."""
    texts = {fd: bytearray() for fd in fds}
    end = time.monotonic() + timeout
    with DefaultSelector() as selector:
        for fd in fds:
            selector.register(fd, EVENT_READ)
        while selector.get_map():
            if time.monotonic() > end:
                raise TimeoutError
            for key, _ in selector.select(end - time.monotonic()):
                if data := os.read(key.fd, _PIPE):
                    texts[key.fd] += data
                else:
                    selector.unregister(key.fd)
    return [text.decode("utf-8").replace("\r\n", "\n") for text in texts.values()]


def _serve(channel: socket.socket) -> None:
    """Fork for each order; return in the forked processes, set up for what each is to do."""
    while True:
        order, fds, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not order:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            channel.close()
            _become(json.loads(order), fds)
            return
        for fd in fds:
            os.close(fd)
        channel.send(b"%d" % pid)
        _, status = os.waitpid(pid, 0)
        channel.send(b"%d" % status)


def _become(order: dict[str, object], fds: list[int]) -> None:
    """Give this process the place, the environment and the streams of an order."""
    for target, fd in enumerate(fds):
        os.dup2(fd, target)
        os.close(fd)
    cwd, env, args = order["cwd"], order["env"], order["args"]
    assert isinstance(cwd, str)
    assert isinstance(env, dict)
    assert isinstance(args, list)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.path[0] = cwd
    sys.argv[1:] = args


def _import_everything() -> None:
    import harnpy

    for module in pkgutil.walk_packages(harnpy.__path__, "harnpy.", onerror=lambda name: None):
        if not module.name.removeprefix("harnpy.").startswith((*_UNUSED, "__main__")):
            try:
                import_module(module.name)
            except ImportError:
                continue
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        _import_everything()
        _serve(orders)
    from harnpy.cli.main import entry

    sys.argv[0] = "harnpy"
    entry()
