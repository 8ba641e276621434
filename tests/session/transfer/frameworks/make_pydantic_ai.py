"""Makes `pydantic_ai.json`: python make_pydantic_ai.py > pydantic_ai.json (pydantic-ai-slim 2.68.0)."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z/C/HgAGgwJ/lK3Q6wAAAABJRU5ErkJggg=="
)
ANSWERS = [
    ModelResponse(
        parts=[
            ThinkingPart("Two looks are needed.", signature="c2ln", provider_name="anthropic"),
            TextPart("I look at both."),
            ToolCallPart("look", {"at": "red"}, "c1"),
            ToolCallPart("look", '{"at": "blue"}', "c2"),
        ],
        usage=RequestUsage(input_tokens=12, output_tokens=7),
    ),
    ModelResponse(parts=[ToolCallPart("look", {"where": "green"}, "c3")]),
    ModelResponse(parts=[TextPart("Red is warm, blue is not a number.")], finish_reason="stop"),
]


def model(messages: Any, info: Any) -> ModelResponse:
    return ANSWERS.pop(0)


agent = Agent(FunctionModel(model), system_prompt="Be short.", instructions="Answer in one sentence.")


@agent.tool_plain
def look(at: str) -> Any:
    return {"warmth": float("nan")} if at == "blue" else ["warm"]


async def main() -> None:
    asked = [
        "What is in it?",
        ImageUrl("https://example.com/a.png"),
        BinaryContent(PNG, media_type="image/png"),
        DocumentUrl("https://example.com/a.pdf"),
        TextContent("extra", metadata={"a": 1}),
    ]
    run = await agent.run(asked)
    print(ModelMessagesTypeAdapter.dump_json(run.all_messages(), indent=1).decode())


asyncio.run(main())
