"""`harnpy test --watch`: what runs again, and when. Spec: 09 §3.2."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harnpy.cli.testing.user_tests import Options
from harnpy.cli.testing.watching import Watch

FILES = {
    "harn.toml": '[package]\nname = "shop"\n',
    "lib/prices.harn": "pub fn price() { return 2 }\n",
    "tests/test_a.harn": 'import "../lib/prices"\npipeline test_a(t) { assert_eq(price(), 2) }\n',
    "tests/test_b.harn": "pipeline test_b(t) { assert(true) }\npipeline test_c(t) { assert(false) }\n",
    "notes/other.harn": "let unused = 1\n",
}


class Hands:
    """Whoever edits files and presses keys: a step at each time that `--watch` waits."""

    def __init__(self, steps: Iterator[str | None]) -> None:
        self._steps = steps
        self.pauses: list[float] = []

    def wait(self, seconds: float) -> str | None:
        self.pauses.append(seconds)
        return next(self._steps)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARN_TRUST", "1")
    times = iter(range(1, 100))

    def write(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(0, next(times)))

    for name, text in FILES.items():
        write(name, text)
    return write


def reports(steps: Iterator[str | None], capfd: pytest.CaptureFixture[str]) -> tuple[int, list[list[str]]]:
    """The exit status, and the names of the tests in each report with what is said of the others."""
    hands = Hands(steps)
    options = Options(Path("tests"), None, 5000, parallel=False)
    status = Watch(options, hands.wait).run()
    assert min(hands.pauses) >= 0.2
    found: list[list[str]] = []
    for line in capfd.readouterr().out.splitlines():
        words = line.split()
        if line.startswith("Running"):
            found.append([])
        elif words[:1] in (["PASS"], ["FAIL"]):
            found[-1].append(words[1])
        elif "other file" in line:
            found[-1].append(line)
    return status, found


#: One look at the files finds the change, the next one that it is complete.
SETTLED = (None, None)
A, B = ["test_a"], ["test_b", "test_c"]
OTHER_A, OTHER_B = "1 other file: 1 passed", "1 other file: 1 passed, 1 failed"


def test_what_a_change_affects_runs_again(write, capfd: pytest.CaptureFixture[str]) -> None:
    def steps() -> Iterator[str | None]:
        write("lib/prices.harn", "pub fn price() { return 1 + 1 }\n")
        yield from SETTLED
        write("tests/test_b.harn", "pipeline test_c(t) { assert(true) }\n")
        yield from SETTLED
        write("tests/test_d.harn", "pipeline test_d(t) { }\n")
        yield from SETTLED
        Path("tests/test_d.harn").unlink()
        yield from SETTLED
        write("notes/other.harn", "let unused = 2\n")
        yield from SETTLED
        yield "q"

    status, found = reports(steps(), capfd)
    assert found == [
        [*A, *B],
        [*A, OTHER_B],
        ["test_c", OTHER_A],
        ["test_d", "2 other files: 2 passed"],
        [*A, "test_c"],
        [*A, "test_c"],
    ]
    assert status == 0


def test_keys(write, capfd: pytest.CaptureFixture[str]) -> None:
    def steps() -> Iterator[str | None]:
        yield "f"
        yield "x"
        yield "\n"
        yield "q"

    assert reports(steps(), capfd) == (1, [[*A, *B], ["test_c", OTHER_A], [*A, *B]])


def test_a_module_that_cannot_be_read_is_watched(write, capfd: pytest.CaptureFixture[str]) -> None:
    def steps() -> Iterator[str | None]:
        write("lib/prices.harn", "pub fn price( {\n")
        yield from SETTLED
        write("lib/prices.harn", "pub fn price() { return 2 }\n")
        yield from SETTLED
        yield "\x04"

    assert reports(steps(), capfd) == (1, [[*A, *B], [*A, OTHER_B], [*A, *B]])


def test_a_terminal_is_cleared_and_says_which_keys_there_are(terminal, write) -> None:
    shown = terminal("test", "--watch")
    shown.expect("1 failed, 3 total")
    shown.expect("Enter: run all   f: only what failed   q: quit")
    shown.type("f")
    shown.show("\x1b[2J\x1b[H")
    shown.expect("1 failed, 1 total")
    shown.expect("1 other file: 1 passed")
    shown.expect("q: quit")
    shown.type("q")
    assert shown.process.wait(timeout=60) == 1
