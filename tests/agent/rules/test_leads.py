"""The paths of an allowed call must lead where they led when they are used (07 §8.6)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.agent.rules.policy_paths import Lead, Lexical, Noting, Paths
from tests.worlds import world_with

RULES = {
    "constraint": (
        'policy: {tool_arg_constraints: [{tool: "look", arg_key: "path", arg_patterns: ["src/*"]}]}'
    ),
    "allowlist": (
        'policy: {tool_annotations: {look: {kind: "edit", path_params: ["path"]}}}, '
        'approval_policy: {write_path_allowlist: ["src/*"]}'
    ),
    "permission": 'permissions: {allow: {look: {arg_key: "path", patterns: ["src/*"]}}}',
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for directory in ("src/d", "out"):
        (tmp_path / directory).mkdir(parents=True)
        (tmp_path / directory / "f").write_text(directory)
    return Path(os.path.realpath(tmp_path))


def result(tree: Path, rules: str, path: str, handler: str, swap: str) -> str:
    """What the handler of a call returned, which was allowed before ``swap`` was run in the shell."""
    program = f"""
    let look = {{ args ->
      shell("{swap}")
      println(try {{ {handler} }} catch (e) {{ "${{e}}" }})
    }}
    let reg = tool_define(tool_registry(), "look", "Looks.", {{parameters: {{}}, handler: look}})
    llm_mock({{tool_calls: [{{name: "look", arguments: {{path: "{path}"}}}}]}})
    llm_mock({{text: "done"}})
    agent_loop("go", nil, {{provider: "mock", tools: reg, {rules}}})
    """
    printed: list[str] = []
    Vm(world_with(cwd=lambda: str(tree), write_out=printed.append)).run_source(program, directory=str(tree))
    return "".join(printed).strip()


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize(("path", "used"), [("src/d/f", ""), ("src/d", "/f"), ("./src/../src/d/", "f")])
def test_a_link_that_was_swapped_in_is_refused(rules: str, path: str, used: str, tree: Path) -> None:
    swap = f"rm -r {tree}/src/d; ln -s ../out {tree}/src/d"
    for handler in (f'render(args.path + "{used}")', f'render("{tree}/src/d/f")'):
        assert result(tree, RULES[rules], path, handler, "true") == "src/d"
        end = "" if used else "/f"
        refused = result(tree, RULES[rules], path, handler, swap)
        assert f"led to '{tree}/src/d{end}' when the call was allowed, now to '{tree}/out/f'" in refused
        os.remove(tree / "src/d")
        (tree / "src/d").mkdir()
        (tree / "src/d/f").write_text("src/d")


def test_other_files_are_no_paths_of_the_call(tree: Path) -> None:
    handler = 'render("out/f")'
    assert result(tree, RULES["constraint"], "src/d/f", handler, f"rm -r {tree}/src/d") == "out"


def test_leads_are_noted_in_each_form() -> None:
    class Linked(Lexical):
        def real_base(self) -> str:
            return "/real"

    noting = Noting(Linked("/linked"))
    Paths(noting).match(["src/*"], "src/../a")
    assert set(noting.leads()) == {Lead("/linked/a", "/linked/a"), Lead("/real/a", "/linked/a")}


@pytest.mark.parametrize(
    ("named", "real", "refused"),
    [
        ("/w/src/a", "/w/src/a", False),
        ("/w/src/a/b", "/w/src/a/b", False),
        ("/w/src/a/b", "/w/b", True),
        ("/w/src/ab", "/etc", False),
        ("/w/src", "/etc", False),
    ],
)
def test_what_leaves_a_lead(named: str, real: str, refused: bool) -> None:
    assert (Lead("/w/src/a", "/w/src/a").left_by(named, real) is not None) is refused
