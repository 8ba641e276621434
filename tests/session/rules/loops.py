"""A loop whose tools are slow, run side by side, fail and are denied, in each format of calls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harnpy.llm.providers.mock import MockProvider
from tests.llm.wire import ANTHROPIC, GEMINI, OPENAI, RESPONSES
from tests.session.rules.provider_rules import RESULTS, TEXT, written

Dict = dict[str, Any]

FORMATS = (OPENAI, ANTHROPIC, RESPONSES, GEMINI, TEXT)
#: The steps of the loop, by the tools that each calls. The first two of the first run side by side.
STEPS = (("read_a", "read_b", "slow", "fail", "denied", "slow"), ("fail", "read_b"), ())

#: Opens the session "s" on the store that the first argument names, "" for none; `go(prompt)` is the loop.
_PROGRAM = """
if argv[0] != "" { agent_session_open("s", {store: argv[0]}) }
fn with_tool(tools, name, handler) {
  return tool_define(tools, name, "", {parameters: {}, handler: handler})
}
var tools = tool_registry()
for name in ["read_a", "read_b", "slow", "denied"] {
  tools = with_tool(tools, name, { _ ->
    sleep(3ms)
    return "did ${name}"
  })
}
tools = with_tool(tools, "fail", { _ ->
  sleep(2ms)
  throw "down"
})
let policy = {
  tools: ["read_a", "read_b", "slow", "fail"],
  tool_annotations: {read_a: {kind: "read"}, read_b: {kind: "read"}},
}
let options = {
  session_id: "s", provider: "%(provider)s", tool_format: "%(format)s", tools: tools, policy: policy,
}
for reply in json_parse(argv[1]) { llm_mock(reply) }
fn go(prompt) { return agent_loop(prompt, nil, options) }
%(body)s
"""


def program(style: str, body: str) -> str:
    """The program that does ``body``."""
    provider = "anthropic" if style == ANTHROPIC else "mock"
    format = "text" if style == TEXT else "native"
    return _PROGRAM % {"provider": provider, "format": format, "body": body}


def arguments(style: str, url: str, steps: tuple[tuple[str, ...], ...] = STEPS) -> list[str]:
    """The program's arguments: the model takes these steps, the last one ends the loop."""
    return [url, json.dumps([_reply(style, step) for step in steps])]


def _reply(style: str, step: tuple[str, ...]) -> Dict:
    if not step:
        return {"text": "done"}
    if style == TEXT:
        return {"text": "\n".join(f"<tool_call>\n{name}({{ }})\n</tool_call>" for name in step)}
    return {"text": "let me see", "tool_calls": [{"name": name, "arguments": {}} for name in step]}


@contextmanager
def requests_told(told: Callable[[list[Dict]], object], style: str = OPENAI) -> Iterator[None]:
    """Inside the block ``told`` is called with the messages of each request, and replies are as services of
    that ``style`` write them."""
    complete = MockProvider.complete

    def telling(mock: MockProvider, request: Any) -> Any:
        told(list(request.messages))
        return written(complete(mock, request), style)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MockProvider, "complete", telling)
        yield


def assert_done(messages: list[Dict]) -> None:
    """The last message is the model's, and ends the loop."""
    last = messages[-1]
    texts = last["content"] if isinstance(last["content"], list) else [{"text": last["content"]}]
    assert (last["role"], [text["text"] for text in texts if "text" in text]) == ("assistant", ["done"])


def assert_settled(events: list[Dict], style: str) -> None:
    """Each turn has one end, each call that was begun has one, and the model is told each of them.

    The events are as they are shown.
    """
    turns: Counter[str] = Counter()
    begun: Counter[tuple[str | None, str]] = Counter()
    steps: list[Counter[str]] = [Counter()]
    for event in events:
        type, data, turn = event["type"], event["data"], event.get("turn_id")
        if type == "turn_started":
            turns[event["id"]] += 1
        elif type == "turn_completed":
            turns[str(turn)] -= 1
        elif type == "step_started":
            steps.append(Counter())
        elif type == "tool_started":
            begun[turn, data["id"]] += 1
        elif type == "tool_completed" and not data.get("rejected"):
            begun[turn, data["id"]] -= 1
        steps[-1][_results_in(data) if type == "message_added" else type] += 1
    assert not any(turns.values()), f"turns without their one end: {turns}"
    assert all(left <= 0 for left in begun.values()), f"calls without an end: {begun}"
    for step in steps:
        ends = step["tool_completed"]
        assert step["results"] == (min(ends, 1) if style == TEXT else ends), f"ends and results: {step}"


def _results_in(message: Dict) -> str:
    content = message["content"]
    is_block = isinstance(content, list) and content[0]["type"] == "tool_result"
    is_text = isinstance(content, str) and content.startswith(RESULTS)
    return "results" if is_block or is_text or message["role"] == "tool" else message["role"]
