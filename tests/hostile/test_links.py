"""Links by which a directory would have what is kept written elsewhere. Spec: 09 §12.1."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from subprocess import CompletedProcess

import pytest

from harnpy import Vm
from harnpy.cli.console import one_line
from harnpy.formats.manifest import Manifest
from harnpy.project import ManifestError
from harnpy.world.files import RealFiles
from tests.forked import Forks
from tests.support import PATIENCE, ROOT, Command

At = Callable[..., CompletedProcess[str]]

SESSION = 'agent_session_open("a", {store: true})'
WORKFLOW = """let nodes = {a: {model_policy: {provider: "mock"}}}
let flow = workflow_graph({entry: "a", nodes: nodes, edges: []})
llm_mock({text: "x"})
workflow_execute("go", flow)"""
WORKER = """let w = spawn_agent({task: "hi", node: {kind: "stage", model_policy: {provider: "mock"}}})
wait_agent(w)"""
#: What keeps something, with the link that it would be kept behind.
KEPT = [
    (".harn", 'store_set("a", 1)'),
    (".harn/memory/ns", 'import "std/memory"\nmemory_store("ns", "k", "v")'),
    (".harn/workflows/orders", 'workflow.signal("orders", "a", {})'),
    (".harn/checkpoints", 'checkpoint("a", 1)'),
    (".harn/sessions.db-artifacts/00", SESSION),
    (".harn/workers", WORKER),
    (".harn-runs", WORKFLOW),
]


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory beside the project, which is the working directory."""
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "HARN_SESSION_STORE", "HARN_STATE_DIR", "HARN_RUN_DIR"):
        monkeypatch.delenv(name, raising=False)
    return outside


