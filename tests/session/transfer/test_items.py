"""Items of OpenAI's Responses API that are no calls of functions: they go back as what they were.

Spec: 10 §C17; 07 §1.19.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy import AgentDef, LoopFactory, runtime
from harnpy.session.transfer.directories import import_sessions
from harnpy.session.transfer.formats import export, import_, lost
from harnpy.storage import open_store
from tests.counts import COUNT
from tests.llm.wire import RESPONSES, Say, Wire
from tests.wire.test_moves import configured

Json = dict[str, Any]

#: What a model wrote that has no result of its own.
ALONE: list[Json] = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed",
     "action": {"type": "search", "query": "red"}},
    {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk="},
    {"type": "mcp_call", "id": "mcp_1", "name": "look", "server_label": "s", "arguments": "{}"},
]  # fmt: skip
SHELL = {"type": "exec", "command": ["ls"], "env": {}}
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)


@st.composite
def items(draw: st.DrawFn) -> list[Json]:
    """Turns of a user and of a model that calls tools of each kind; all calls have their results."""
    found: list[Json] = []
    for turn in range(draw(st.integers(1, 3))):
        said = {"type": "input_text", "text": draw(WORDS)}
        found.append({"type": "message", "role": "user", "content": [said]})
        results = []
        for number in range(draw(st.integers(1, 3))):
            id, own = f"c{turn}_{number}", draw(st.sampled_from([{}, {"id": f"i{turn}_{number}"}]))
            match draw(st.sampled_from(["function", "custom", "shell", "alone"])):
                case "function":
                    call = {
                        "type": "function_call",
                        "name": "look",
                        "arguments": json.dumps({"at": draw(WORDS)}, ensure_ascii=False),
                    }
                case "custom":
                    call = {"type": "custom_tool_call", "name": "patch", "input": draw(WORDS)}
                case "shell":
                    call = {"type": "local_shell_call", "action": SHELL, "status": "completed"}
                case _:
                    found.append(draw(st.sampled_from(ALONE)))
                    continue
            found.append({**call, **own, "call_id": id})
            kind = f"{call['type']}_output"
            if call["type"] == "local_shell_call" and draw(st.booleans()):
                kind = "function_call_output"  # so answers Codex
            results.append({"type": kind, "call_id": id, "output": draw(WORDS), **own})
        found += results
    return found


def as_codex(items: list[Json]) -> str:
    """Return a rollout of these items."""
    stamp = "2026-01-01T00:00:00.000Z"
    lines: list[Json] = [
        {"type": "session_meta", "payload": {"id": "01a2274d-a5fc-7783-8113-cca79fc50e17"}},
        {"type": "turn_context", "payload": {"cwd": "/work", "model": "gpt-5.1"}},
        *({"type": "response_item", "payload": item} for item in items),
    ]
    return "".join(json.dumps({"timestamp": stamp, **line}) + "\n" for line in lines)


@pytest.mark.parametrize("format", ["openai-responses", "codex"])
@settings(max_examples=COUNT.examples(25), deadline=None)
@given(said=items())
def test_law_items_come_back_as_they_were(format: str, said: list[Json]) -> None:
    text = as_codex(said) if format == "codex" else json.dumps({"model": "gpt-5.1", "input": said})
    session = import_(text, open_store("memory:"), format)
    assert session is not None
    out = export(session, format)
    if format == "codex":
        rows = [json.loads(line) for line in out.splitlines()]
        assert [row["payload"] for row in rows if row["type"] == "response_item"] == said
    else:
        assert json.loads(out)["input"] == said
    # Whoever knows no such items gets calls of functions, and no key of theirs.
    chat = json.loads(export(session, "openai-chat"))["messages"]
    assert not any("item" in message for message in chat)
    assert not any("item" in block for m in json.loads(export(session, "anthropic"))["messages"]
                   for block in m["content"] if isinstance(block, dict))  # fmt: skip
    if any(item["type"].startswith(("custom", "local")) for item in said):
        assert "marks of a service's own" in {loss.kind for loss in lost(session, "anthropic")}


def test_another_models_call_is_a_functions_and_so_is_its_result(tmp_path: Path) -> None:
    said = [
        {"type": "message", "role": "user", "content": "Go."},
        {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "*** x"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
    ]
    store = open_store("memory:")
    for model in ("old", "new"):
        (tmp_path / f"{model}.json").write_text(json.dumps({"model": model, "input": said}))
    old, new = import_sessions([str(tmp_path / "old.json"), str(tmp_path / "new.json")], store).imported
    with runtime(store) as desk:
        desk.get(old).append_user("And on?")
        desk.get(old).add_history([{**message} for message in desk.get(new).history()[1:]])
        [_, call, result, _, own, back] = json.loads(export(desk.get(old), "openai-responses"))["input"]
    assert (call["type"], call["arguments"]) == ("function_call", '{"input": "*** x"}')
    assert (result["type"], own["type"], back["type"]) == (
        "function_call_output", "custom_tool_call", "custom_tool_call_output"
    )  # fmt: skip


def test_a_custom_call_goes_back_to_its_model_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = [
        {"role": "user", "content": "Go."},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "patch", "input": "*** x"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "c2", "action": SHELL, "status": "completed"},
        {"type": "local_shell_call_output", "id": "o", "call_id": "c2", "output": "red.txt"},
    ]
    made = import_(json.dumps({"model": "m-1", "input": said}), open_store("memory:"), "openai-responses")
    assert made is not None
    with Wire(RESPONSES, Say("Done.")) as wire:
        factory = LoopFactory(host=configured({"responses": wire}, tmp_path))
        with runtime("memory:", agents=factory) as desk:
            for message in made.history():
                if "origin" in message:  # the service is that of the test
                    message = {**message, "origin": {**message["origin"], "base_url": wire.url}}
                desk.get(desk.create(id="s").id if not desk.exists("s") else "s").add_history([message])
            desk.send("s", "And?", agent=AgentDef("a", model="responses/m-1"))
        sent = wire.requests[0].body["input"]
    told = [{**item} for item in sent if item.get("call_id")]
    assert json.loads(told[2].pop("arguments")) == SHELL
    assert told == [
        *said[1:3],
        {"type": "function_call", "call_id": "c2", "name": "local_shell"},
        {"type": "function_call_output", "call_id": "c2", "output": "red.txt"},
    ]
