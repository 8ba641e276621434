"""No command in an attacker's directory starts a process, reaches anybody or writes anywhere else.

Spec: 09 §12.1.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.counts import COUNT
from tests.hostile.foreign import KINDS, SECRETS, Order, make_outside
from tests.support import PATIENCE, ROOT

_TRACED = (
    "execve,execveat,connect,bind,sendto,open,openat,openat2,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,"
    "unlinkat,rmdir,symlink,symlinkat,link,linkat,chmod,fchmodat,truncate,mknod,mknodat"
)
_CALL = re.compile(r"\d+ +(\w+)\((.*)\) += (.*)")
_PATH = re.compile(r'(?:(?:AT_FDCWD|\d+)(?:<([^>]*)>)?, )?"([^"]*)"')
_OPENED = re.compile(r"\d+<([^>]*)>")
#: What commands read for themselves: harnpy's own settings, the language, the terminal, usual places.
_NEEDED = re.compile(
    "(HARN|HARNPY|XDG|LC|TTY|PYTHON)_?[A-Z_]*|HOME|USERPROFILE|TE?MP|TMPDIR|LANG(UAGE)?|TERM|COLUMNS|LINES|"
    "(NO|FORCE)_COLOR|COLORTERM|JUPYTER_[A-Z]*|CI|"
    # Who is at the terminal; what the libraries of MCP and of the Agent Client Protocol stand on.
    "USER|LOGNAME|(OTEL|PYDANTIC)_[A-Z_]*|"
    # Where a browser is, for `harnpy portal`.
    "DISPLAY|WAYLAND_DISPLAY|BROWSER"
)
#: Commands that mask whatever the environment holds, hand it on to a program, or say which keys there are.
_MASKING = ("doctor", "bundle export", "session export", "eval", "runs", "replay", "watch")


pytestmark = pytest.mark.long


class Seen:
    """What the commands did."""

    def __init__(self, home: Path, report: Path, trace: Path) -> None:
        #: The directory itself, what harnpy caches, and where `harnpy trust` keeps the user's decision.
        self.allowed = [home / name for name in ("place", "cache", "tmp", "report", "home/.config")]
        self.inside = [json.loads(line) for line in report.read_text().splitlines()]
        self.outside = trace.read_text(errors="replace") if trace.exists() else ""

    def is_allowed(self, path: str) -> bool:
        return path in ("/dev/null", "/dev/tty") or any(
            Path(path).is_relative_to(each) for each in self.allowed
        )


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    home = Path(os.path.realpath(tmp_path_factory.mktemp("foreign")))
    for name in ("home", "cache", "tmp"):
        (home / name).mkdir()
    make_outside(home / "outside")
    report, trace = home / "report", home / "trace"
    report.touch()
    order = Order(str(home / "place"), str(report), bool(COUNT.campaign))
    command = [sys.executable, "-m", "tests.hostile.foreign", json.dumps(order)]
    if shutil.which("strace"):
        watched = [
            "strace",
            "-f",
            "-y",
            "-qq",
            "--seccomp-bpf",
            "-s",
            "4096",
            "-e",
            f"trace={_TRACED}",
            "-o",
            str(trace),
        ]
        command = [*watched, *command]
    variables = {
        **SECRETS,
        "PATH": os.environ["PATH"],
        "HOME": str(home / "home"),
        "TMPDIR": str(home / "tmp"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    return Seen(home, report, trace)


def test_all_of_them_are_watched(seen: Seen) -> None:
    """The wall would be none if nothing were noted: some commands write in their directory."""
    written = {what[0] for what in seen.inside if what[1] == "write"}
    for kind in KINDS:
        assert f"{kind} fmt ." in written
    assert {"data tokens create s1", "data sessions list", "data run -e nil"} <= written


def test_no_process_is_started_and_nobody_is_reached(seen: Seen) -> None:
    assert not [what for what in seen.inside if what[1] == "elsewhere"]


def test_no_file_outside_is_written(seen: Seen) -> None:
    written = [what for what in seen.inside if what[1] == "write"]
    assert not [what for what in written if not seen.is_allowed(what[2])]
    decided = [what for what in written if "/home/" in what[2]]
    assert {what[0].split()[1] for what in decided} == {"trust"}


def test_no_variable_is_read_that_the_command_does_not_need(seen: Seen) -> None:
    read = [what for what in seen.inside if what[1] == "variable" and not _NEEDED.fullmatch(what[2])]
    assert not [what for what in read if not what[0].partition(" ")[2].startswith(_MASKING)]


def test_the_system_has_seen_no_more(seen: Seen) -> None:
    if not seen.outside:
        pytest.skip("strace is not installed")
    lines = seen.outside.splitlines()
    commands = {line.split(None, 1)[0] for line in lines} - {lines[0].split(None, 1)[0]}
    assert len(commands) > 100
    assert not [
        line for line in lines[1:] if line.split(None, 1)[0] in commands and not _is_harmless(line, seen)
    ]


def _is_harmless(line: str, seen: Seen) -> bool:
    found = _CALL.match(line)
    if found is None:
        return True  # a signal, or the second half of a call
    name, arguments, result = found.groups()
    if name == "sendto" and arguments.endswith("NULL, 0"):
        return True  # between the ends of a pair of sockets
    if name.startswith("open") and not re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND", arguments):
        return True
    if name == "bind" and 'inet_addr("127.0.0.1")' in arguments:
        return True  # `harnpy serve` listens, for this machine alone
    if name in ("execve", "execveat", "connect", "bind", "sendto"):
        return False
    if result.startswith("-"):
        return True
    opened = _OPENED.match(result)
    return all(map(seen.is_allowed, [opened[1]] if opened else _paths(arguments)))


def _paths(arguments: str) -> Iterator[str]:
    for directory, path in _PATH.findall(arguments):
        yield os.path.join(directory or "/", path)
