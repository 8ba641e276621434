"""Every example runs, against the mock model where it wants one, and prints what `tests/examples` says."""

import runpy
import sys
from pathlib import Path

import pytest

from harnpy.cli.testing.sandbox import run_program

pytestmark = pytest.mark.usefixtures("clock")

OUTPUTS = Path(__file__).parent / "examples"
FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.rglob("*.harn"))
#: A server is run by the example that it is for.
PROGRAMS = [path for path in sorted(FOLDER.rglob("*.py")) if not path.stem.endswith("_server")]


def test_there_are_examples() -> None:
    assert {"quick_tour", "sessions_v1"} <= {path.stem for path in EXAMPLES}


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, evaluator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where it leaves its runs
    outcome = run_program(path, evaluator=evaluator)
    assert (outcome.error, outcome.exit_code) == (None, 0), outcome.report
    assert outcome.output == _expected(path)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("arguments", [[], ["sqlite:desk.db"]], ids=["memory", "sqlite"])
def test_a_python_example_runs(
    path: Path,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out == _expected(path)


def _expected(path: Path) -> str:
    return (OUTPUTS / f"{path.stem}.expected").read_text(encoding="utf-8")
