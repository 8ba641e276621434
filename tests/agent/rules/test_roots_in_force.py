"""Roots are in force for every file that a program reads, wherever their policy comes from (04 §19)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harnpy import Vm
from tests.worlds import world_with

TOOL = """
let reg = tool_define(tool_registry(), "look", "Looks.", {parameters: {path: "string"}, handler: { args ->
  try { render(args.path) } catch (e) { "${e}" }
}})
fn looks(path) {
  llm_mock({tool_calls: [{name: "look", arguments: {path: path}}]})
  llm_mock({text: "done"})
}
fn run_graph(g) {
  workflow_execute("go", g, nil, {provider: "mock"})
}
fn seen() {
  for m in llm_mock_calls()[1].messages {
    if to_string(m.content).contains("[result of look]") || m.role == "tool" { println(m.content) }
  }
}
"""

ROOTED = '{workspace_roots: ["in"]}'
OPTIONS = f'{{provider: "mock", tools: reg, policy: {ROOTED}}}'
WAYS = {
    "loop": f'agent_loop("go", nil, {OPTIONS})',
    "sub-agent": f'sub_agent_run("go", {OPTIONS})',
    "workflow": f"run_graph({{capability_policy: {ROOTED}, nodes: {{a: {{tools: reg}}}}}})",
    "stage": f"run_graph({{nodes: {{a: {{tools: reg, capability_policy: {ROOTED}}}}}}})",
    "worker": """wait_agent(spawn_agent({
        task: "go", policy: {workspace_roots: ["."]}, execution: {cwd: "in"},
        node: {kind: "stage", mode: "agent", tools: reg, model_policy: {provider: "mock"}},
    }))""",
}
PATHS = [("in/a", True), ("b", False), ("in/link", False), ("in/../b", False)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("inside")
    (tmp_path / "b").write_text("outside")
    (tmp_path / "in" / "link").symlink_to("../b")
    return Path(os.path.realpath(tmp_path))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("path", "inside"), PATHS)
def test_what_is_outside_is_not_read(way: str, path: str, inside: bool, tree: Path) -> None:
    printed: list[str] = []
    world = world_with(cwd=lambda: str(tree), write_out=printed.append)
    Vm(world).run_source(f'{TOOL}\nlooks("{tree}/{path}")\n{WAYS[way]}\nseen()', directory=str(tree))
    text = "".join(printed)
    refused = f"sandbox violation: attempted to read '{tree}/b' outside workspace_roots [{tree}/in]"
    assert ("inside" in text, "outside\n" in text, refused in text) == (inside, False, not inside)
