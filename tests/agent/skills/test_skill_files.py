"""Skills in files: `SKILL.md`, the layers, the command line (07 §13.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.agent.skills import SkillFile, UnusableSkill, discover_skills, read_skill_file, split_frontmatter
from harnpy.project import project_root
from harnpy.world import World
from harnpy.world.files import RealFiles
from harnpy.world.streams import RealStreams
from tests.support import Command


def write(directory: Path, name: str, *lines: str, body: str = "Body\n") -> None:
    (directory / name).mkdir(parents=True)
    text = "\n".join(["---", *(lines or ["short: A skill"]), "---", body])
    (directory / name / "SKILL.md").write_text(text, encoding="utf-8")


# SKILL.md.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\na: 1\n---\nBody\n", ("a: 1\n", "Body\n")),
        ("\ufeff\n \n---\na: 1\n---\n\nBody", ("a: 1\n", "\nBody")),
        ("---\r\na: 1\r\n---\r\nBody\r\n", ("a: 1\r\n", "Body\r\n")),
        ("---\n---\nBody", ("", "Body")),
        ("---\na: 1\n---", ("a: 1\n", "")),
        ("Body\n---\n", ("", "Body\n---\n")),
        ("---\na: 1\nBody", ("", "---\na: 1\nBody")),
    ],
)
def test_frontmatter_and_body(text: str, expected: tuple[str, str]) -> None:
    assert split_frontmatter(text) == expected


def test_every_known_key() -> None:
    text = """---
name: review
short: Short
description: Long
when-to-use: often
disable-model-invocation: true
allowed_tools: [read, "namespace:git"]
user_invocable: false
paths: "*.py"
context: fork
agent: helper
hooks: [{event: start, command: a}, {name: stop, run: b}]
model: 5
effort: high
require_signature: false
trusted_signers: []
shell: bash
argument-hint: FILE
Zeta: 1
alpha: 2
---
Body"""
    assert read_skill_file(text, "d") == SkillFile(
        {
            "name": "review",
            "short": "Short",
            "description": "Long",
            "when_to_use": "often",
            "disable_model_invocation": True,
            "allowed_tools": ["read", "namespace:git"],
            "paths": ["*.py"],
            "context": "fork",
            "agent": "helper",
            "hooks": {"start": "a", "stop": "b"},
            "model": "5",
            "effort": "high",
            "shell": "bash",
            "argument_hint": "FILE",
        },
        ["Zeta", "alpha"],
        "Body",
    )


def test_what_a_file_may_leave_out() -> None:
    read = read_skill_file("---\nshort: Short\n---\n", "directory")
    assert read.fields == {"name": "directory", "short": "Short", "description": "Short"}


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("name: x", "SKILL.md frontmatter requires a non-empty `short` field"),
        ("short: '  '", "SKILL.md frontmatter requires a non-empty `short` field"),
        ("short: [a]", "frontmatter field `short` must be a string"),
        ("short: a\npaths: [1]", "frontmatter field `paths` must be a list of strings"),
        ("short: a\nuser_invocable: maybe", "frontmatter field `user_invocable` must be true or false"),
        (
            "short: a\nhooks: [x]",
            "frontmatter field `hooks` must be a mapping, or a list of {event, command}",
        ),
        ("- a", "SKILL.md frontmatter must be a mapping"),
        ("a: [", "invalid YAML frontmatter: "),
    ],
)
def test_unusable_files(header: str, reason: str) -> None:
    with pytest.raises(UnusableSkill) as error:
        read_skill_file(f"---\n{header}\n---\n", "d")
    assert str(error.value).startswith(reason)


# Discovery.


class Disk:
    """A project in a temporary directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.warnings: list[str] = []

    def found(self, *places: str) -> list[tuple[str, str]]:
        layers = [(place.split("/")[0], str(self.root / place)) for place in places]
        skills = discover_skills(World(), str(self.root), layers, self.warnings.append)
        return [(skill.entry["name"], skill.entry["source"]) for skill in skills]


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_the_highest_layer_wins(disk: Disk) -> None:
    write(disk.root / "user", "same")
    write(disk.root / "project", "same")
    write(disk.root / "user", "other")
    assert disk.found("user", "project") == [("other", "user"), ("same", "project")]


def test_the_manifest_reorders_adds_and_switches_off(disk: Disk) -> None:
    for layer in ("project", "user", "system", "listed", "declared"):
        write(disk.root / layer, "same")
        write(disk.root / layer, layer)
    (disk.root / "harn.toml").write_text(
        '[skills]\npaths = ["listed"]\nlookup_order = ["user", "nowhere"]\ndisable = ["system"]\n'
        '[[skill.source]]\ntype = "fs"\npath = "declared"\nnamespace = "ns"\n'
        '[[skill.source]]\ntype = "git"\npath = "x"\n'
    )
    found = disk.found("project", "user", "system")
    assert [pair for pair in found if pair[0] == "same"] == [("same", "manifest"), ("same", "user")]
    names = {name for name, _ in found}
    assert names == {"project", "user", "listed", "declared", "same"}
    assert disk.warnings == [f"{disk.root}/harn.toml: [[skill.source]] of type 'git' can't be read"]


