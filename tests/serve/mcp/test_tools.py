"""What a Harn file offers MCP clients as tools, and what calling them comes to. Spec: 09 §11.4."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError

from harnpy import Vm
from harnpy.serve.mcp_server import serve
from harnpy.serve.program import NotServed
from harnpy.syntax.diagnostic import SourceFault
from harnpy.vm.errors import VmError
from tests.counts import COUNT
from tests.serve.mcp.serving import Served, converse, text_of
from tests.support import ROOT

#: The newest protocol, and the one before 2026-07-28.
BOTH = pytest.mark.parametrize("mode", ["auto", "legacy"])

FILE = """
import "std/text"

type Note = {title: string, tags?: list<string>}

var calls = 0

/**
 * Adds two numbers.
 * The second is 2 unless given.
 */
pub fn add(a: int, b: int = 2) -> int {
  calls = calls + 1
  println("adding ${a}")
  return a + b
}

/// How often `add` was called.
pub fn counted() { return calls }

pub fn tagged(note: Note, ...tags: string) -> Note { return {title: note.title, tags: tags} }

pub fn first(items: list<string>) -> Result<string, string> {
  return len(items) > 0 ? Ok(items[0]) : Err("nothing in it")
}

pub fn wrong() -> int { return json_parse("\\"text\\"") }

pub fn nothing(x: string | nil) { }

pub fn thrown(what) { throw what }

pub fn failing() { return 1 / 0 }

pub fn leaving() { exit(3) }

pub fn mirror(x) { return x }

pub fn deep() {
  var inner = []
  for i in range(0, 300) { inner = [inner] }
  return inner
}

pub fn odd() -> dict { return {nan: 0.0 / 0.0, set: set([1]), fn: { x -> x }} }

pub gen fn numbers() { emit 1 }

fn helper() { return 0 }

tool shout(text: string, mark: string = "!", times: int = 1) -> string {
  description "Says it loud."
  return uppercase(text) + mark.repeat(times)
}

