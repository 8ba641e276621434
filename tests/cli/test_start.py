"""What a run loads before its program starts. Each of our modules costs a start a tenth of a millisecond."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HELLO = 'println("hello")\n'
METHODS = "println([3, 1].sort().count())\n"
#: Rooms and modules that no program needs which only prints.
UNUSED = {
    "harnpy.agent", "harnpy.cli.console", "harnpy.llm", "harnpy.serve", "harnpy.session", "harnpy.syntax",
    "harnpy.vm.emit", "harnpy.vm.resolve", "harnpy.vm.run", "collections", "enum", "functools", "re",
    "typing",
}  # fmt: skip


def loaded_by_second_run(source: str, directory: Path) -> set[str]:
    program = directory / "program.harn"
    program.write_text(source)
    code = (
        f"import sys; from harnpy.cli.main import main; main(['run', {str(program)!r}]); print(*sys.modules)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(directory / "cache"), "HARNPY_NO_CACHE": ""}
    for _ in range(2):
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


def test_a_method_loads_no_tasks(tmp_path: Path) -> None:
    loaded = loaded_by_second_run(METHODS, tmp_path)
    assert "harnpy.vm.run.list_methods" in loaded
    assert not {"harnpy.vm.run.tasks", "collections", "importlib"} & loaded
