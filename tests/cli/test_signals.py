"""SIGINT and SIGTERM at random moments: status 124, no traceback, and files that can be read (09 §2.4)."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from harnpy.cli import Stopped, main
from harnpy.cli.console import report_failure
from harnpy.workflow.records import record_files
from harnpy.world import World
from tests.counts import COUNT
from tests.support import PATIENCE, ROOT, wait_until

NOTICE = "[harn] signal received, flushing state...\n"

_NODES = ", ".join(f'n{i}: {{kind: "reduce"}}' for i in range(12))
_EDGES = ", ".join(f'{{from: "n{i}", to: "n{i + 1}"}}' for i in range(11))
PROGRAMS = {
    "hello": 'println("hello")',
    "lines": 'for i in 0 to 3000 { println("line ${i}") }',
    "work": "var n = 0\nfor i in 0 to 60000 { n = (n + i * i) % 9973 }\nprintln(n)",
    "sleeps": "for i in 0 to 20 { sleep(5ms) }",
    "exec": 'for i in 0 to 4 { exec("sh", "-c", "sleep 0.01 & sleep 0.02") }',
    "tasks": "let all = [1, 2, 3].map({ n -> spawn { for i in 0 to 20 { sleep(n) }\n n } })\n"
    "for one in all { println(await(one)) }",
    "handlers": "for i in 0 to 200 { try { throw i } catch (e) { sleep(1) } finally { println(i) } }",
    "files": 'for i in 0 to 15 { checkpoint("k${i}", i)\n workflow.signal("w", "m", i) }',
    "workflow": f'let g = {{entry: "n0", nodes: {{{_NODES}}}, edges: [{_EDGES}]}}\n'
    'for i in 0 to 2 { workflow_execute("t", g, nil, {persist_path: "runs/r${i}.json"}) }',
    "compile": "\n".join(
        f"fn f{i}(a, b) {{ if a > b {{ return [a, {{k: b}}] }}\n a + b }}" for i in range(120)
    ),
}


def started(directory: Path, *command: str, **env: str) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.Popen(
        [sys.executable, "-m", "harnpy", *command],
        cwd=directory,
        env=inherited | {"PYTHONPATH": str(ROOT), "HARNPY_NO_CACHE": "1"} | env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def await_handler(process: subprocess.Popen[str]) -> None:
    """Return when signals are ours: until then, the interpreter starts, and they are the system's."""

    def handles() -> bool:
        state = Path(f"/proc/{process.pid}/status").read_text()
        caught = int(state.partition("SigCgt:")[2].split()[0], 16) if "SigCgt" in state else 0
        return bool(caught >> (signal.SIGTERM - 1) & 1) or "State:\tZ" in state

    wait_until(handles)


def ended(process: subprocess.Popen[str], numbers: list[signal.Signals], after: float) -> tuple[int, str]:
    await_handler(process)
    time.sleep(after)
    for number in numbers:
        process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, err


def check_files(directory: Path) -> None:
    for path in directory.rglob("*"):
        assert not path.name.endswith(".partial"), path
        if path.suffix == ".json":
            json.loads(path.read_text())
        if path.parent.name == "runs":
            record_files.load_run(str(path), World())


