"""Tools in a model call where no program can look: the request, its row in the sidecar (07 §1.2, 08 §3.1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.llm.native_tools import native_name, native_tools
from harnpy.world import World
from harnpy.world.streams import RealStreams
from tests.worlds import models_with

TOOLS = [{"name": "look", "description": "Looks.", "parameters": {"at": "string"}, "handler": len}]


def request(**options: Any) -> Any:
    models = models_with()
    return models.request("hi", None, models.options({"provider": "mock", **options}))


@pytest.mark.parametrize("choice", ["auto", "required", {"type": "function", "function": {"name": "look"}}])
def test_the_tool_choice_is_passed_through(choice: Any) -> None:
    assert request(tools=TOOLS, tool_choice=choice).tool_choice == choice


def test_native_tools_are_plain_json_with_their_names() -> None:
    for style in ("openai", "anthropic"):
        (tool,) = native_tools(TOOLS, style)
        assert native_name(json.loads(json.dumps(tool))) == "look"
    assert native_name({"type": "tool_search", "mode": "hosted"}) is None


def test_the_sidecar_has_schemas_count_and_choice(tmp_path: Path) -> None:
    def write(path: str, text: str, append: bool) -> None:
        with open(tmp_path / "rows", "a", encoding="utf-8") as file:
            file.write(text)

    models = models_with({"HARN_LLM_TRANSCRIPT_DIR": str(tmp_path)}, write_text=write)
    options = {"provider": "mock", "tools": TOOLS, "tool_choice": "required"}
    models.ask(models.request("hi", None, models.options(options)))
    rows = {row["type"]: row for row in map(json.loads, (tmp_path / "rows").read_text().splitlines())}
    assert rows["provider_call_request"]["tool_choice"] == "required"
    assert rows["provider_call_request"]["native_tool_count"] == 1
    assert [native_name(tool) for tool in rows["tool_schemas"]["schemas"]] == ["look"]


def test_a_tool_whose_arguments_come_as_one_dict_is_warned_of_once() -> None:
    errors: list[str] = []
    vm = Vm(World(streams=RealStreams(stdout=lambda text: None, stderr=errors.append)))
    vm.run_source(
        """tool fine(a, b) { return a }
        let tools = tool_define(fine, "add", "Add", {parameters: {}, handler: fn(a, b) { return a }})
        for i in 0 to 3 exclusive { agent_loop("x", nil, {provider: "mock", tools: tools}) }"""
    )
    assert errors == [
        "warning: agent.tools: tool 'add' takes (a, b), but a loop calls it with one dict of its arguments: "
        "let it be { args -> … }\n"
    ]
