"""What a run loads before its program starts. Each of our modules costs a start a tenth of a millisecond."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harnpy.cli.main import main
from harnpy.tape import tapes
from harnpy.tape.journal import TapeJournal

HELLO = 'println("hello")\n'
METHODS = "println([3, 1].sort().count())\n"
AGENT = """
llm_mock({text: "hello"})
println(agent_loop("Say it.", nil, {provider: "mock"}).visible_text)
"""
#: What no replay needs: it prints no table, makes no report, asks nobody, opens no store.
UNUSED_BY_REPLAYS = {
    "harnpy.workflow.report", "harnpy.workflow.bundle", "harnpy.cli.tables", "harnpy.syntax.parser", "rich",
    "httpx2", "sqlite3",
}  # fmt: skip
#: Rooms and modules that no program needs which only prints.
UNUSED = {
    "harnpy.agent", "harnpy.cli.console", "harnpy.llm", "harnpy.serve", "harnpy.session", "harnpy.syntax",
    "harnpy.vm.emit", "harnpy.vm.resolve", "harnpy.vm.run", "collections", "enum", "functools", "re",
    "typing",
}  # fmt: skip


#: What is needed by no cold start of such a program; a library of Python's brings a dozen others along.
UNUSED_COLD = {
    "harnpy.check.walk.blocks", "harnpy.check.walk.declarations", "harnpy.check.walk.operators",
    "harnpy.formats.secrets.forms", "harnpy.formats.suggestions", "harnpy.syntax.diagnostic",
    "harnpy.vm.emit.functions", "harnpy.vm.emit.patterns", "harnpy.vm.emit.statements", "bisect",
    "collections", "contextlib", "copy", "enum", "functools", "re", "typing",
}  # fmt: skip


def loaded_by_second_run(source: str, directory: Path) -> set[str]:
    program = directory / "program.harn"
    program.write_text(source)
    for _ in range(2):
        loaded = loaded_by(directory, "run", str(program))
    return loaded


def loaded_by(directory: Path, *arguments: str) -> set[str]:
    """Return the modules that a command has loaded when it ends, and the words that it has printed."""
    code = f"import sys; from harnpy.cli.main import main; main({[*arguments]!r}); print(*sys.modules)"
    environment = {**os.environ, "XDG_CACHE_HOME": str(directory / "cache"), "HARNPY_NO_CACHE": ""}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    return set(run.stdout.split())


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    return loaded_by_second_run(HELLO, tmp_path_factory.mktemp("hello"))


def test_a_warm_start_loads_no_parser_compiler_or_domain(warm: set[str]) -> None:
    assert not UNUSED & warm


def test_a_warm_start_loads_few_modules(warm: set[str]) -> None:
    ours = sorted(name for name in warm if name.split(".")[0] == "harnpy")
    assert len(ours) <= 30, ours


def test_a_cold_start_loads_what_checks_and_writes_its_own_nodes(tmp_path: Path) -> None:
    (tmp_path / "program.harn").write_text(HELLO)
    loaded = loaded_by(tmp_path, "run", str(tmp_path / "program.harn"))
    assert {"hello", "harnpy.check.checker", "harnpy.vm.emit.program"} <= loaded
    assert not UNUSED_COLD & loaded


def test_a_method_loads_no_tasks(tmp_path: Path) -> None:
    loaded = loaded_by_second_run(METHODS, tmp_path)
    assert "harnpy.vm.run.list_methods" in loaded
    assert not {"harnpy.vm.run.tasks", "collections", "importlib"} & loaded


def test_a_replay_loads_no_parser_report_client_or_store(tmp_path: Path) -> None:
    program, tape = str(tmp_path / "program.harn"), str(tmp_path / "run.tape")
    Path(program).write_text(AGENT)
    loaded_by(tmp_path, "run", "--record", tape, program)
    loaded = loaded_by(tmp_path, "replay", tape)
    assert {"hello", "harnpy.agent.loop.loop"} <= loaded
    assert not UNUSED_BY_REPLAYS & loaded


def test_a_replay_looks_for_no_garbage_until_its_program_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.harn").write_text(HELLO)
    assert main(["run", "--record", "run.tape", "program.harn"]) == 0
    seen: list[bool] = []
    read = tapes.read_tape
    monkeypatch.setattr("harnpy.tape.read_tape", lambda path: seen.append(gc.isenabled()) or read(path))
    monkeypatch.setattr(TapeJournal, "end", lambda journal: seen.append(gc.isenabled()))
    assert main(["replay", "run.tape"]) == 0
    assert seen == [False, True]
    assert gc.get_freeze_count() == 0
