"""Inspect: `Model.generate_loop`, whose requests aren't streamed to the chat dialect."""

import asyncio
import json

from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    get_model,
)
from inspect_ai.tool import ToolCall, ToolCallError, tool

NAMES = {"chat": "openai", "anthropic": "anthropic", "gemini": "google"}
BASE = {"chat": "/v1", "anthropic": "", "gemini": ""}


def ask(dialect, url, model, messages, look):
    @tool(name="look")
    def looking():
        async def execute(what: str = "everything") -> str:
            """Look at something.

            Args:
                what: what to look at
            """
            return look(what)

        return execute

    config = GenerateConfig(max_retries=0)
    options = {"responses_api": False} if dialect == "chat" else {}
    name = f"{NAMES[dialect]}/{model}"
    chat = get_model(name, base_url=url + BASE[dialect], api_key="k", memoize=False, config=config, **options)
    given = [message(each) for each in messages]
    said, output = asyncio.run(chat.generate_loop(given, tools=[looking()]))
    first = said[0]
    content = first.content if isinstance(first.content, list) else []
    return {
        "text": first.text,
        "thinking": "".join(part.reasoning for part in content if part.type == "reasoning"),
        "finish": output.stop_reason,
        "input": output.usage.input_tokens,
        "output": output.usage.output_tokens,
    }


def message(each):
    text = each["text"]
    if each["role"] == "tool":
        image = ContentImage(image=f"data:image/png;base64,{each['image']}")
        error = ToolCallError("unknown", text) if each["failed"] else None
        content = [ContentText(text=text), image] if each["image"] else "" if error else text
        known = {"tool_call_id": each["id"], "function": each["name"]}
        return ChatMessageTool(content=content, error=error, **known)
    if each["role"] != "assistant":
        return {"user": ChatMessageUser, "system": ChatMessageSystem}[each["role"]](content=text)
    thoughts = [ContentReasoning(reasoning=each["thinking"])] if each["thinking"] else []
    content = [*thoughts, ContentText(text=text)] if thoughts else text
    return ChatMessageAssistant(content=content, tool_calls=list(map(called, each["calls"])) or None)


def called(call):
    try:
        return ToolCall(call["id"], call["name"], json.loads(call["arguments"]))
    except ValueError:
        raise NotImplementedError("arguments are an object") from None
