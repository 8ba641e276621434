"""The hooks of harn.toml at the command line: who installs them, what it says when it can't. Spec: 07 §8.4.

What they do is in conformance/agents/manifest_hooks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.builtins.agents.tool_runtime import hooks_of
from harnpy.cli.project_setup import bind_project
from harnpy.project import ManifestError
from harnpy.world import World
from harnpy.world.streams import RealStreams
from tests.support import Command

CALL = """
  llm_mock({tool_calls: [{name: "write", arguments: {}}]})
  let tools = tool_define(tool_registry(), "write", "", {parameters: {}, handler: { args -> "ok" }})
  let r = agent_loop("go", nil, {provider: "mock", tools: tools, max_iterations: 1})
"""
SHOW = CALL + "println(r.tools.rejected)\n"
HOOK = '[[hooks]]\nevent = "PreToolUse"\nhandler = "rules::refuse"\n'
RULES = 'pub fn refuse(call) { return {deny: "no"} }\n'

pytestmark = pytest.mark.usefixtures("trusted")

Write = Callable[[str, str], str]


@pytest.fixture
def project(write: Write) -> None:
    write("harn.toml", HOOK)
    write("rules.harn", RULES)


# Who installs them.


@pytest.mark.parametrize("place", ["main.harn", "deep/below/main.harn"])
@pytest.mark.usefixtures("project")
def test_run_installs_them(harnpy: Command, write: Write, place: str) -> None:
    assert harnpy("run", write(place, SHOW)).stdout == "[write]\n"


@pytest.mark.usefixtures("project")
def test_the_project_is_the_programs_not_the_shells(
    harnpy: Command, write: Write, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stranger = tmp_path_factory.mktemp("elsewhere") / "main.harn"
    stranger.write_text(SHOW, encoding="utf-8")
    assert harnpy("run", str(stranger)).stdout == "[]\n"


def test_a_path_that_goes_up_leaves_the_project(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("inner/harn.toml", HOOK)
    monkeypatch.chdir(tmp_path / "inner")
    for path, hooked in [("main.harn", True), ("../other/main.harn", False)]:
        vm = Vm()
        bind_project(vm, path)
        assert bool(vm.on_start) is hooked


@pytest.mark.usefixtures("project")
def test_a_program_on_stdin_stands_here(harnpy: Command) -> None:
    assert harnpy("run", "-", stdin=SHOW).stdout == "[write]\n"


@pytest.mark.usefixtures("project")
def test_code_without_a_file_belongs_to_no_project(harnpy: Command) -> None:
    assert harnpy("run", "-e", SHOW).stdout == "[]\n"


@pytest.mark.usefixtures("project")
def test_user_tests_have_them(harnpy: Command, write: Write) -> None:
    write("tests/a.harn", f'pipeline test_hook() {{ {CALL} assert_eq(r.tools.rejected, ["write"]) }}\n')
    write("tests/b.harn", f'pipeline test_again() {{ {CALL} assert_eq(r.tools.rejected, ["write"]) }}\n')
    done = harnpy("test")
    assert done.stdout.splitlines()[-1].startswith("2 passed, 2 total")


@pytest.mark.usefixtures("project")
def test_the_repl_has_those_of_where_it_stands(harnpy: Command) -> None:
    assert harnpy("repl", stdin=SHOW).stdout == "nil\n[write]\n"
    assert harnpy("repl", stdin=f":reset\n{SHOW}").stdout == "nil\n[write]\n"


def test_those_of_installed_packages_stay_out(harnpy: Command, write: Write) -> None:
    write("harn.toml", '[package]\nname = "hooks"\n')
    write(".harn/packages/acme/harn.toml", HOOK)
    write(".harn/packages/acme/rules.harn", RULES)
    write(".harn/packages/acme/lib.harn", "pub fn one() { return 1 }\n")
    assert harnpy("run", write("main.harn", f'import "acme"\nprintln(one())\n{SHOW}')).stdout == "1\n[]\n"


@pytest.mark.usefixtures("project")
def test_those_of_an_embedder_come_first(tmp_path: Path) -> None:
    vm = Vm()
    bind_project(vm, str(tmp_path / "main.harn"))
    vm.hook("PreToolUse", lambda call: {"deny": "embedder"}, "write")
    for _ in range(2):
        vm.run_source("1")
        assert hooks_of(vm).before("write", {}).denial == "embedder"
        assert hooks_of(vm).before("other", {}).denial == "no"


def test_what_is_denied_to_the_program_is_denied_to_their_modules(harnpy: Command, write: Write) -> None:
    write("harn.toml", HOOK)
    write("rules.harn", f"let least = min(1, 2)\n{RULES}")
    done = harnpy("run", "--deny", "min", write("main.harn", "println(1)"))
    assert done.stdout == ""
    assert "Error [tool_rejected]: Tool 'min' is not permitted." in done.stderr


# What it says when it can't.


def refused(harnpy: Command, program: str) -> str:
    """What a program that does not start says."""
    done = harnpy("run", program)
    assert (done.stdout, done.returncode) == ("", 1)
    return str(done.stderr)


def refusal(tmp_path: Path, message: str, help: str) -> str:
    return (
        f"error: failed to install manifest hooks: {message}\n  --> {tmp_path}/harn.toml\n  = help: {help}\n"
    )


def test_a_refusal_says_where_and_what_to_do(harnpy: Command, tmp_path: Path, write: Write) -> None:
    write("harn.toml", HOOK)
    write("rules.harn", "pub fn other(call) { return nil }\n")
    assert refused(harnpy, write("deep/main.harn", "println(1)")) == refusal(
        tmp_path,
        "hook handler 'refuse' is not exported by module 'rules'",
        f"declare `pub fn refuse(payload)` in {tmp_path}/rules.harn",
    )


def test_a_module_that_fails_is_named_with_the_place(harnpy: Command, tmp_path: Path, write: Write) -> None:
    write("harn.toml", HOOK)
    write("rules.harn", f"let a = 1\nlet sum = [a] + 2\n{RULES}")
    assert refused(harnpy, write("main.harn", "println(1)")) == refusal(
        tmp_path,
        "Type error: Cannot add list and int (line 2)",
        f"the handler 'rules::refuse' needs rules to load; it fails at {tmp_path}/rules.harn:2:11",
    )


def test_the_programs_own_errors_come_first(harnpy: Command, write: Write) -> None:
    write("harn.toml", HOOK)
    done = harnpy("run", write("main.harn", "println(nothing())"))
    assert done.returncode == 1
    assert "nothing" in done.stderr
    assert "hooks" not in done.stderr


def test_every_test_of_the_project_fails(harnpy: Command, write: Write) -> None:
    write("harn.toml", HOOK)
    write("tests/a.harn", "pipeline test_a() { assert(true) }\n")
    done = harnpy("test")
    assert done.returncode == 1
    assert "        error: failed to install manifest hooks: Runtime error: Import error:" in done.stdout


def test_the_repl_does_not_start(harnpy: Command, write: Write) -> None:
    write("harn.toml", '[[hooks]]\nevent = "PreToolUse"\nhandler = "rules"\n')
    done = harnpy("repl", stdin="1 + 1\n")
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr.startswith("error: failed to install manifest hooks: invalid hook handler 'rules'")


def test_a_module_that_leaves_ends_the_repl(harnpy: Command, write: Write) -> None:
    write("harn.toml", HOOK)
    write("rules.harn", f"let gone = exit(3)\n{RULES}")
    assert harnpy("repl", stdin="1 + 1\n").returncode == 3


def test_a_manifest_that_can_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "harn.toml").write_bytes(b"hooks \xff")
    vm = Vm(World(streams=RealStreams(stderr=lambda text: None)))
    bind_project(vm, str(tmp_path / "main.harn"))
    with pytest.raises(ManifestError, match="hooks: stream did not contain valid UTF-8"):
        vm.run_source("1")


def test_a_manifest_without_the_word_is_not_asked(harnpy: Command, write: Write) -> None:
    write("harn.toml", "[package\n")
    assert harnpy("run", write("main.harn", "println(1)")).stdout == "1\n"
