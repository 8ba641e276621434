"""`harnpy run --memory --time --limit`: hard limits, their statuses, and everything else as without them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harnpy.cli.bounds import BEYOND_LIMIT, OUT_OF_MEMORY, read_seconds, without_bounds
from tests.support import PATIENCE, ROOT, Command, wait_until

SPIN = "while true { }"


@pytest.fixture
def program(tmp_path: Path):
    """Write a program into the working directory and answer its name."""

    def write(text: str) -> str:
        (tmp_path / "demo.harn").write_text(text, encoding="utf-8")
        return "demo.harn"

    return write


def test_time(harnpy: Command, program) -> None:
    done = harnpy("run", "--time", "2s", program(f'println("before")\n{SPIN}'))
    assert done.returncode == BEYOND_LIMIT
    assert done.stdout == "before\n"
    first, *place = done.stderr.splitlines()[:2]
    assert first == "error: Error [limit_exceeded]: the program exceeded its limit of 2 seconds"
    # None, where the machine was too busy for the program to end by itself within half a second.
    assert place in (["  --> demo.harn:2:1"], [])


HUNGRY = {
    "a string": 'var s = "ab"\nwhile true { s = s + s }',
    "a dict": 'var d = {}\nvar i = 0\nwhile true { d["k${i}"] = "v" * 1000 + "${i}"\ni = i + 1 }',
    "a string, caught": 'var s = "ab"\nwhile true { try { s = s + s } catch (e) { } }',
    "nested lists": "var xs = []\nwhile true { xs = [xs, [1, 2, 3]] }",
}


@pytest.mark.parametrize("name", HUNGRY)
def test_memory(name: str, harnpy: Command, program) -> None:
    done = harnpy("run", "--memory=256M", program(HUNGRY[name]))
    assert done.returncode == OUT_OF_MEMORY, done.stderr
    first = done.stderr.splitlines()[0]
    assert first == "error: Error [limit_exceeded]: the program exceeded its limit of 256M of memory"
    assert "Traceback" not in done.stderr


def test_it_never_has_more_memory(harnpy: Command, program) -> None:
    """What the system lets it have, and what a process of its own gets."""
    source = 'println(exec("sh", "-c", "ulimit -v; ulimit -v unlimited 2>&1 || echo no").stdout.trim())'
    assert harnpy("run", "--memory", "512M", program(source)).stdout.split()[0] == str(512 << 10)


def test_a_limit_by_name(harnpy: Command, program) -> None:
    done = harnpy("run", "--limit", "steps=100", "--limit=output=50", program(SPIN))
    assert done.returncode == BEYOND_LIMIT
    assert done.stderr.startswith(
        "error: Error [limit_exceeded]: the program exceeded its limit of 100 steps\n"
    )
    done = harnpy("run", "--limit", "steps=100000", "--limit=output=5", program('println("123456")'))
    assert (done.returncode, done.stdout) == (BEYOND_LIMIT, "")


def test_everything_else_is_as_without_bounds(harnpy: Command, program, tmp_path: Path) -> None:
    bounds = ["--time", "60s", "--memory=2G"]
    source = 'println([read_line(), argv, env_value(), exec("pwd").stdout.trim()])\nexit(7)'
    source = source.replace("env_value()", 'exec("sh", "-c", "echo $GIVEN").stdout.trim()')
    words = ["run", *bounds, program(source), "--", "--time", "a"]
    done = harnpy(*words, stdin="typed\n", GIVEN="yes")
    assert (done.stdout, done.stderr) == (f"[typed, [--time, a], yes, {tmp_path.resolve()}]\n", "")
    assert done.returncode == 7
    assert harnpy("run", *bounds, "-e", "return 3").returncode == 3
    assert harnpy("run", *bounds, "-", stdin="println(1)").stdout == "1\n"
    failed = harnpy("run", *bounds, program("throw 1"))
    assert (failed.returncode, failed.stderr) == (1, harnpy("run", "demo.harn").stderr)


def test_a_program_that_cannot_be_stopped_by_itself_is_killed(harnpy: Command, program) -> None:
    """It stops itself, and with it the clock that would end it."""
    source = 'exec("sh", "-c", "kill -STOP $PPID")\nprintln("alive")'
    done = harnpy("run", "--time", "200ms", program(source))
    assert (done.returncode, done.stdout) == (BEYOND_LIMIT, "")
    assert done.stderr == "error: Error [limit_exceeded]: the program exceeded its limit of 0.2 seconds\n"


def started(directory: Path, *words: str) -> subprocess.Popen[str]:
    """`harnpy run WORDS` in a directory."""
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "harnpy", "run", *words]
    return subprocess.Popen(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_both(number: signal.Signals, program, tmp_path: Path) -> None:
    with started(tmp_path, "--time=1h", program(f'eprintln("up")\n{SPIN}')) as running:
        assert running.stderr
        assert running.stderr.readline() == "up\n"
        running.send_signal(number)
        _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 124
    assert err == "[harn] signal received, flushing state...\n"


def test_the_child_ends_with_its_parent(program, tmp_path: Path) -> None:
    with started(tmp_path, "--memory=1G", program(f'eprintln("up")\n{SPIN}')) as running:
        assert running.stderr
        assert running.stderr.readline() == "up\n"
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text(encoding="ascii")
        running.kill()
    wait_until(lambda: has_ended(int(children)))


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--time", "soon"], "'soon' is no time"),
        (["--time", "0s"], "'0s' is no time"),
        (["--memory", "much"], "'much' is no size of memory"),
        (["--memory", "1K"], "1K of memory is too little to run any program: give at least 64M"),
        (["--memory=67108863"], "67108863 bytes of memory is too little"),
        (["--memory"], "a value is required for '--memory'"),
        (["--limit", "minutes=3"], "there is no limit 'minutes': there are seconds, steps"),
        (["--limit", "steps=few"], "a limit is a positive whole number"),
        (["--limit", "steps"], "a limit is a positive whole number"),
    ],
)
def test_what_is_no_bound_is_a_usage_error(words: list[str], message: str, harnpy: Command) -> None:
    done = harnpy("run", "demo.harn", *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_readings() -> None:
    assert [read_seconds(text) for text in ("10s", "500ms", "2m", "1h", "2.5")] == [10, 0.5, 120, 3600, 2.5]
    words = ["--memory", "1G", "--trace", "--time=3s", "a.harn", "--", "--time", "3"]
    assert without_bounds(words) == ["--trace", "a.harn", "--", "--time", "3"]
