"""The code keeps its own rules: style, types, layers, and a wheel that has all it needs."""

from __future__ import annotations

import subprocess
import sys
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent
_SCRIPTS = Path(sys.executable).parent


def check(*command: str | Path) -> None:
    """Run a tool in the repository; its complaints are the failure."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        pytest.fail(done.stdout + done.stderr, pytrace=False)


def test_ruff_check() -> None:
    check(sys.executable, "-m", "ruff", "check", ".")


def test_ruff_format() -> None:
    check(sys.executable, "-m", "ruff", "format", "--check", ".")


@pytest.mark.long
def test_mypy_strict() -> None:
    """`tests/typed` are programs of users of ours."""
    check(sys.executable, "-m", "mypy", "--strict", "harnpy", "tests/typed")


#: Where lines end wherever a terminal would end them: texts for people. What is stored, and programs, have
#: lines that end with a line feed and nowhere else (`formats/json.py: lines_of`).
_FOR_PEOPLE = {
    "adapters/checkpoints.py",
    "cli/commands/check.py",
    "cli/commands/eval.py",
    "cli/tables.py",
    "cli/tapes.py",
    "formats/markup.py",
    "storage/postgres/database.py",
    "tape/comparison.py",
    "tape/edits.py",
}


def test_lines_of_what_is_stored_end_with_line_feeds_alone() -> None:
    package = ROOT / "harnpy"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if ".splitlines(" in path.read_text(encoding="utf-8")
    }
    assert found == _FOR_PEOPLE


def test_import_contracts() -> None:
    check(_SCRIPTS / "lint-imports")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a wheel."""
    directory = tmp_path_factory.mktemp("wheel")
    check(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory))
    (file,) = directory.glob("*.whl")
    return file


def test_the_wheel_carries_grammar_library_and_specification(wheel: Path) -> None:
    names = set(ZipFile(wheel).namelist())
    assert {"harnpy/grammar/harn.lark", "harnpy/py.typed", "harnpy/cli/main.py"} <= names
    assert {"harnpy/check/explanations/syntax.md", "harnpy/llm/configuration/prices.json"} <= names
    templates = ROOT / "harnpy/cli/templates"
    assert {path.relative_to(ROOT).as_posix() for path in templates.rglob("*") if path.is_file()} <= names
    assert {f"harnpy/stdlib/{file.name}" for file in (ROOT / "stdlib").iterdir()} <= names
    specification = ZipFile(BytesIO(ZipFile(wheel).read("harnpy/spec.zip")))
    for file in (ROOT / "docs/spec").iterdir():
        assert specification.read(file.name) == file.read_bytes()


def test_an_installed_wheel_finds_its_library_and_specification(wheel: Path, tmp_path: Path) -> None:
    ZipFile(wheel).extractall(tmp_path / "installed")
    program = tmp_path / "main.harn"
    program.write_text('import "std/context"\nprintln(clip_text("abc", 2))', encoding="utf-8")

    def harnpy(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "harnpy", *arguments],
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path / "installed")},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.stderr == ""
        return done.stdout

    assert harnpy("run", "main.harn") == "ab\n"
    assert harnpy("builtins", "title_case").endswith("file: docs/spec/04-builtins.md §4.2\n")
