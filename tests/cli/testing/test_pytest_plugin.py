"""`pytest --harn` and the fixtures: what docs/testing.md says of them. Spec: 09 §3.6."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support import PATIENCE, ROOT, Popen

PLUGIN = "harnpy.cli.testing.pytest_plugin"
PAGE = (ROOT / "docs/testing.md").read_text(encoding="utf-8")


@pytest.fixture
def run_pytest(popen: Popen, tmp_path: Path):
    """Run pytest in the test's directory with our plugin alone; return its output and status."""

    def run(*args: str) -> tuple[str, int]:
        env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
        env.pop("PYTEST_ADDOPTS", None)
        command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", *args]
        with popen(
            command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            out, _ = process.communicate(timeout=PATIENCE)
        return out, process.returncode

    return run


def test_pages_tests_pass(run_pytest, tmp_path: Path) -> None:
    programs = re.findall(r"^```harn\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for number, text in enumerate(programs):
        (tmp_path / f"page_{number}.harn").write_text(text, encoding="utf-8")
    (python,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "test_page.py").write_text(python, encoding="utf-8")
    out, status = run_pytest("--harn", "-v")
    assert "page_0.harn::test_total PASSED" in out
    assert "page_1.harn::test_the_agent_is_polite PASSED" in out
    assert "4 passed" in out
    assert status == 0


def test_failures_read_as_those_of_harnpy_test(run_pytest, tmp_path: Path) -> None:
    (tmp_path / "a.harn").write_text(
        'pipeline test_a(t) {\n  println("seen")\n  assert_eq("1", 1)\n}\npipeline test_b(t) { 1 }\n'
    )
    (tmp_path / "helper.harn").write_text("fn f() { return 1 }\n")
    out, status = run_pytest("--harn", "-k", "test_a")
    assert '   |   ^^^^^^^^^\nexpected: 1\nactual:   "1"\n' in out
    assert re.search(r"-+ Captured output call -+\nseen\n", out)
    assert "1 failed, 1 deselected" in out
    assert "Traceback" not in out
    assert status == 1


def test_nothing_is_collected_without_the_option(run_pytest, tmp_path: Path) -> None:
    (tmp_path / "a.harn").write_text("pipeline test_a(t) { 1 }\n")
    assert run_pytest()[1] == 5


def test_the_plugin_is_an_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"harn": PLUGIN}
    code = (
        f"import sys, pytest; before = {{*sys.modules}}; import {PLUGIN}; print(*{{*sys.modules}} - before)"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert {name.rpartition(".")[0] for name in done.stdout.split()} <= {
        *("", "harnpy", "harnpy.cli", "harnpy.cli.testing")
    }
