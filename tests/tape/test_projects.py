"""Programs that need more than their own file: hooks, packages, links, artifacts. Spec: 13 §1, 10 §C19.1."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support import Command

_AGENT = """
let tools = tool_define(tool_registry(), "look", "Looks", {parameters: {}, handler: { _args -> "nothing" }})
llm_mock({text: "", tool_calls: [{name: "look", arguments: {}}]})
llm_mock({text: "done"})
println(agent_loop("Look around", nil, {provider: "mock", tools: tools, max_iterations: 3}).visible_text)
"""
_HOOKS = """
[package]
name = "shop"
[exports]
rules = "inside/rules.harn"
[[hooks]]
event = "PreToolUse"
handler = "rules::before"
[[hooks]]
event = "PostToolUse"
handler = "inside/rules::after"
[[hooks]]
event = "PostToolUse"
handler = "shop::own"
"""
_PACKAGE = {
    ".harn/packages/acme/harn.toml": '[package]\nname = "acme"\n[exports]\nparts = "src/parts.harn"\n',
    ".harn/packages/acme/src/parts.harn": 'pub fn part() { return "a part" }',
    ".harn/packages/acme/lib.harn": 'import "./src/parts"\npub fn all() { return "all of " + part() }',
}
PROJECTS = {
    "hooks": {
        "harn.toml": _HOOKS,
        "p.harn": _AGENT,
        "inside/rules.harn": 'import "./words"\npub fn before(p) { say("before") }\n'
        'pub fn after(p) { say("after") }',
        "inside/words.harn": 'pub fn say(text) { println(text)\nwrite_file("said.txt", text) }',
        "lib.harn": 'pub fn own(p) { println("own") }',
    },
    "packages": {
        **_PACKAGE,
        "p.harn": 'import { part } from "acme/parts"\nimport { all } from "acme"\n'
        'println("${part()} ${all()}")',
    },
    "links": {
        "real/counted.harn": "let counts = [1]\npub fn one() { return counts }\n"
        "pub fn two() { return counts }",
        "p.harn": 'import { one } from "linked/counted"\nimport { two } from "./real/../direct"\n'
        "println(one())\nprintln(two())",
    },
}


@pytest.fixture(autouse=True)
def _trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARN_TRUST", "1")


@pytest.mark.parametrize("name", PROJECTS)
def test_all_that_a_program_needs_is_on_its_tape(harnpy: Command, tmp_path: Path, name: str) -> None:
    for path, text in PROJECTS[name].items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    if name == "links":
        (tmp_path / "linked").symlink_to("real")
        (tmp_path / "direct.harn").symlink_to("real/counted.harn")
    plain = harnpy("run", "p.harn")
    recorded = harnpy("run", "--record", "run.tape", "p.harn")
    durable = harnpy("run", "--durable", "p.harn")
    assert (recorded.stdout, recorded.stderr, recorded.returncode) == (plain.stdout, "", 0)
    assert (durable.stdout, durable.returncode) == (plain.stdout, 0)
    own = harnpy("replay", "run.tape", "p.harn")
    assert (own.stdout, own.stderr) == (plain.stdout, "")
    for path in tmp_path.iterdir():
        if path.name != "run.tape":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    replayed = harnpy("replay", "run.tape")
    assert (replayed.stdout, replayed.stderr, replayed.returncode) == (plain.stdout, "", 0)
    assert [path.name for path in tmp_path.iterdir()] == ["run.tape"]


def test_a_hook_that_was_edited_is_among_what_was(harnpy: Command, tmp_path: Path) -> None:
    (tmp_path / "harn.toml").write_text('[[hooks]]\nevent = "PreToolUse"\nhandler = "rules::before"\n')
    (tmp_path / "p.harn").write_text(_AGENT)
    (tmp_path / "rules.harn").write_text('pub fn before(p) { write_file("said.txt", "before") }')
    assert harnpy("run", "--record", "run.tape", "p.harn").returncode == 0
    (tmp_path / "rules.harn").write_text('pub fn before(p) { write_file("said.txt", "later") }')
    replayed = harnpy("replay", "run.tape", "p.harn")
    assert "at rules.harn:1:" in replayed.stderr
    assert replayed.stderr.endswith("; edited: rules.harn:1\n")


def test_a_hook_that_prints_something_else_is_said(harnpy: Command, tmp_path: Path) -> None:
    (tmp_path / "harn.toml").write_text('[[hooks]]\nevent = "PreToolUse"\nhandler = "rules::before"\n')
    (tmp_path / "p.harn").write_text(_AGENT)
    (tmp_path / "rules.harn").write_text('pub fn before(p) { println("before") }')
    assert harnpy("run", "--record", "run.tape", "p.harn").returncode == 0
    (tmp_path / "rules.harn").write_text('pub fn before(p) { println("behind") }')
    said = harnpy("replay", "run.tape", "p.harn").stderr
    assert 'it prints something else: recorded were 7 characters, now "behind\\n"; edited:' in said


_STORED = 'import "std/session"\nsession_store("sqlite:s.db")\n'


def test_bodies_of_artifacts_are_on_the_tape(harnpy: Command, tmp_path: Path) -> None:
    (tmp_path / "first.harn").write_text(
        f'{_STORED}session_create({{id: "s"}})\nsession_artifact_put("s", {{id: "a"}}, "from before")'
    )
    (tmp_path / "p.harn").write_text(
        f"""{_STORED}println(bytes_to_string(session_artifact_read("s", "a").body))
println(session_artifact_put("s", {{}}, "new").id)
println(try {{ session_artifact_read("s", "none") }} catch (e) {{ e.category }})"""
    )
    harnpy("run", "first.harn")
    recorded = harnpy("run", "--record", "run.tape", "p.harn")
    assert recorded.stdout.startswith("from before\n")
    assert recorded.stdout.endswith("not_found\n")
    for path in tmp_path.glob("s.db*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    replayed = harnpy("replay", "run.tape")
    assert (replayed.stdout, replayed.stderr) == (recorded.stdout, "")
    assert [*tmp_path.glob("s.db*")] == []


def test_a_replay_that_differs_closes_its_sessions_in_peace(harnpy: Command, tmp_path: Path) -> None:
    program = tmp_path / "p.harn"
    program.write_text(f'{_STORED}session_create({{id: "s"}})\nwrite_file("f", "1")')
    harnpy("run", "--record", "run.tape", "p.harn")
    program.write_text(program.read_text().replace('"1"', '"2"'))
    assert harnpy("replay", "run.tape", "p.harn").stderr.count("\n") == 1
