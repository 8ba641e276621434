"""`harnpy init` and `harnpy new`: projects that run and pass their tests. Spec: 09 §6.1."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path

import pytest
import yaml

from harnpy.cli.commands.init import TEMPLATES, contents, next_commands
from harnpy.serve.agents import Agents
from harnpy.storage.opening import open_store
from tests.support import ROOT, Command

#: By template, what its program prints, and how many tests it has.
PROJECTS = {
    "basic": ("Hello, world!\n", 1),
    "agent": ("There are 40 bolts.\n", 2),
    "workflow": ("draft: success\nshort: success\ncheck: verified\ncompleted\n", 2),
    "service": ("order 41: on its way\n", 2),
    "library": ("3 by 4: 12\n", 2),
}


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_project_runs_and_passes_its_tests(in_process: Command, template: str, tmp_path: Path) -> None:
    printed, tests = PROJECTS[template]
    made = in_process("init", "--template", template)
    assert (made.stderr, made.returncode) == ("", 0)
    listed, _, about_ci = made.stdout.partition("\nNext:\n")[2].partition("\n\n")
    steps = listed.splitlines()
    assert "HARNPY" in about_ci
    assert [step.strip() for step in steps] == next_commands(template)
    done = in_process(*steps[0].split()[1:])
    assert (done.stdout, done.stderr, done.returncode) == (printed, "", 0)
    workflow = yaml.safe_load((tmp_path / ".github/workflows/harn.yml").read_text(encoding="utf-8"))
    commands = [step["run"].split() for step in workflow["jobs"]["test"]["steps"] if "run" in step]
    ran = {args[0]: in_process(*args) for program, *args in commands if program == "harnpy"}
    assert ran.keys() == {"check", "test"}
    for done in ran.values():
        assert (done.stderr, done.returncode) == ("", 0), done.stdout
    assert f"{tests} passed, {tests} total" in ran["test"].stdout


def test_they_are_formatted_and_lint_finds_nothing_in_them(in_process: Command) -> None:
    assert in_process("fmt", "--check", ROOT / "harnpy/cli/templates").returncode == 0
    linted = in_process("lint", ROOT / "harnpy/cli/templates")
    assert (linted.stderr, linted.returncode) == ("", 0)


def test_the_service_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, text in contents("service", "desk").items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    async def names() -> list[str]:
        async with Agents(["main.harn"], open_store("memory:")) as agents:
            return agents.names

    assert asyncio.run(names()) == ["desk"]


def test_a_directory_is_made_and_named(in_process: Command, tmp_path: Path) -> None:
    made = in_process("new", "a shop/front", "--template", "agent").stdout.splitlines()
    assert made[0] == "Creating project 'a shop/front'..."
    assert "  create  tests/test_clerk.harn" in made
    entered = "  cd 'a shop/front' && harnpy run --llm-mock main.llm-mock.jsonl main.harn"
    assert made[made.index("Next:") + 1 :][:3] == [entered, "  harnpy test", "  harnpy doctor"]
    manifest = tomllib.loads((tmp_path / "a shop/front/harn.toml").read_text(encoding="utf-8"))
    assert manifest["package"]["name"] == "front"


def test_nothing_is_overwritten(in_process: Command, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    (tmp_path / "main.harn").symlink_to(tmp_path / "gone.harn")
    (tmp_path / "harn.toml").write_text("# mine", encoding="utf-8")
    refused = in_process("init")
    assert refused.stderr == (
        "error: nothing is overwritten: in . there is harn.toml, main.harn already\n"
        "  = help: name another directory: harnpy init DIR\n"
    )
    assert (refused.stdout, refused.returncode) == ("", 1)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] != ".") == [
        *("README.md", "harn.toml", "main.harn")
    ]


def test_an_odd_name_becomes_a_package_name() -> None:
    for name, package in [('a "b"', "a-b"), ("..", ".."), ("ü", "my-project")]:
        assert tomllib.loads(contents("library", name)["harn.toml"])["package"]["name"] == package