@pytest.mark.parametrize("name", PROGRAMS)
def test_signals_at_random_moments(tmp_path: Path, name: str) -> None:
    (tmp_path / "p.harn").write_text(PROGRAMS[name])
    whole = started(tmp_path, "run", "p.harn")
    await_handler(whole)
    begun = time.monotonic()
    _, err = whole.communicate(timeout=PATIENCE)
    assert (whole.returncode, err) == (0, "")
    duration = time.monotonic() - begun
    chance = random.Random(name)
    for _ in range(max(COUNT.signals // len(PROGRAMS), 1)):
        first = chance.choice([signal.SIGINT, signal.SIGTERM])
        numbers = [first, *([signal.SIGINT] if chance.random() < 0.3 else [])]
        status, err = ended(started(tmp_path, "run", "p.harn"), numbers, chance.random() * duration)
        assert (status, err) in ((124, NOTICE), (0, "")), (numbers, err)
        check_files(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_recording_that_is_ended_replays_up_to_there(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "p.harn").write_text(
        'for i in 1 to 500 { println("line ${i} ${uuid()}")\n write_file("f", "${i}")\n sleep(20ms) }'
    )
    process = started(tmp_path, "run", "--record", "run.tape", "p.harn")
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(3)]
    process.send_signal(number)
    rest, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (124, NOTICE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f", "p.harn", "run.tape.partial"]
    replay = started(tmp_path, "replay", "run.tape.partial")
    out, err = replay.communicate(timeout=PATIENCE)
    assert out == "".join(lines) + rest
    assert err.startswith("error: run.tape.partial was cut off after effect ")
    assert (replay.returncode, err.count("\n")) == (1, 1)


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> main.Signals:
    """Those of no process: what they tell Python is undone, and nothing ends when their time is over."""
    signals = main.Signals()
    monkeypatch.setattr(signals, "_watch", lambda: None)
    monkeypatch.setattr(main, "_be_quiet", lambda: None)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    return signals


def test_a_signal_while_another_is_announced(signals: main.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    def write(stream: int, text: bytes) -> None:
        signals._handle(signal.SIGINT, None)
        written.append(text)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(Stopped):
            signals._handle(signal.SIGINT, None)
    assert written == [NOTICE.encode()]


def test_what_is_finished_as_soon_as_it_is_begun_delays_nothing(signals: main.Signals) -> None:
    signals.before(lambda done: done(), 60.0)
    with pytest.raises(Stopped):
        signals._handle(signal.SIGINT, None)


def test_an_import_is_made_whole_first(
    signals: main.Signals, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(main, "of_this_test", signals, raising=False)
    (tmp_path / "interrupted_import.py").write_text(
        "import signal, sys\n"
        "from harnpy.cli import main\n"
        "main.of_this_test._handle(signal.SIGINT, sys._getframe())\n"
        "is_whole = True\n"
    )
    assert import_module("interrupted_import").is_whole
    with pytest.raises(Stopped):
        signals._handle(signal.SIGTERM, None)


def test_what_was_printed_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "p.harn").write_text('println("a".repeat(5000))\neprintln("ready")\nsleep(1000000)')
    process = started(tmp_path, "run", "p.harn")
    assert process.stderr.readline() == "ready\n"
    process.terminate()
    out, err = process.communicate(timeout=PATIENCE)
    assert (len(out), err, process.returncode) == (5001, NOTICE, 124)


def test_what_exec_started_ends_with_all_that_it_started(tmp_path: Path) -> None:
    inner = "sleep 1000 & echo $! > inner; echo $$ > outer"
    (tmp_path / "p.harn").write_text(f'exec("sh", "-c", "{inner}")')
    process = started(tmp_path, "run", "p.harn")
    wait_until((tmp_path / "outer").exists)
    wait_until(lambda: (tmp_path / "outer").read_text())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (124, NOTICE)
    pids = [int((tmp_path / name).read_text()) for name in ("inner", "outer")]
    wait_until(lambda: not any(map(is_alive, pids)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", [("t", "--parallel"), ("conformance", "--root", "t", "--jobs", "2")])
def test_workers_of_tests_end_with_all_that_they_started(
    tmp_path: Path, number: signal.Signals, command: tuple[str, ...]
) -> None:
    (tmp_path / "t").mkdir()
    inner = f"echo $$ > '{tmp_path}'/pid.part; mv '{tmp_path}'/pid.part '{tmp_path}'/pid; sleep 1000"
    (tmp_path / "t/a.harn").write_text(f'pipeline test_a(t) {{ exec("sh", "-c", "{inner}") }}')
    (tmp_path / "t/a.expected").touch()
    process = started(tmp_path, "test", *command)
    wait_until((tmp_path / "pid").exists)
    os.killpg(process.pid, number)  # as a terminal does
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (124, NOTICE)
    wait_until(lambda: not is_alive(int((tmp_path / "pid").read_text())))


def test_an_error_that_python_made_of_the_interruption_is_not_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = RuntimeError("Error calling __set_name__")  # by Python 3.11, where a class is being made
    made.__cause__ = Stopped()
    with pytest.raises(Stopped):
        report_failure(made)
    assert capsys.readouterr().err == ""


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_program_that_goes_on_is_ended(tmp_path: Path) -> None:
    (tmp_path / "p.harn").write_text('eprintln("ready")\ntry { sleep(1000000) } finally { while true { } }')
    process = started(tmp_path, "run", "p.harn")
    assert process.stderr.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (124, NOTICE)


@pytest.mark.parametrize(
    "command", [("builtins",), ("test", "t"), ("debug", "p.harn"), ("check", "p.harn"), ("profile", "p.harn")]
)
def test_other_commands(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "p.harn").write_text("for i in 0 to 20 { sleep(5ms) }")
    (tmp_path / "t").mkdir()
    (tmp_path / "t/t.harn").write_text("pipeline test_a(t) { for i in 0 to 20 { sleep(5ms) } }")
    chance = random.Random(str(command))
    for number in (signal.SIGINT, signal.SIGTERM):
        status, err = ended(started(tmp_path, *command), [number], chance.random() * 0.3)
        assert status in (124, 0), (number, err)
        assert "Traceback" not in err
