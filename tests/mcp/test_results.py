"""What programs and models get of a tool's result. Spec: 07 §15.1, §6.7."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.agent.rules.hooks import hook
from harnpy.builtins import settings_of
from harnpy.formats.json import parse_json
from harnpy.mcp.client import Client
from harnpy.mcp.server_spec import ToolError
from harnpy.mcp.tool_results import read_answer
from tests.mcp.programs import output
from tests.mcp.test_client import failure, using
from tests.worlds import OwnWorld

CONTENTS = (sys.executable, str(Path(__file__).parent / "servers" / "contents.py"))
PIXEL = "iVBORyBwaXhlbA=="
IMAGE = {"type": "image", "base64": PIXEL, "media_type": "image/png"}
#: The title by which the official SDK's schema tells that it has wrapped a result.
WRAPPED = {"title": "fOutput", "type": "object", "properties": {"result": {}}, "required": ["result"]}


def text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize("version", [None, "2025-11-25"])
def test_the_sdks_results_are_the_values_of_its_tools(version: str | None) -> None:
    async def use(client: Client) -> Any:
        async def value(tool: str, **arguments: Any) -> Any:
            return await client.call(tool, arguments)

        return [
            [await value("numbers", n=n) for n in range(3)],
            await value("shelf"),
            await value("found"),
            await value("maybe"),
            await value("word"),
            await value("lines"),
            await value("stock.word/2-x_" + "y" * 80),
            await value("picture"),
        ]

    assert using(use, *CONTENTS, version=version) == [
        [[], [0], [0, 1]],
        {"shelf": "A3", "nails": 40},
        {"result": [1]},
        None,
        "nails",
        "one\ntwo",
        "odd",
        [{"type": "image", "data": PIXEL, "mimeType": "image/png"}],
    ]


SERVED = """
pub fn numbers(n: int) -> list<int> { return range(0, n).to_list() }
pub fn shelf() -> {shelf: string, nails: int} { return {shelf: "A3", nails: 40} }
pub fn fails() -> int { throw "it broke" }
pub fn counts() -> string {
  for step in [1, 2, 3] { progress("count", "step ${step}", step, 3) }
  return "counted"
}
"""


@pytest.mark.parametrize("version", [None, "2025-11-25"])
def test_the_results_of_our_own_server(tmp_path: Path, version: str | None) -> None:
    file = tmp_path / "served.harn"
    file.write_text(SERVED, encoding="utf-8")

    async def use(client: Client) -> Any:
        notes: list[Any] = []
        return [
            [await client.call("numbers", {"n": n}) for n in range(3)],
            await client.call("shelf", {}),
            await failure(client.call("fails", {})),
            await client.call("counts", {}, lambda *note: notes.append(note)),
            [note[:2] for note in notes],
        ]

    command = (sys.executable, "-m", "harnpy", "mcp", "serve", str(file))
    assert using(use, *command, version=version) == [
        [[], [0], [0, 1]],
        {"shelf": "A3", "nails": 40},
        (ToolError, "it broke"),
        "counted",
        [(1, 3), (2, 3), (3, 3)],
    ]


def test_a_model_reads_texts_and_images() -> None:
    async def use(client: Client) -> Any:
        names = ("numbers", "shelf", "page", "others")
        return [(await client.answer(name, {"n": 2})).blocks for name in names]

    numbers, shelf, page, others = using(use, *CONTENTS)
    assert numbers == [text("[0,1]")]
    assert [parse_json(block["text"]) for block in shelf] == [{"shelf": "A3", "nails": 40}]
    assert page == [text("before"), IMAGE, text("after")]
    assert others == [
        text("[audio: audio/wav, 3 bytes, left out]"),
        text("[resource: manual, file:///m.pdf, How to]"),
        text("[resource: file:///a.txt]\nA"),
        text("[resource: file:///a.zip, application/zip, 3 bytes, left out]"),
        IMAGE,
    ]


@pytest.mark.parametrize(
    ("result", "schema", "value"),
    [
        ({"structuredContent": {"bolts": 4}}, None, {"bolts": 4}),
        ({"content": [], "structuredContent": {"bolts": 4}}, WRAPPED, {"bolts": 4}),
        ({"content": [text("4")], "structuredContent": {"result": 4}}, WRAPPED, 4),
        ({"content": [text("4")], "structuredContent": {"result": 4}}, None, {"result": 4}),
        ({"structuredContent": {"result": 4}}, {"x-fastmcp-wrap-result": True}, 4),
        ({"structuredContent": {"result": 4, "unit": "kg"}}, {"x-fastmcp-wrap-result": True}, None),
        ({"content": [text('{"result": 4}')], "structuredContent": {"result": 4}}, WRAPPED, {"result": 4}),
        ({"content": [text("{not json")], "structuredContent": {"result": 4}}, WRAPPED, 4),
        ({"content": [text("a"), text("")]}, None, "a\n"),
        ({"content": [text("a")], "structuredContent": None}, None, "a"),
        ({"content": None}, None, None),
        ({}, None, None),
    ],
)
def test_a_result_is_read_as_its_schema_says(result: Any, schema: Any, value: Any) -> None:
    expected = result["structuredContent"] if value is None and schema else value
    assert read_answer(result, schema).value == expected


def test_texts_beside_structured_content_are_not_read_twice() -> None:
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    result = {"content": [text("4 bolts"), image], "structuredContent": {"bolts": 4}}
    assert read_answer(result, None).blocks == [text('{"bolts":4}'), IMAGE]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"content": [text("a"), text("b")]}, "a\nb"),
        ({"content": [text("a"), {"type": "image", "data": PIXEL, "mimeType": "image/png"}]},
         "a\n[image: image/png, 10 bytes, left out]"),
        ({"content": [], "structuredContent": {"why": "empty"}}, '{"why":"empty"}'),
        ({}, "{isError: true}"),
    ],
)  # fmt: skip
def test_a_failure_says_why(result: Any, said: str) -> None:
    with pytest.raises(ToolError) as caught:
        read_answer({**result, "isError": True}, None)
    assert str(caught.value) == said


LOOP = f"""
let SERVER = {{name: "c", command: ["{CONTENTS[0]}", "{CONTENTS[1]}"]}}
fn read(names, options = {{}}) {{
  calls(names.map({{ name -> [name, {{}}] }}))
  llm_mock({{text: "end"}})
  agent_loop("go", nil, {{provider: "mock", tool_format: "native", mcp_servers: [SERVER]}} + options)
  for m in llm_mock_calls().last.messages.filter({{ m -> m.role == "tool" }}) {{ println(json_stringify(m)) }}
}}
"""


def test_a_loops_model_gets_images_and_errors_as_such() -> None:
    lines = output(LOOP + """read(["c__page", "c__broken", "c__numbers", "c__word"])""")
    page, broken, missing, word = map(parse_json, lines)
    assert page == {"role": "tool", "tool_call_id": "mock_call_1", "content": page["content"]}
    assert page["content"] == [text("before"), IMAGE, text("after")]
    assert (broken["is_error"], missing["is_error"]) == (True, True)
    assert broken["content"].startswith("Error: ")
    assert "the shelf fell" in broken["content"]
    assert missing["content"].startswith("ERROR: Tool 'c__numbers' is missing required parameter(s): n.")
    assert word == {"role": "tool", "tool_call_id": "mock_call_4", "content": "nails"}


def test_a_text_that_is_cut_stands_before_the_images() -> None:
    lines = output(
        LOOP + """read(["c__page"], {tool_output_max_chars: 9, compress_callback: { _ -> "short" }})"""
    )
    assert parse_json(lines[0])["content"] == [text("short"), IMAGE]


def test_a_hook_that_changes_a_text_takes_the_images_away() -> None:
    written: list[str] = []
    vm = Vm(OwnWorld(written.append, written.append))
    settings_of(vm).hooks.append(hook("PostToolUse", lambda payload: "instead"))
    output(LOOP + """read(["c__page"])""", vm)
    assert parse_json("".join(written))["content"] == "instead"


def test_text_format_has_words_for_an_image() -> None:
    lines = output(
        LOOP
        + """
        llm_mock({text: "<tool_call>\\nc__page({})\\n</tool_call>"})
        llm_mock({text: "<done>##DONE##</done>"})
        agent_loop("go", nil, {provider: "mock", tool_format: "text", mcp_servers: [SERVER]})
        println(llm_mock_calls().last.messages.last.content)
        """
    )
    assert "before\n[image: image/png, 10 bytes, left out]\nafter" in "\n".join(lines)
