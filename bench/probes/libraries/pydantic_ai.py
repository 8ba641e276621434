"""Pydantic AI: an `Agent` with a history, whose requests are streamed."""

import base64

from anthropic import AsyncAnthropic
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.direct import model_request_sync
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

MODELS = {
    "chat": lambda url, model: OpenAIChatModel(
        model, provider=OpenAIProvider(base_url=url + "/v1", api_key="k")
    ),
    "anthropic": lambda url, model: AnthropicModel(
        model, provider=AnthropicProvider(anthropic_client=AsyncAnthropic(base_url=url, api_key="k"))
    ),
    "gemini": lambda url, model: GoogleModel(model, provider=GoogleProvider(api_key="k", base_url=url)),
}


def ask(dialect, url, model, messages, look):
    chat = MODELS[dialect](url, model)
    *before, last = [message(each) for each in messages]
    if messages[-1]["role"] == "assistant":
        model_request_sync(chat, [*before, last])
        return {}
    agent = Agent(chat, tools=[look])
    run = agent.run_sync(messages[-1]["text"], message_history=before, event_stream_handler=drained)
    first = next(each for each in run.new_messages() if each.kind == "response")
    return {
        "text": "".join(part.content for part in first.parts if part.part_kind == "text"),
        "thinking": "".join(part.content for part in first.parts if part.part_kind == "thinking"),
        "finish": (first.provider_details or {}).get("finish_reason") or first.finish_reason,
        "input": first.usage.input_tokens,
        "output": first.usage.output_tokens,
    }


async def drained(_, events):
    async for _event in events:
        pass


def message(each):
    text = each["text"]
    if each["role"] == "tool":
        picture = BinaryContent(base64.b64decode(each["image"]), media_type="image/png")
        outcome = "failed" if each["failed"] else "success"
        content = [text, picture] if each["image"] else text
        return ModelRequest([ToolReturnPart(each["name"], content, each["id"], outcome=outcome)])
    if each["role"] != "assistant":
        return ModelRequest([{"user": UserPromptPart, "system": SystemPromptPart}[each["role"]](text)])
    thoughts = [ThinkingPart(each["thinking"], provider_name="deepseek")] if each["thinking"] else []
    texts = [TextPart(text)] if text or not each["calls"] else []
    calls = [ToolCallPart(call["name"], call["arguments"], call["id"]) for call in each["calls"]]
    return ModelResponse([*thoughts, *texts, *calls])
