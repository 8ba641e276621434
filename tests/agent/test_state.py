"""Durable agent state on a real file system. Spec: 06 §19."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm, VmError
from harnpy.agent.context import Rules
from harnpy.agent.rules.policy import read_policy
from harnpy.builtins.bridge.contexts import context_of
from harnpy.world import World
from harnpy.world.streams import RealStreams

PRELUDE = """
let h = __agent_state_init(argv[0], {session_id: "s", writer_id: "a"})
let other = __agent_state_resume(argv[0], "s", {writer_id: "b", conflict_policy: argv[1] ?? "ignore"})
"""


def run(root: Path, program: str, policy: str = "ignore", host: World | None = None) -> Any:
    return Vm(host).run_source(PRELUDE + program, args=[str(root), policy])


def test_a_handle_says_what_and_whose_it_is(tmp_path: Path) -> None:
    assert run(tmp_path, "return h") == {
        "_type": "state_handle",
        "backend": "filesystem",
        "root": str(tmp_path),
        "session_id": "s",
        "handoff_key": "__handoff.json",
        "conflict_policy": "ignore",
        "writer": {"writer_id": "a", "stage_id": None, "session_id": "s", "worker_id": None},
    }
    assert (tmp_path / "s").is_dir()


@pytest.mark.parametrize(
    ("options", "writer"),
    [
        ("{worker_id: 'w', stage_id: 'st'}", "w"),
        ("{stage_id: 'st'}", "st"),
        ("{}", "s2"),
    ],
)
def test_the_writer_is_the_worker_else_the_stage_else_the_session(
    tmp_path: Path, options: str, writer: str
) -> None:
    more = options.replace("'", '"').replace("{", '{session_id: "s2", ', 1)
    assert run(tmp_path, f"return __agent_state_init(argv[0], {more}).writer.writer_id") == writer


def test_a_session_without_an_id_gets_one(tmp_path: Path) -> None:
    made = run(
        tmp_path, "return [__agent_state_init(argv[0]).session_id, __agent_state_init(argv[0]).session_id]"
    )
    assert made[0] != made[1]
    assert all((tmp_path / id).is_dir() for id in made)


def test_keys_are_written_listed_read_and_deleted(tmp_path: Path) -> None:
    program = """
    __agent_state_write(h, "b/two.md", "2")
    __agent_state_write(h, "a.md", "é\\n")
    __agent_state_write(h, "b/./one.md", "")
    let all = __agent_state_list(other)
    __agent_state_delete(h, "b/two.md")
    __agent_state_delete(h, "b/one.md")
    __agent_state_delete(h, "never/was")
    return [all, __agent_state_read(other, "a.md"), __agent_state_read(h, "b/two.md"), __agent_state_list(h)]
    """
    assert run(tmp_path, program) == [["a.md", "b/one.md", "b/two.md"], "é\n", None, ["a.md"]]
    assert (tmp_path / "s" / "a.md").read_text(encoding="utf-8") == "é\n"
    assert not (tmp_path / "s" / "b").exists()


def test_another_writer_is_refused_or_warned_of(tmp_path: Path) -> None:
    program = """
    __agent_state_write(h, "k", "mine")
    let problem = try { __agent_state_write(other, "k", "theirs") } catch (e) { e }
    return [problem, __agent_state_read(h, "k")]
    """
    sentence = "key 'k' was previously written by 'a' and is now being written by 'b'"
    refused = f"Runtime error: agent_state.write: {sentence}"
    assert run(tmp_path / "1", program, "error") == [refused, "mine"]
    assert run(tmp_path / "2", program, "strict") == [refused, "mine"]
    said: list[str] = []
    assert run(tmp_path / "3", program, "warn", World(streams=RealStreams(stderr=said.append))) == [
        None,
        "theirs",
    ]
    assert said == [f"warning: agent_state.write: {sentence}\n"]
    assert run(tmp_path / "4", program, "off") == [None, "theirs"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('__agent_state_write(h, "", "x")', "agent_state: key must be a non-empty relative path"),
        ('__agent_state_write(h, " ", "x")', "agent_state: key must be a non-empty relative path"),
        ("__agent_state_read(h)", "agent_state: key must be a non-empty relative path"),
        ('__agent_state_read(h, "/etc/passwd")', "agent_state: key '/etc/passwd' must be relative"),
        (
            '__agent_state_read(h, "a/../../b")',
            "agent_state: key 'a/../../b' must not escape the session root",
        ),
        (
            '__agent_state_read(h, "a/.agent_state_meta/b")',
            "agent_state: key 'a/.agent_state_meta/b' uses a reserved internal path",
        ),
        (
            '__agent_state_write(h, "k.agent_state_tmp", "x")',
            "agent_state: key 'k.agent_state_tmp' uses a reserved internal path",
        ),
        (
            '__agent_state_init(argv[0], {conflict_policy: "odd"})',
            "agent_state: unknown conflict policy 'odd'",
        ),
        ('__agent_state_resume("ROOT", "gone")', "agent_state.resume: session 'gone' not found under ROOT"),
        ('__agent_state_write({}, 1, "")', "__agent_state_write: `handle` must be a state_handle dict"),
        ("__agent_state_list()", "__agent_state_list: `handle` must be a state_handle dict"),
        ('__agent_state_init("")', "__agent_state_init: `root` must be a non-empty string"),
        ("__agent_state_resume(argv[0])", "__agent_state_resume: `session_id` must be a non-empty string"),
        ('__agent_state_handoff(h, "x")', "__agent_state_handoff: `summary` must be a JSON object"),
    ],
)
def test_what_is_refused(tmp_path: Path, call: str, message: str) -> None:
    root = str(tmp_path)
    with pytest.raises(VmError) as refused:
        run(tmp_path, call.replace("ROOT", root))
    assert refused.value.text.partition(" (line ")[0] == "Runtime error: " + message.replace("ROOT", root)


def test_a_handoff_is_left_under_the_reserved_key(tmp_path: Path) -> None:
    summary = '{source_persona: "p", target_persona_or_human: {id: "q"}, task: "t", reason: "r"}'
    run(tmp_path, f"__agent_state_handoff(h, {summary})\n__agent_state_handoff_key()")
    text = (tmp_path / "s" / "__handoff.json").read_text()
    left = json.loads(text)
    assert text.startswith('{\n  "_type": "agent_state_handoff",\n')
    assert (left["version"], left["session_id"], left["key"]) == (1, "s", "__handoff.json")
    assert left["handoff"]["_type"] == "handoff_artifact"
    assert left["summary"]["task"] == "t"
    assert left["writer"]["writer_id"] == "a"
    assert isinstance(left["written_at"], int)
    run(tmp_path, "__agent_state_handoff(h, {note: 1})")
    assert json.loads((tmp_path / "s" / "__handoff.json").read_text())["handoff"] is None


def test_a_policy_without_the_capability_refuses_it(tmp_path: Path) -> None:
    vm = Vm()
    with context_of(vm).govern(Rules(policy=read_policy({"capabilities": {"agent_state": ["access"]}}))):
        assert vm.run_source(PRELUDE + "return __agent_state_list(h)", args=[str(tmp_path)]) == []
    rules = Rules(policy=read_policy({"capabilities": {"workspace": ["list"]}}))
    with context_of(vm).govern(rules), pytest.raises(VmError) as error:
        vm.run_source("__agent_state_init(argv[0])", args=[str(tmp_path)])
    reason = "builtin '__agent_state_init' exceeds agent_state.access ceiling"
    assert str(error.value) == f"Error [tool_rejected]: {reason}"
