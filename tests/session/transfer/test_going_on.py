"""Imported conversations go on for a turn with a tool, by a service that is strict, and go back.

Spec: 10 §C17.

`transcripts/` and `frameworks/` were written by the tools themselves. The service stands where the tool's
does, so that it gets back what only it understands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harnpy import AgentDef, LoopFactory, runtime
from harnpy.llm.providers.remote import Remote
from harnpy.llm.request_messages import Origin
from harnpy.session import drafts
from harnpy.session.transfer.blocks import blocks_of
from harnpy.session.transfer.directories import import_sessions
from harnpy.session.transfer.formats import export, import_
from harnpy.session.transfer.messages import FAMILIES
from harnpy.storage import open_store
from tests.llm.wire import ANTHROPIC, GEMINI, OPENAI, RESPONSES, Call, Say, Wire
from tests.wire.rules import check_request
from tests.wire.test_moves import configured, weather

HERE = Path(__file__).parent
CLAUDE, CODEX = HERE / "transcripts/claude_code", HERE / "transcripts/codex"
TALK = "claude-code-11111111-1111-4111-8111-111111111111"
THREAD, FORK = "codex-01a2274d-a5fc-7783-8113-cca79fc50e17", "codex-01a2274d-c1f4-73e1-8aea-593fcda49e0e"
HISTORY = "pydantic-ai-01a22768-d3c3-72d5-ad7e-680453407131"
ASKED = "langgraph-user 2/b"
TURN = ["And the weather?", "weather", "Oslo", "rain in Oslo", "Rain."]
Json = dict[str, Any]


class Case(NamedTuple):
    """What is imported, and how a service must get it: ``told`` stands in the request, in this order."""

    path: Path
    id: str
    dialect: str
    model: str
    format: str
    told: tuple[str, ...]


#: What a model had looked at, and thought: both calls of an answer, and their results behind it.
PARALLEL = (
    *("PARALLEL: read both files", "Two files to look at.", "c2lnbmF0dXJl0001", "I look at both."),
    *("Read", "/work/red.txt", "Read", "/work/blue.txt", "1\tred\n2\t", "1\tblue\n2\t"),
    *("The results are here.", "c2lnbmF0dXJl0003", "IMAGE: look at dot.png", "/work/dot.png", "iVBORw0KGgo"),
    *("c2lnbmF0dXJl0007", "SIDE: ask a child", "Count the files", "The child says: two files."),
)
COMPACTED = (
    *("The conversation so far: a red and a blue file were read.", "The results are here."),
    *("c2lnbmF0dXJl0013", "<command-name>/compact</command-name>", '<file path="/work/blue.txt">'),
    *("Go on", "Hello from turn 17."),
)
READ = (
    *("PARALLEL: read both files", "gAAAA0001", "I look at both.", "exec_command", "cat red.txt"),
    *("exec_command", "cat blue.txt", "Output:\nred\n", "Output:\nblue\n", "gAAAA0003", "Second question"),
    "gAAAA0005",
)
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z/C/HgAGgwJ/lK3Q6wAAAABJRU5ErkJggg=="
SHOWN = ("What is in it?", "https://example.com/a.png", PICTURE, "https://example.com/a.pdf", "extra")
LOOKED = (
    "I look at both.",
    "look",
    "red",
    "look",
    "blue",
    "warm",
    "warmth",
    "Red is warm, blue is not a number.",
)
CASES = {
    "claude-code": Case(CLAUDE, TALK, ANTHROPIC, "claude-opus-4-8", "claude-code", COMPACTED),
    "claude-code before it was compacted": Case(
        CLAUDE, f"{TALK} before", ANTHROPIC, "claude-opus-4-8", "claude-code", PARALLEL
    ),
    "claude-code's sidechain": Case(
        CLAUDE, f"{TALK}-ad2959b8dd10482b5", ANTHROPIC, "claude-opus-4-8", "claude-code",
        ("CHILD: count the files", "The child says: two files."),
    ),
    "claude-code by OpenAI's model": Case(
        CLAUDE, f"{TALK} before", RESPONSES, "gpt-5.1", "claude-code",
        tuple(each for each in PARALLEL if "c2ln" not in each and each[:3] not in ("Two", "The")),
    ),
    "codex": Case(CODEX, THREAD, RESPONSES, "gpt-5.1", "codex", READ),
    "codex's fork": Case(
        CODEX, FORK, RESPONSES, "gpt-5.1", "codex", (*READ, "Asked in the fork", "gAAAA0007", "Hello")
    ),
    "responses": Case(
        HERE, "openai-responses-resp_1", RESPONSES, "gpt-5.1", "openai-responses",
        ("What is it?", PICTURE, "rs_1", "gAAAA01", "c1", "look", "red", "c2", "warm", "It is warm."),
    ),
    "pydantic-ai": Case(
        HERE / "frameworks/pydantic_ai.json", HISTORY, ANTHROPIC, "function:model:", "pydantic-ai",
        (*SHOWN, "Two looks are needed.", "c2ln", *LOOKED),
    ),
    **{
        f"pydantic-ai by {dialect}": Case(
            HERE / "frameworks/pydantic_ai.json", HISTORY, dialect, "m-1", "pydantic-ai", (*SHOWN, *LOOKED)
        )
        for dialect in (OPENAI, RESPONSES, GEMINI)
    },
    "langgraph": Case(
        HERE / "frameworks/langgraph.db", ASKED, OPENAI, "m-1", "langchain",
        ("What is red?", "I look.", "c1", "look", "red", "c1", "warm"),
    ),
    "openai-agents": Case(
        HERE / "frameworks/openai_agents.db", "openai-agents-talk", RESPONSES, "m-1", "openai-responses",
        ("What is red?", "I look.", "look", "red", "look", "blue", "warm", "cold", "And this?", "aGk/aGk+"),
    ),
}  # fmt: skip


def imported(case: Case, desk: Any, directory: Path) -> str:
    """Import what the case has into the desk's store; return the session's id."""
    path, id = case.path, case.id
    if path == HERE:
        path = directory / "response.json"
        path.write_text(as_the_sdk_writes_it(), encoding="utf-8")
    if id.endswith(" before"):
        path, id = directory / "before.jsonl", id.removesuffix(" before")
        [source] = CLAUDE.glob("1111*.jsonl")
        lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
        end = next(number for number, line in enumerate(lines) if "compact_boundary" in line)
        path.write_text("".join(lines[:end]), encoding="utf-8")
    report = import_sessions([str(path)], desk.store)
    assert report.errors == []
    assert id in report.imported
    return id


def as_the_sdk_writes_it() -> str:
    """A response, and the input before it, as `openai` dumps what a service said: with all that is null."""
    from openai.types.responses import Response

    def response(id: str, *output: Json) -> Any:
        facts = {"id": id, "object": "response", "created_at": 1_767_225_600, "model": "gpt-5.1"}
        options = {
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "instructions": "Be short.",
        }
        made = Response.model_validate({**facts, **options, "output": output})
        return json.loads(made.model_dump_json())

    look = {"type": "function_call", "name": "look"}
    first = response(
        "resp_0",
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA01"},
        {**look, "id": "fc_1", "call_id": "c1", "arguments": '{"at": "red"}'},
        {**look, "id": "fc_2", "call_id": "c2", "arguments": '{"at": "blue"}'},
    )
    told = {"type": "output_text", "text": "It is warm.", "annotations": []}
    message = {"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": [told]}
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}", "detail": "auto"}
    asked = {"role": "user", "content": [{"type": "input_text", "text": "What is it?"}, image]}
    results = [
        {"type": "function_call_output", "call_id": "c1", "output": "warm"},
        {"type": "function_call_output", "call_id": "c2", "output": "cold"},
    ]
    return json.dumps({**response("resp_1", message), "input": [asked, *first["output"], *results]})


def answer(session: Any, said: str) -> None:
    """Answer what a thread waits for, as a person does: the question, and the call that asked it."""
    [asked] = (event.data for event in session.events() if event.type == "external_input")
    session.append(drafts.external_input(**{**asked, "status": "received", "input": said}))
    session.add_history([{"role": "tool", "tool_call_id": "c1", "name": "look", "content": said}])


@pytest.fixture
def usual_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service of the tests has the address of the real one that speaks its dialect."""
    usual = {family.dialect: family.address for family in FAMILIES.values() if family.dialect}

    def origin(self: Remote, request: Any) -> Origin:
        return Origin(self.dialect.name, usual[self.dialect.name], request.model)

    monkeypatch.setattr(Remote, "origin", origin)


