"""OpenAI's Agents SDK: `Runner.run_streamed` with its LiteLLM model, which speaks all three dialects."""

import asyncio

from agents import Agent, ModelSettings, Runner, function_tool, set_tracing_disabled
from agents.extensions.models.litellm_model import LitellmModel

set_tracing_disabled(True)
USAGE = ModelSettings(include_usage=True)
PREFIX = {"chat": "openai", "anthropic": "anthropic", "gemini": "gemini"}
BASE = {"chat": "/v1", "anthropic": "", "gemini": "/v1beta"}


def ask(dialect, url, model, messages, look):
    chat = LitellmModel(f"{PREFIX[dialect]}/{model}", base_url=url + BASE[dialect], api_key="k")
    agent = Agent(name="a", model=chat, tools=[function_tool(look)], model_settings=USAGE)
    return asyncio.run(run(agent, [item for each in messages for item in items(each)]))


async def run(agent, given):
    running = Runner.run_streamed(agent, given, max_turns=3)
    async for _ in running.stream_events():
        pass
    first = running.raw_responses[0]
    parts = [part for item in first.output for part in getattr(item, "content", None) or ()]
    thoughts = [part.text for item in first.output if item.type == "reasoning" for part in item.summary]
    return {
        "text": "".join(part.text for part in parts if part.type == "output_text"),
        "thinking": "".join(thoughts),
        "finish": None,
        "input": first.usage.input_tokens,
        "output": first.usage.output_tokens,
    }


def items(each):
    text = each["text"]
    if each["role"] == "tool":
        if each["failed"]:
            raise NotImplementedError("its items have no mark of a failure")
        output = [{"type": "input_text", "text": text}] if each["image"] else text
        if each["image"]:
            output.append({"type": "input_image", "image_url": f"data:image/png;base64,{each['image']}"})
        yield {"type": "function_call_output", "call_id": each["id"], "output": output}
        return
    if each.get("thinking"):
        summary = [{"type": "summary_text", "text": each["thinking"]}]
        yield {"type": "reasoning", "id": "r", "summary": summary}
    if text or not each.get("calls"):
        yield {"role": each["role"], "content": text}
    for call in each.get("calls", ()):
        known = {"name": call["name"], "arguments": call["arguments"]}
        yield {"type": "function_call", "call_id": call["id"], **known}
