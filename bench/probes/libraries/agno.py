"""Agno: `Agent.run` with a stream of events."""

import base64

from agno.agent import Agent
from agno.media import Image
from agno.models.anthropic import Claude
from agno.models.google import Gemini
from agno.models.message import Message
from agno.models.openai import OpenAIChat

MODELS = {
    "chat": lambda url, model: OpenAIChat(id=model, base_url=url + "/v1", api_key="k", max_retries=0),
    "anthropic": lambda url, model: Claude(id=model, api_key="k", client_params={"base_url": url}),
    "gemini": lambda url, model: Gemini(
        id=model, api_key="k", client_params={"http_options": {"base_url": url}}
    ),
}


def ask(dialect, url, model, messages, look):
    agent = Agent(model=MODELS[dialect](url, model), tools=[look], telemetry=False)
    given = [part for each in messages for part in kept(each)]
    events = list(agent.run(given, stream=True, stream_events=True, yield_run_output=True))
    run = events[-1]
    if not hasattr(run, "messages"):
        raise RuntimeError(run.content)
    said = [each for each in run.messages if each.role == "assistant" and not each.from_history]
    first = said[len([each for each in messages if each["role"] == "assistant"])]
    return {
        "text": first.content,
        "thinking": first.reasoning_content,
        "finish": (first.provider_data or {}).get("finish_reason"),
        "input": first.metrics.input_tokens,
        "output": first.metrics.total_tokens - first.metrics.input_tokens,
    }


def kept(each):
    """Yield a message as Agno keeps it: a result's images are the user's, behind it."""
    if each["role"] == "tool":
        known = {"tool_call_id": each["id"], "tool_name": each["name"], "tool_call_error": each["failed"]}
        yield Message(role="tool", content=each["text"], **known)
        if each["image"]:
            image = Image(content=base64.b64decode(each["image"]), mime_type="image/png")
            yield Message(role="user", content="What the tool made.", images=[image])
        return
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": call["arguments"]},
        }
        for call in each.get("calls", ())
    ]
    thought = each.get("thinking") or None
    yield Message(
        role=each["role"], content=each["text"], reasoning_content=thought, tool_calls=calls or None
    )
