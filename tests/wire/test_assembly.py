"""Laws of a reply: put together from a stream it is the whole one; to who wrote it, it goes back as it came.

Spec: 07 §1.17.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.agent.loop.transcript_entries import assistant_message, completed_step, recorded_reply
from harnpy.faults import OptionError
from harnpy.llm.configuration.known_providers import ProviderConfig
from harnpy.llm.providers import make_provider
from harnpy.llm.providers.ollama import json_lines
from harnpy.llm.providers.remote import Remote
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.world.http import RealHttp
from tests.counts import COUNT
from tests.llm.wire import ANTHROPIC, GEMINI, MISTRAL, OLLAMA, OPENAI, RESPONSES

Part = dict[str, Any]

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
#: What services keep when it is sent back: text that isn't blank.
SAID = TEXTS.filter(lambda text: bool(text.strip()))
ARGUMENTS = st.dictionaries(TEXTS, st.integers() | TEXTS | st.lists(st.booleans(), max_size=2), max_size=3)
THINKING = st.builds(lambda text, sign: {"type": "thinking", "thinking": text, "signature": sign}, SAID, SAID)
TEXT = st.builds(lambda text: {"type": "text", "text": text}, SAID)
HIDDEN = st.builds(lambda data: {"type": "redacted_thinking", "data": data}, SAID)
CALL = st.builds(
    lambda name, given: {"type": "tool_use", "name": name, "input": given},
    st.sampled_from(["look", "wipe"]),
    ARGUMENTS,
)


#: Ids of calls, some of which other services refuse.
IDS = st.sampled_from(["{}", "functions.look:{}", f"chatcmpl-tool-{'0' * 30}{{}}"])


def _numbered(parts: list[Part]) -> list[Part]:
    return [{**part, "id": f"t{n}"} if part["type"] == "tool_use" else part for n, part in enumerate(parts)]


TURNS = st.lists(THINKING | TEXT | HIDDEN | CALL, min_size=1, max_size=6).map(_numbered)


def remote(protocol: str, base_url: str = "http://127.0.0.1:9/v1") -> Remote:
    config = ProviderConfig(
        name="acme", base_url=base_url, api_key="k", auth_style="bearer", protocol=protocol
    )
    return make_provider(config, RealHttp())


def request(*messages: Part, model: str = "m-1") -> Request:
    said = [{"role": "user", "content": "hi"}, *messages]
    return Request(messages=said, system=None, provider="acme", model=model)


def read(service: Remote, chunks: list[Any], whole: Any = None) -> Reply:
    """Return the reply that these chunks make, or this whole one."""
    answer = service.new_answer()
    if whole is not None:
        answer.take(whole)
    for chunk in chunks:
        answer.add(chunk)
    return service.reply_so_far(answer, request())


def pieces(draw: st.DrawFn, text: str) -> list[str]:
    """Return the text in pieces; the empty one has one, too."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    ends = [0, *cuts, len(text)]
    return [text[start:end] for start, end in pairwise(ends)]


@st.composite
def message_streams(draw: st.DrawFn) -> tuple[list[Part], list[Any], Any]:
    """Return the blocks of a message, the events of its stream, and the whole message."""
    blocks = draw(TURNS)
    events: list[Any] = [{"type": "message_start", "message": {"model": "m"}}]
    for index, block in enumerate(blocks):

        def delta(index: int = index, **fields: Any) -> None:
            events.append({"type": "content_block_delta", "index": index, "delta": fields})

        kind = block["type"]
        begin = {**block, **({kind: ""} if kind in ("text", "thinking") else {})}
        begin.pop("signature", None)
        events.append(
            {
                "type": "content_block_start",
                "index": index,
                "content_block": {**begin, "input": {}} if kind == "tool_use" else begin,
            }
        )
        if kind in ("text", "thinking"):
            for piece in pieces(draw, block[kind]):
                delta(type=f"{kind}_delta", **{kind: piece})
        if kind == "thinking":
            delta(type="signature_delta", signature=block["signature"])
        if kind == "tool_use":
            for piece in pieces(draw, json.dumps(block["input"])):
                delta(type="input_json_delta", partial_json=piece)
        events.append({"type": "content_block_stop", "index": index})
    reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}})
    whole = {"type": "message", "model": "m", "content": blocks, "stop_reason": reason}
    return blocks, events, whole


