"""Makes `otel.jsonl` (pydantic-ai-slim 2.68.0, opentelemetry-sdk, opentelemetry-exporter-otlp-proto-common).

python make_otel.py > otel.jsonl
"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

ANSWERS = [
    ModelResponse(
        [TextPart("I look."), ToolCallPart("look", {"at": "red"}, "c1")], finish_reason="tool_call"
    ),
    ModelResponse([ThinkingPart("One look was enough."), TextPart("Red is warm.")], finish_reason="stop"),
    ModelResponse([TextPart("You are welcome.")], finish_reason="stop"),
]
spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))


def model(messages: Any, info: Any) -> ModelResponse:
    return ANSWERS.pop(0)


agent = Agent(FunctionModel(model), system_prompt="Be short.", name="colours")
agent.instrument = InstrumentationSettings(tracer_provider=provider)


@agent.tool_plain
def look(at: str) -> str:
    return "warm"


async def main() -> None:
    first = await agent.run("What is red?")
    await agent.run("Thank you.", message_history=first.all_messages())


def as_hex(value: Any) -> Any:
    """The ids of OTLP's JSON are in hex, unlike those of protobuf's."""
    if isinstance(value, list):
        return [as_hex(each) for each in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {k: base64.b64decode(v).hex() if k in ids else as_hex(v) for k, v in value.items()}


asyncio.run(main())
for span in spans.get_finished_spans():
    print(json.dumps(as_hex(MessageToDict(encode_spans([span])))))