pipeline main(task) { throw "never run" }
"""


@BOTH
def test_the_list_of_tools(tmp_path: Path, mode: str) -> None:
    async def session(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == [
            "add", "counted", "tagged", "first", "wrong", "nothing", "thrown", "failing", "leaving", "mirror",
            "deep", "odd", "shout",
        ]  # fmt: skip
        assert tools["add"].description == "Adds two numbers.\nThe second is 2 unless given."
        assert tools["add"].input_schema == {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
            "required": ["a"],
            "additionalProperties": False,
        }
        assert tools["add"].output_schema == {
            "type": "object",
            "properties": {"result": {"type": "integer"}},
            "required": ["result"],
            "x-fastmcp-wrap-result": True,
        }
        assert tools["counted"].description == "How often `add` was called."
        assert tools["counted"].output_schema is None
        assert tools["nothing"].description is None
        note = {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["title"],
        }
        assert tools["tagged"].output_schema == note
        assert tools["tagged"].input_schema["properties"] == {
            "note": note,
            "tags": {"type": "array", "items": {"type": "string"}},
        }
        assert tools["tagged"].input_schema["required"] == ["note"]
        assert tools["shout"].description == "Says it loud."
        assert tools["shout"].input_schema["required"] == ["text"]
        assert tools["shout"].input_schema["properties"]["mark"] == {"type": "string", "default": "!"}

    converse(tmp_path / "notes.harn", FILE, session, mode=mode)


#: Tool, arguments, text of the result, structured content.
CALLS: list[tuple[str, dict[str, Any], str, Any]] = [
    ("add", {"a": 1}, "3", {"result": 3}),
    ("add", {"b": 1, "a": 41}, "42", {"result": 42}),
    ("tagged", {"note": {"title": "é"}, "tags": ["a", "b"]}, '{"tags":["a","b"],"title":"é"}',
     {"title": "é", "tags": ["a", "b"]}),
    ("tagged", {"note": {"title": ""}}, '{"tags":[],"title":""}', {"title": "", "tags": []}),
    ("first", {"items": ["x", "y"]}, "x", {"result": "x"}),
    ("first", {"items": []}, "ERROR nothing in it", None),
    ("wrong", {}, "ERROR wrong returned what its type doesn't allow: at result: expected type 'int', got "
     "'string'", None),
    ("nothing", {"x": None}, "", None),
    ("thrown", {"what": {"code": 1}}, "ERROR {code: 1}", None),
    ("failing", {}, "ERROR Runtime error: Division by zero (line 33)", None),
    ("leaving", {}, "ERROR the program called exit(3)", None),
    ("mirror", {"x": [1, 2.5, None, {"ü": "\u2028\U0001f600\"\\"}]},
     '[1,2.5,null,{"ü":"\u2028\U0001f600\\"\\\\"}]', None),
    ("deep", {}, "ERROR what was returned can't be sent as JSON: recursion limit exceeded at line 1 column "
     "128", None),
    ("odd", {}, '{"fn":null,"nan":null,"set":[1]}', {"fn": None, "nan": None, "set": [1]}),
    ("mirror", {"x": "plain"}, "plain", None),
    ("shout", {"text": "hey"}, "HEY!", {"result": "HEY!"}),
    ("shout", {"text": "hey", "times": 3}, "HEY!!!", {"result": "HEY!!!"}),
    ("add", {"a": "1"}, "ERROR add: wrong arguments: at a: expected type 'int', got 'string'", None),
    ("add", {"a": 10**30}, "ERROR add: wrong arguments: at a: expected type 'int', got 'float'", None),
    ("mirror", {"x": [10**400]}, "ERROR mirror: wrong arguments: number out of range", None),
    ("mirror", {"x": [-(2**63), 2**63, True]}, "[-9223372036854775808,9223372036854776000,true]", None),
    ("add", {"c": 1}, "ERROR add: wrong arguments: at root: missing required key 'a'; at root: unexpected "
     "key 'c'", None),
    ("tagged", {"note": {"tags": [1]}}, "ERROR tagged: wrong arguments: at note: missing required key "
     "'title'; at note.tags[0]: expected type 'string', got 'int'", None),
]  # fmt: skip


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
def test_results_and_errors(tmp_path: Path, evaluator: str) -> None:
    async def session(client: Client) -> None:
        for name, arguments, text, structured in CALLS:
            result = await client.call_tool(name, arguments)
            assert (text_of(result), result.structured_content) == (text, structured), name

    converse(tmp_path / "notes.harn", FILE, session, evaluator=evaluator)


def test_an_unknown_tool_is_an_error_of_the_protocol(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        with pytest.raises(MCPError, match="Unknown tool: helper"):
            await client.call_tool("helper", {})

    converse(tmp_path / "notes.harn", FILE, session)


def test_calls_share_the_variables_of_the_file_and_print_whole(tmp_path: Path) -> None:
    printed = Served()

    async def session(client: Client) -> None:
        for i in range(3):
            await client.call_tool("add", {"a": i})
        assert text_of(await client.call_tool("counted", {})) == "3"

    converse(tmp_path / "notes.harn", FILE, session, printed)
    assert printed.output == "adding 0\nadding 1\nadding 2\n"


WAITING = """
let doors = channel("doors", 1)
var inside = 0
var most = 0

/** Waits until `open` is called. */
pub fn wait(n: int) -> int {
  inside = inside + 1
  most = max(most, inside)
  println("in ${n}")
  defer { inside = inside - 1 }
  receive(doors)
  println("out ${n}")
  return n
}