@pytest.fixture
def at(forks: Callable[[], Forks], outside: Path) -> At:
    """Run `harnpy WORDS` in a directory."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return lambda place, *words: forks().run(list(words), "", place, environment, PATIENCE)


@pytest.mark.parametrize(("link", "program"), KEPT)
def test_a_program_keeps_nothing_behind_a_link(link: str, program: str, outside: Path) -> None:
    Path(link).parent.mkdir(parents=True, exist_ok=True)
    Path(link).symlink_to(outside)
    with pytest.raises(ManifestError, match=f"{link} takes effect only once you trust the project"):
        Vm().run_source(program)
    assert not list(outside.iterdir())


@pytest.mark.parametrize(("link", "program"), KEPT[1:3])
@pytest.mark.usefixtures("trusted")
def test_it_does_where_the_user_trusts_it(link: str, program: str, outside: Path) -> None:
    Path(link).parent.mkdir(parents=True)
    Path(link).symlink_to(outside)
    Vm().run_source(program)
    assert list(outside.iterdir())


@pytest.mark.parametrize("link", [".harn", ".harn-runs", ".harn/memory/ns"])
def test_a_link_in_a_directory_of_the_project_needs_a_decision_of_its_own(
    at: At, link: str, outside: Path
) -> None:
    below = Path.cwd() / "below"
    (below / link).parent.mkdir(parents=True)
    (below / link).symlink_to(outside)
    Path("harn.toml").touch()
    (below / "main.harn").write_text(f"{WORKFLOW}\n{WORKER}\n")
    refused = at(below, "run", "main.harn")
    assert refused.returncode == 1
    assert f"look at {below / link}, and run `harnpy trust {below}`" in refused.stderr
    assert not list(outside.iterdir())
    assert at(below.parent, "trust", "below").stdout == f'{link} = "{outside}"\ntrusted: {below}\n'
    assert at(below, "run", "main.harn").returncode == 0
    assert at(below, "trust", "--revoke").stdout == f"{below} is not trusted any more\n"


def test_a_store_named_like_one_in_memory_is_in_the_project(outside: Path, tmp_path: Path) -> None:
    below = Path.cwd() / "below"
    below.mkdir()
    (below / ":x").symlink_to(outside)
    Path("harn.toml").write_text('[sessions]\nstore = "sqlite::x/a.db"\n')
    os.chdir(below)
    Vm().run_source(SESSION)
    assert not list(outside.iterdir())
    assert (below.parent / ":x/a.db").exists()


def test_another_place_behind_a_link_needs_another_decision(harnpy: Command, outside: Path) -> None:
    Path("data").symlink_to(outside)
    Path("harn.toml").write_text('[skills]\npaths = ["data"]\n')
    project = Path.cwd()
    shown = harnpy("trust", str(project)).stdout
    assert shown == f'skills.paths.0 = "data"\ndata = "{outside}"\ntrusted: {project}\n'
    Path("data").unlink()
    Path("data").symlink_to(outside.parent)
    assert harnpy("trust", "--list").stdout == f"{project} (has changed)\n"


def test_what_is_decided_is_shown_as_it_is(harnpy: Command, outside: Path) -> None:
    name, host = "\u043epenai", "http://ex\u0430mple.test/\u202egnp"
    Path("harn.toml").write_text(f'[llm]\n"a\\nb" = 1\n[llm.providers."{name}"]\nbase_url = "{host}"\n')
    lines = harnpy("trust", str(Path.cwd())).stdout.splitlines()
    assert lines[:-1] == [
        r'llm."a\nb" = 1',
        r'llm.providers = {"\u043epenai":{"base_url":"http://ex\u0430mple.test/\u202egnp"}}',
    ]


def test_the_directory_is_named_where_another_one_is_meant(at: At, outside: Path) -> None:
    project = Path.cwd() / "a shop"
    project.mkdir()
    (project / "harn.toml").write_text('[[mcp]]\nname = "shop"\ncommand = "touch"\n')
    (project / "main.harn").touch()
    from_elsewhere = at(outside, "run", str(project / "main.harn")).stderr
    assert f"and run `harnpy trust {quote(str(project))}`; in CI" in from_elsewhere
    assert "and run `harnpy trust`; in CI" in at(project, "run", "main.harn").stderr
    at(project, "trust")
    project.rename("moved")
    assert at(outside, "trust", "--list").stdout == f"{project} (is gone)\n"
    assert at(outside, "trust", "--revoke", str(project)).stdout == f"{project} is not trusted any more\n"
    assert at(outside, "trust", str(project)).returncode == 2


def test_a_home_that_takes_no_directory_is_a_plain_error(harnpy: Command, outside: Path) -> None:
    Path("harn.toml").write_text('[[hooks]]\nevent = "PreAgentTurn"\n')
    done = harnpy("trust", str(Path.cwd()), HOME="/proc")
    assert done.returncode == 1
    assert done.stderr.startswith("error: /proc/")


def test_a_long_list_of_parts_is_cut(outside: Path) -> None:
    Path(".harn").mkdir()
    for number in range(9):
        Path(f".harn/{number}").symlink_to(outside)
    refusal = Manifest(RealFiles(), str(Path.cwd())).refusal()
    assert refusal is not None
    assert ".harn/5 and 3 more take effect" in refusal.message


@pytest.mark.parametrize("pipe", ["harn.toml", ".harn/skills/gift/SKILL.md"])
@pytest.mark.parametrize("command", [["run", "main.harn"], ["trust"], ["check", "main.harn"]])
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(
    harnpy: Command, pipe: str, command: list[str], tmp_path: Path
) -> None:
    (tmp_path / pipe).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / pipe)
    (tmp_path / "main.harn").write_text('let model = llm_resolve_model("mock")\n')
    assert harnpy(*command).returncode == 0


def test_nothing_that_is_stored_turns_the_rest_of_its_line_around() -> None:
    shown = one_line("a\u202eb\u2028c\x1b[2J \u05e9 \u200d\n")
    assert shown == "a\\u202eb\\u2028c\u241b[2J \u05e9 \u200d "