def test_packages_have_skills_of_their_own(disk: Disk) -> None:
    write(disk.root / "package" / "one" / "skills", "a")
    write(disk.root / "package" / "two" / "skills", "b")
    assert disk.found("package") == [("a", "package"), ("b", "package")]


def test_a_directory_may_be_a_skill_itself(disk: Disk) -> None:
    write(disk.root, "user")
    write(disk.root / "user", "below")
    assert disk.found("user") == [("user", "user")]


def test_what_is_unusable_is_left_out(disk: Disk) -> None:
    write(disk.root / "user", "good", "short: x", "odd: 1", "Even: 2")
    write(disk.root / "user", "bad", "name: bad")
    (disk.root / "user" / "empty").mkdir()
    (disk.root / "user" / "bytes").mkdir()
    (disk.root / "user" / "bytes" / "SKILL.md").write_bytes(b"\xff")
    assert disk.found("user", "project") == [("good", "user")]
    bad, broken, unknown = disk.warnings
    reason = "SKILL.md frontmatter requires a non-empty `short` field"
    assert bad == f"{disk.root}/user/bad/SKILL.md: {reason}"
    assert broken == f"{disk.root}/user/bytes/SKILL.md: stream did not contain valid UTF-8"
    assert unknown == "good has unknown frontmatter fields: Even, odd"


def test_a_manifest_that_cannot_be_read_is_a_warning(disk: Disk) -> None:
    (disk.root / "harn.toml").write_text("[skills\n")
    assert disk.found() == []
    assert disk.warnings[0].startswith(f"{disk.root}/harn.toml: ")


def test_the_project_root(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert project_root(str(below), RealFiles()) is None
    (tmp_path / "harn.toml").touch()
    assert project_root(str(below), RealFiles()) == str(tmp_path)


# The command line.


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    write(root / ".harn" / "skills", "local", "short: Local", body="In ${HARN_SKILL_DIR}: $1\n")
    (root / "harn.toml").touch()
    return root


def run(harnpy: Command, program: Path, *options: str, **env: Any) -> Any:
    return harnpy("run", *options, str(program), HOME=str(program.parent / "home"), **env)


def test_a_program_finds_its_skills(harnpy: Command, project: Path, tmp_path: Path) -> None:
    write(tmp_path / "given", "extra", "short: Extra")
    write(tmp_path / "path" / "one", "from-env", "short: Env")
    program = project / "deep" / "main.harn"
    program.parent.mkdir()
    program.write_text(
        'println(skill_list(skills).map({ s -> s.name + " " + s.source }).join(", "))\n'
        'println(skill_find(skills, "local").keys())\n'
        'print(load_skill("local"))\n'
        'print(skill_render(skill_find(skills, "local"), ["x"]))\n'
        'try { load_skill("nope") } catch (e) { println(e) }\n'
    )
    path = f"{tmp_path}/nowhere:{tmp_path}/path/one"
    done = run(harnpy, program, "--skill-dir", str(tmp_path / "given"), HARN_SKILLS_PATH=path)
    where = project / ".harn" / "skills" / "local"
    assert done.stdout.splitlines() == [
        "extra cli, from-env env, local project",
        "[description, name, provenance, short, source]",
        f"In {where}: $1",
        f"In {where}: x",
        "skill 'nope' not found",
    ]
    assert done.stderr == ""


def test_warnings_come_before_the_program(harnpy: Command, project: Path, tmp_path: Path) -> None:
    write(tmp_path / "given", "bad", "name: bad")
    program = project / "main.harn"
    program.write_text('eprintln("program")')
    done = run(harnpy, program, f"--skill-dir={tmp_path}/given", f"--skill-dir={tmp_path}/none")
    assert done.stderr.splitlines() == [
        f"warning: skills: {tmp_path}/given/bad/SKILL.md: "
        "SKILL.md frontmatter requires a non-empty `short` field",
        f"warning: skills: {tmp_path}/none: no skills here",
        "program",
    ]


def test_inline_code_belongs_to_no_project(harnpy: Command, project: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(project)
    done = harnpy("run", "-e", "println(skill_count(skills))", HOME=str(project / "home"))
    assert done.stdout == "0\n"


def test_tests_have_the_skills_too(harnpy: Command, project: Path, tmp_path: Path) -> None:
    write(tmp_path / "given", "extra", "short: Extra")
    program = project / "tests" / "a.harn"
    program.parent.mkdir()
    program.write_text("pipeline test_skills(task) { assert_eq(skill_count(skills), 2) }\n")
    done = harnpy("test", str(program), "--skill-dir", str(tmp_path / "given"), HOME=str(tmp_path / "home"))
    assert done.returncode == 0, done.stdout


def test_an_embedder_who_looked_for_no_skills_has_none_to_load() -> None:
    source = 'println(skill_count(skills))\ntry { load_skill("x") } catch (e) { println(e) }'
    out: list[str] = []
    Vm(World(streams=RealStreams(stdout=out.append))).run_source(source)
    assert "".join(out) == (
        "0\nload_skill: no skill registry is bound to this scope. "
        "Start the VM with discovered skills first.\n"
    )