pub fn open() { close_channel(doors) }
pub fn seen() { return [inside, most] }
pub fn busy() {
  progress("busy", "now")
  while true { }
}
pub fn work(n: int) {
  progress("copy", "a", 1, 4)
  progress("copy", "b", 4, 4)
  progress("check", "c", {mode: "bar", current: 1, total: 2})
  progress("check", "c", {mode: "bar", current: 1, total: 2})
  progress("rest", "d", {mode: "spinner", step: 9})
  return n
}
"""


@BOTH
def test_calls_run_at_once(tmp_path: Path, mode: str) -> None:
    printed = Served()

    async def session(client: Client) -> None:
        calls = [asyncio.create_task(client.call_tool("wait", {"n": n})) for n in range(100)]
        while text_of(await client.call_tool("seen", {})) != "[100,100]":
            await asyncio.sleep(0)
        await client.call_tool("open", {})
        results = await asyncio.gather(*calls)
        assert [result.structured_content for result in results] == [{"result": n} for n in range(100)]

    converse(tmp_path / "w.harn", WAITING, session, printed, mode=mode)
    lines = printed.output.splitlines()
    assert len(lines) == 200
    assert all(lines[i].removeprefix("in ") == lines[i + 1].removeprefix("out ") for i in range(0, 200, 2))


@BOTH
def test_a_cancelled_call_ends_in_the_program_too(tmp_path: Path, mode: str) -> None:
    async def session(client: Client) -> None:
        call = asyncio.create_task(client.call_tool("wait", {"n": 1}))
        await until_seen(client, "[1,1]")
        await cancelled(call)
        await until_seen(client, "[0,1]")

    converse(tmp_path / "w.harn", WAITING, session, mode=mode)


@BOTH
def test_a_call_that_computes_can_be_cancelled(tmp_path: Path, mode: str) -> None:
    async def session(client: Client) -> None:
        begun = asyncio.Event()

        async def note(progress: float, total: float | None, message: str | None) -> None:
            begun.set()

        call = asyncio.create_task(client.call_tool("busy", {}, progress_callback=note))
        await begun.wait()
        await cancelled(call)
        await until_seen(client, "[0,0]")

    converse(tmp_path / "w.harn", WAITING, session, mode=mode)


async def cancelled(call: asyncio.Task[Any]) -> None:
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def until_seen(client: Client, text: str) -> None:
    while text_of(await client.call_tool("seen", {})) != text:
        await asyncio.sleep(0)


@BOTH
def test_progress_grows(tmp_path: Path, mode: str) -> None:
    async def session(client: Client) -> None:
        seen: list[tuple[float, float | None, str | None]] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))

        assert text_of(await client.call_tool("work", {"n": 5}, progress_callback=note)) == "5"
        assert seen == [
            (1, 4, "[copy] a"),
            (4, 4, "[copy] b"),
            (5, 6, "[check] c"),
            (6, None, "[rest] d"),
        ]

    converse(tmp_path / "w.harn", WAITING, session, mode=mode)


def test_a_huge_argument_and_result(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        text = "ä\n" * 500_000
        assert text_of(await client.call_tool("mirror", {"x": text})) == text

    converse(tmp_path / "notes.harn", FILE, session)


def test_a_call_that_waits_when_the_server_ends(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        call = asyncio.create_task(client.call_tool("wait", {"n": 1}))
        await until_seen(client, "[1,1]")
        call.cancel()

    converse(tmp_path / "w.harn", WAITING, session)


@pytest.mark.parametrize(
    ("source", "error", "text"),
    [
        ("fn helper() { }", NotServed, "has no `pub fn` and no `tool`"),
        ("pub fn f( { }", SourceFault, "Expected parameter name"),
        ("pub fn f() { undefined_thing() }", SourceFault, "undefined_thing"),
        ("let x = 1 / 0\npub fn f() { }", VmError, "Division by zero"),
    ],
)
def test_a_file_that_cannot_be_served(tmp_path: Path, source: str, error: type, text: str) -> None:
    path = tmp_path / "f.harn"
    path.write_text(source)

    async def never(server: Any) -> None:
        raise AssertionError("served")

    with pytest.raises(error, match=text):
        asyncio.run(serve(Vm(), str(path), never))


DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9).map(float) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_any_data_comes_back_as_it_was_sent(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        for value in values:
            result = await client.call_tool("same", {"x": value})
            assert result.structured_content == {"result": {"x": value}}
            text = text_of(await client.call_tool("mirror", {"x": value}))
            assert text == value if isinstance(value, str) else json.loads(text or "null") == value

    values: list[Any] = []

    @settings(max_examples=COUNT.examples(15), database=None)
    @given(DATA)
    def collect(value: Any) -> None:
        values.append(value)

    collect()
    source = FILE + "\npub fn same(x) -> dict | list { return {x: x} }"
    converse(tmp_path / "notes.harn", source, session)


def test_the_example_and_the_docs(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        milk = {"id": 1, "text": "buy milk", "tags": ["shop"]}
        added = await client.call_tool("add_note", {"text": "buy milk", "tags": ["shop"]})
        assert added.structured_content == milk
        found = await client.call_tool("find_notes", {"word": "milk"})
        assert found.structured_content == {"result": [milk]}

    async def more(client: Client) -> None:
        await session(client)
        assert text_of(await client.call_tool("count_words", {"text": " a  b c "})) == "3"
        assert text_of(await client.call_tool("remove_note", {"id": 2})) == "ERROR there is no note 2"
        assert text_of(await client.call_tool("add_note", {"text": " "})) == "ERROR a note needs a text"

    converse(tmp_path / "example.harn", (ROOT / "examples/mcp_notes.harn").read_text(), more)
    section = (ROOT / "docs/mcp.md").read_text().partition("## A Harn file as a server")[2]
    converse(tmp_path / "docs.harn", section.split("```")[1].removeprefix("harn\n"), session)
