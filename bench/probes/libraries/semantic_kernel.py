"""Semantic Kernel: `OpenAIChatCompletion`, a stream's chunks added up; the loop is ours."""

import asyncio
import json
from functools import reduce

from openai import AsyncOpenAI
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import (
    ChatHistory,
    ChatMessageContent,
    FunctionCallContent,
    FunctionResultContent,
    ReasoningContent,
    TextContent,
)

TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at something.",
        "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
    },
}


def ask(dialect, url, model, messages, look):
    if dialect != "chat":
        raise NotImplementedError("its OpenAI connector alone is asked")
    client = AsyncOpenAI(base_url=url + "/v1", api_key="k", max_retries=0)
    history = ChatHistory()
    for each in messages:
        history.add_message(message(each))
    return asyncio.run(run(OpenAIChatCompletion(model, async_client=client), history, look))


async def run(service, history, look):
    settings, first, chunks = OpenAIChatPromptExecutionSettings(tools=[TOOL]), None, []
    for _ in range(3):
        replies = service.get_streaming_chat_message_content(history, settings)
        came = [chunk async for chunk in replies if chunk is not None]
        reply = reduce(lambda one, other: one + other, came)
        first, chunks = first or reply, chunks or came
        history.add_message(reply)
        calls = [item for item in reply.items if isinstance(item, FunctionCallContent)]
        for call in calls:
            item = FunctionResultContent(id=call.id, result=done(look, call), function_name=call.name)
            history.add_message(ChatMessageContent(role="tool", items=[item]))
        if not calls:
            break
    usage = [chunk.metadata["usage"] for chunk in chunks if chunk.metadata.get("usage")]
    return {
        "text": first.content,
        "thinking": "".join(item.text for item in first.items if isinstance(item, ReasoningContent)),
        "finish": first.finish_reason and first.finish_reason.value,
        "input": sum(each.prompt_tokens for each in usage) if usage else None,
        "output": sum(each.completion_tokens for each in usage) if usage else None,
    }


def done(look, call):
    try:
        return look(**json.loads(call.arguments or "{}")) if call.name == "look" else "No such tool."
    except ValueError as error:
        return str(error)


def message(each):
    if each["role"] == "tool":
        if each["failed"] or each["image"]:
            raise NotImplementedError("its results are texts without a mark of a failure")
        item = FunctionResultContent(id=each["id"], result=each["text"], function_name=each["name"])
        return ChatMessageContent(role="tool", items=[item])
    items = [TextContent(text=each["text"])] if each["text"] else []
    for call in each.get("calls", ()):
        items.append(FunctionCallContent(id=call["id"], name=call["name"], arguments=call["arguments"]))
    return ChatMessageContent(role=each["role"], items=items)
