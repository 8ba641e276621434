"""AutoGen: the model clients' `create_stream`; the loop is ours."""

import asyncio
import json

from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import FunctionTool
from autogen_ext.models.anthropic import AnthropicChatCompletionClient
from autogen_ext.models.openai import OpenAIChatCompletionClient

INFO = {"vision": True, "function_calling": True, "json_output": True, "structured_output": True}
CLIENTS = {
    "chat": lambda url, model: OpenAIChatCompletionClient(
        model=model, base_url=url + "/v1", api_key="k", max_retries=0, model_info={**INFO, "family": "gpt-4o"}
    ),
    "anthropic": lambda url, model: AnthropicChatCompletionClient(
        model=model,
        base_url=url,
        api_key="k",
        max_retries=0,
        model_info={**INFO, "family": "claude-4-sonnet"},
    ),
}


def ask(dialect, url, model, messages, look):
    if dialect not in CLIENTS:
        raise NotImplementedError("it has no client of this dialect")
    return asyncio.run(run(CLIENTS[dialect](url, model), [message(each) for each in messages], look))


async def run(client, history, look):
    first = None
    for _ in range(3):
        options = {"include_usage": True} if isinstance(client, OpenAIChatCompletionClient) else {}
        stream = client.create_stream(history, tools=[FunctionTool(look, "Look at something.")], **options)
        reply = [each async for each in stream][-1]
        first = first or reply
        if isinstance(reply.content, str):
            break
        history.append(AssistantMessage(content=reply.content, thought=reply.thought, source="a"))
        results = [
            FunctionExecutionResult(content=done(look, call), call_id=call.id, name=call.name)
            for call in reply.content
        ]
        history.append(FunctionExecutionResultMessage(content=results))
    return {
        "text": first.content if isinstance(first.content, str) else "",
        "thinking": first.thought,
        "finish": first.finish_reason,
        "input": first.usage.prompt_tokens,
        "output": first.usage.completion_tokens,
    }


def done(look, call):
    try:
        return look(**json.loads(call.arguments or "{}")) if call.name == "look" else "No such tool."
    except ValueError as error:
        return str(error)


def message(each):
    text = each["text"]
    if each["role"] == "tool":
        if each["image"]:
            raise NotImplementedError("its results are texts")
        result = FunctionExecutionResult(
            content=text, call_id=each["id"], name=each["name"], is_error=each["failed"]
        )
        return FunctionExecutionResultMessage(content=[result])
    if each["role"] == "system":
        return SystemMessage(content=text)
    if each["role"] == "user":
        return UserMessage(content=text, source="u")
    calls = [FunctionCall(**call) for call in each["calls"]]
    return AssistantMessage(content=calls or text, thought=each["thinking"] or None, source="a")
