"""Every example runs, against the mock model where it wants one, and prints what `tests/examples` says."""

from pathlib import Path

import pytest

from harnpy.cli.testing.sandbox import run_program

pytestmark = pytest.mark.usefixtures("clock")

OUTPUTS = Path(__file__).parent / "examples"
EXAMPLES = sorted((Path(__file__).parent.parent / "examples").rglob("*.harn"))


def test_there_are_examples() -> None:
    assert {"quick_tour", "sessions_v1"} <= {path.stem for path in EXAMPLES}


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, evaluator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where it leaves its runs
    outcome = run_program(path, evaluator=evaluator)
    assert (outcome.error, outcome.exit_code) == (None, 0), outcome.report
    assert outcome.output == (OUTPUTS / f"{path.stem}.expected").read_text(encoding="utf-8")