@pytest.mark.usefixtures("usual_addresses")
@pytest.mark.parametrize("name", CASES)
def test_a_conversation_goes_on_and_back(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    monkeypatch.chdir(tmp_path)
    answers = Say("", (Call("weather", '{"city": "Oslo"}', "call_9"),)), Say("Rain.")
    with ExitStack() as stack:
        wire = stack.enter_context(Wire(case.dialect, *answers))
        factory = LoopFactory(tools=[weather], host=configured({"w": wire}, tmp_path))
        desk = stack.enter_context(runtime("memory:", agents=factory))
        id = imported(case, desk, tmp_path)
        session = desk.get(id)
        if id == ASKED:
            answer(session, "warm")
        before = said(session.window())
        result = desk.send(id, "And the weather?", agent=AgentDef("a", model=f"w/{case.model}"))
        assert result.status == "completed"
        bodies = [request.body for request in wire.requests]
        assert said(session.window()) == [*before, *TURN]
        out = export(session, case.format)
    assert len(bodies) == 2
    for body in bodies:
        check_request(case.dialect, body)
        stand_in_order(case.told, body)
        stand_in_order(before, body)
    stand_in_order(TURN[:-1], bodies[-1])
    stand_in_order([*(each for each in before if len(each) > 2), *TURN], READERS[case.format](out))


def said(messages: list[Json]) -> list[str]:
    """What was said in messages, in its order: texts, calls with their values, results, pictures."""
    found: list[str] = []
    for block in (block for message in messages for block in blocks_of(message)):
        match block["type"]:
            case "text":
                found.append(block["text"])
            case "tool_use":
                found += [block["name"], *texts_in(block["input"])]
            case "tool_result" if isinstance(block["content"], str):
                found.append(block["content"])
            case "tool_result":
                found += said([{"role": "user", "content": block["content"]}])
            case "image" | "document":
                found += [value for value in texts_in(block) if value.startswith(("iVBO", "aGk", "https:"))]
    return found


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in a value, in their order; in texts that are JSON, those within."""
    if isinstance(value, dict):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, str):
        yield value
        if value.startswith("{"):
            yield from texts_in(json.loads(value)) if value.endswith("}") else ()


def stand_in_order(wanted: Iterable[str], value: Any) -> None:
    whole, at = "\0".join(texts_in(value)), 0
    for text in wanted:
        at = whole.find(text, at)
        assert at >= 0, f"{text!r} isn't there, or stands elsewhere"
        at += len(text)


# What reads the files that are written: the package itself, where it is one of Python's.


def _by_harnpy(format: str) -> Any:
    def read(text: str) -> Any:
        session = import_(text, open_store("memory:"), format)
        assert session is not None
        return said(session.window())

    return read


def _by_pydantic_ai(text: str) -> Any:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    messages = ModelMessagesTypeAdapter.validate_json(text)
    # Its data are URL-safe base64.
    dumped = ModelMessagesTypeAdapter.dump_json(messages).decode()
    return json.loads(dumped.replace(PICTURE.replace("/", "_"), PICTURE))


def _by_langchain(text: str) -> Any:
    from langchain_core.messages import messages_from_dict, messages_to_dict

    return messages_to_dict(messages_from_dict(json.loads(text)))


def _by_openai(text: str) -> Any:
    body = json.loads(text)
    check_request(RESPONSES, body)
    return body["input"]


READERS = {
    "claude-code": _by_harnpy("claude-code"),
    "codex": _by_harnpy("codex"),
    "openai-responses": _by_openai,
    "pydantic-ai": _by_pydantic_ai,
    "langchain": _by_langchain,
}