@st.composite
def chat_streams(draw: st.DrawFn) -> tuple[Part, list[Any], Any]:
    """Return a message of a chat completion, the chunks of its stream, and the whole completion."""
    text, reasoning = draw(SAID | st.just("")), draw(SAID | st.just(""))
    calls = [
        {**call, "id": draw(IDS).format(call["id"])} for call in draw(TURNS) if call["type"] == "tool_use"
    ]
    signs = [draw(st.none() | SAID) for _ in calls]
    message: Part = {"role": "assistant", "content": text}
    chunks: list[Any] = []

    def add(finish: str | None = None, **delta: Any) -> None:
        chunks.append({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    if reasoning:
        message["reasoning_content"] = reasoning
        for piece in pieces(draw, reasoning):
            add(reasoning_content=piece)
    for piece in pieces(draw, text):
        add(content=piece)
    waiting: list[list[Part]] = []
    for index, (call, sign) in enumerate(zip(calls, signs, strict=True)):
        own = {"extra_content": {"sign": sign}} if sign else {}
        written = json.dumps(call["input"], separators=(",", ":"), ensure_ascii=False)
        made = {**own, "id": call["id"], "type": "function"}
        message.setdefault("tool_calls", []).append(
            {**made, "function": {"name": call["name"], "arguments": written}}
        )
        first, *rest = pieces(draw, written)
        begin = {**made, "index": index, "function": {"name": call["name"], "arguments": first}}
        waiting.append([begin, *({"index": index, "function": {"arguments": piece}} for piece in rest)])
    while any(waiting):
        turn = draw(st.sampled_from([fragments for fragments in waiting if fragments]))
        add(tool_calls=[turn.pop(0)])
    reason = "tool_calls" if calls else "stop"
    add(finish=reason)
    whole = {"model": "m", "choices": [{"message": message, "finish_reason": reason}]}
    return message, chunks, whole


@st.composite
def generated_streams(draw: st.DrawFn) -> tuple[list[Part], list[Any], Any]:
    """Return the parts of Gemini's content, the chunks of its stream, and the whole reply."""
    parts: list[Part] = []
    chunks: list[Any] = []

    def add(part: Part) -> None:
        chunks.append({"candidates": [{"content": {"role": "model", "parts": [part]}}]})

    for block in draw(TURNS):
        sign = {"thoughtSignature": draw(SAID)} if draw(st.booleans()) else {}
        if block["type"] == "tool_use":
            given = {"id": block["id"]} if draw(st.booleans()) else {}
            part = {"functionCall": {**given, "name": block["name"], "args": block["input"]}, **sign}
        elif block["type"] == "redacted_thinking":
            part = {"executableCode": {"code": block["data"], "language": "PYTHON"}}
        else:
            thought = {"thought": True} if block["type"] == "thinking" else {}
            part = {"text": block[block["type"]], **thought, **sign}
        last = parts[-1] if parts else {}
        is_signed = "thoughtSignature" in part
        same_kind = "text" in part and "text" in last and part.get("thought") == last.get("thought")
        if same_kind and not is_signed and "thoughtSignature" not in last:
            continue  # a stream can't tell where one of them ends
        parts.append(part)
        for piece in pieces(draw, part["text"]) if "text" in part and not is_signed else [None]:
            add(part if piece is None else {**part, "text": piece})
    chunks.append({"candidates": [{"finishReason": "STOP"}]})
    content = {"role": "model", "parts": parts}
    return parts, chunks, {"candidates": [{"content": content, "finishReason": "STOP"}]}


@st.composite
def response_streams(draw: st.DrawFn) -> tuple[list[Part], list[Any], Any]:
    """Return the items of a response, the events of its stream, and the whole response."""
    items: list[Part] = []
    events: list[Any] = []
    for index, block in enumerate(draw(TURNS)):

        def tell(type: str, index: int = index, **fields: Any) -> None:
            events.append({"type": f"response.{type}", "output_index": index, **fields})

        id, kind = f"i{index}", block["type"]
        if kind == "tool_use":
            written = json.dumps(block["input"], separators=(",", ":"), ensure_ascii=False)
            item = {"type": "function_call", "id": id, "call_id": block["id"], "name": block["name"]}
            item |= {"arguments": written, "status": "completed"}
            tell("output_item.added", item={**item, "arguments": ""})
            for piece in pieces(draw, written):
                tell("function_call_arguments.delta", delta=piece)
        elif kind == "text":
            content = [{"type": "output_text", "text": block["text"], "annotations": []}]
            item = {
                "type": "message",
                "id": id,
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
            tell("output_item.added", item={**item, "content": []})
            for piece in pieces(draw, block["text"]):
                tell("output_text.delta", content_index=0, delta=piece)
        elif kind == "thinking":
            summary = [{"type": "summary_text", "text": block["thinking"]}]
            item = {
                "type": "reasoning",
                "id": id,
                "summary": summary,
                "encrypted_content": block["signature"],
            }
            tell("output_item.added", item={**item, "summary": []})
            for piece in pieces(draw, block["thinking"]):
                tell("reasoning_summary_text.delta", summary_index=0, delta=piece)
        else:
            item = {"type": "web_search_call", "id": id, "status": "completed"}
        tell("output_item.done", item=item)
        items.append(item)
    whole = {"model": "m", "status": "completed", "output": items}
    events.append({"type": "response.completed", "response": whole})
    return items, events, whole


@st.composite
def mistral_streams(draw: st.DrawFn) -> tuple[Part, list[Any], Any]:
    """Return a message of Mistral's, the chunks of its stream, and the whole reply. Content is a list where
    it thinks, and texts in a stream are plain."""
    content: list[Part] = []
    calls: list[Part] = []
    chunks: list[Any] = []

    def add(finish: str | None = None, **delta: Any) -> None:
        chunks.append({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    add(role="assistant", content="")
    for block in draw(TURNS):
        kind = block["type"]
        if kind == "tool_use":
            written = json.dumps(block["input"], separators=(",", ":"), ensure_ascii=False)
            made = {"id": f"call{len(calls):05}", "function": {"name": block["name"], "arguments": written}}
            calls.append({**made, "type": "function"})
            add(tool_calls=[made])
        elif kind in ("text", "thinking") and (not content or content[-1]["type"] != kind):
            said = {"type": "text", "text": block[kind]}
            content.append(said if kind == "text" else {"type": kind, kind: [said]})
            is_plain = kind == "text" and draw(st.booleans())
            for piece in pieces(draw, block[kind]):
                part = {"type": "text", "text": piece}
                add(content=piece if is_plain else [part if kind == "text" else {"type": kind, kind: [part]}])
    add("tool_calls" if calls else "stop", content="")
    is_text = len(content) == 1 and content[0]["type"] == "text"
    message: Part = {"role": "assistant", "content": content[0]["text"] if is_text else content or ""}
    if calls:
        message["tool_calls"] = calls
    return message, chunks, {"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}


@st.composite
def ollama_streams(draw: st.DrawFn) -> tuple[Part, list[Any], Any]:
    """Return a message of Ollama's, the lines of its stream, and the whole reply."""
    message: Part = {"role": "assistant", "content": draw(SAID | st.just(""))}
    if thinking := draw(SAID | st.just("")):
        message["thinking"] = thinking
    lines: list[Any] = []

    def add(**said: Any) -> None:
        told = {"role": "assistant", "content": "", **said}
        lines.append({"model": "m", "message": told, "done": False})

    for key in ("thinking", "content"):
        for piece in pieces(draw, message.get(key, "")):
            add(**{key: piece})
    for call in draw(TURNS):
        if call["type"] == "tool_use":
            made = message.setdefault("tool_calls", [])
            function = {"index": len(made), "name": call["name"], "arguments": call["input"]}
            made.append({"id": call["id"], "function": function})
            add(tool_calls=made[-1:])
    end = {"model": "m", "done": True, "done_reason": "stop", "prompt_eval_count": 4, "eval_count": 3}
    lines.append({**end, "message": {"role": "assistant", "content": ""}})
    return message, lines, {**end, "message": message}


def same(one: Reply, other: Reply) -> None:
    assert replace(one, input_tokens=0) == replace(other, input_tokens=0)


@settings(max_examples=COUNT.examples(60))
@given(message_streams())
def test_messages(made: tuple[list[Part], list[Any], Any]) -> None:
    blocks, events, whole = made
    service = remote(ANTHROPIC)
    reply = read(service, events)
    same(reply, read(service, [], whole))
    assert [call["arguments"] for call in reply.tool_calls] == [
        block["input"] for block in blocks if block["type"] == "tool_use"
    ]
    message = assistant_message(reply, ANTHROPIC)
    # A blank at the end of all would be refused, and goes.
    _, back, _ = service.body(request(message, {"role": "user", "content": "Go on."}))["messages"]
    assert back == {"role": "assistant", "content": _without_blocks_of_output(blocks, reply)}
    _check_others(message, blocks)


def _without_blocks_of_output(blocks: list[Part], reply: Reply) -> list[Part]:
    """Return what goes back of these blocks: texts that stand together are one where nothing else is."""
    if reply.parts or reply.tool_calls:
        return blocks
    return [{"type": "text", "text": reply.text}]


@settings(max_examples=COUNT.examples(60))
@given(chat_streams())
def test_chat_completions(made: tuple[Part, list[Any], Any]) -> None:
    said, chunks, whole = made
    service = remote(OPENAI)
    reply = read(service, chunks)
    same(reply, read(service, [], whole))
    if not (reply.text or reply.tool_calls):
        return
    message = assistant_message(reply, OPENAI)
    _, back = service.body(request(message))["messages"]
    assert back == said
    _check_others(message, [])
    logged = recorded_reply(completed_step(reply, 0), request())
    assert assistant_message(logged, OPENAI) == message


@settings(max_examples=COUNT.examples(60))
@given(mistral_streams())
def test_mistrals_completions(made: tuple[Part, list[Any], Any]) -> None:
    said, chunks, whole = made
    service = remote(MISTRAL)
    reply = read(service, chunks)
    same(reply, replace(read(service, [], whole), stop_reason=reply.stop_reason))
    if not (said["content"] or reply.tool_calls):
        return
    message = assistant_message(reply, OPENAI)
    _, back = service.body(request(message))["messages"]
    assert back == said
    _check_others(message, [])


@settings(max_examples=COUNT.examples(60))
@given(ollama_streams())
def test_ollamas_replies(made: tuple[Part, list[Any], Any]) -> None:
    said, lines, whole = made
    service = remote(OLLAMA)
    reply = read(service, lines)
    same(reply, read(service, [], whole))
    assert (reply.input_tokens, reply.output_tokens) == (4, 3)
    message = assistant_message(reply, OPENAI)
    _, back = service.body(request(message))["messages"]
    assert back == said
    _check_others(message, [])


@settings(max_examples=COUNT.examples(60))
@given(st.data(), ollama_streams())
def test_lines_in_any_pieces(data: st.DataObject, made: tuple[Part, list[Any], Any]) -> None:
    _, lines, _ = made
    raw = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    parts = [raw[start:end] for start, end in pairwise([0, *cuts, len(raw)])]

    async def coming() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    async def told() -> list[Any]:
        return [value async for value in json_lines(coming())]

    assert asyncio.run(told()) == lines


@settings(max_examples=COUNT.examples(60))
@given(generated_streams())
def test_generated_contents(made: tuple[list[Part], list[Any], Any]) -> None:
    parts, chunks, whole = made
    service = remote(GEMINI)
    reply = read(service, chunks)
    same(reply, read(service, [], whole))
    reply.identify(map(str, count()).__next__)
    _, back = service.body(request(assistant_message(reply, OPENAI)))["contents"]
    assert back == {"role": "model", "parts": parts}
    _check_others(assistant_message(reply, OPENAI), [])


@settings(max_examples=COUNT.examples(60))
@given(response_streams())
def test_responses(made: tuple[list[Part], list[Any], Any]) -> None:
    items, events, whole = made
    service = remote(RESPONSES)
    reply = read(service, events)
    same(reply, read(service, [], whole))
    _, *back = service.body(request(assistant_message(reply, OPENAI)))["input"]
    assert back == items
    _check_others(assistant_message(reply, OPENAI), [])


def _check_others(message: Part, blocks: list[Part]) -> None:
    """Check that nobody else gets what only one service understands, and everybody the rest."""
    signs = {value for block in blocks for key, value in block.items() if key in ("signature", "data")}
    for service, model in (
        (remote(OPENAI), "m-2"),
        (remote(ANTHROPIC), "m-2"),
        (remote(ANTHROPIC, "http://127.0.0.1:8/v1"), "m-1"),
        (remote(OPENAI, "http://127.0.0.1:8/v1"), "m-1"),
    ):
        sent = service.body(request(message, model=model))["messages"][1:]
        for told in sent:
            assert told.keys() <= {"role", "content", "tool_calls"}
            listed = told["content"] if isinstance(told["content"], list) else []
            assert all(block["type"] in ("text", "tool_use") for block in listed)
            assert all(call.keys() == {"id", "type", "function"} for call in told.get("tool_calls", ()))
            assert not signs & {
                value for block in listed for value in block.values() if type(value) is str
            } - {block["text"] for block in listed if block["type"] == "text"}


def test_gemini_refuses_a_choice_of_tools_that_it_does_not_have() -> None:
    tools = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    asked = replace(request(), tools=tools, tool_choice={"type": "allowed_tools", "tools": []})
    with pytest.raises(OptionError, match="tool_choice: Gemini has"):
        remote(GEMINI).body(asked)
    chosen = remote(GEMINI).body(replace(asked, tool_choice="look"))["toolConfig"]
    assert chosen == {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}}
