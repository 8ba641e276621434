"""Strands Agents: an `Agent` with a history; it always streams."""

import base64
import json

from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.models.gemini import GeminiModel
from strands.models.openai import OpenAIModel

MODELS = {
    "chat": lambda url, model: OpenAIModel(
        client_args={"base_url": url + "/v1", "api_key": "k", "max_retries": 0}, model_id=model
    ),
    "anthropic": lambda url, model: AnthropicModel(
        client_args={"base_url": url, "api_key": "k", "max_retries": 0}, model_id=model, max_tokens=99
    ),
    "gemini": lambda url, model: GeminiModel(
        client_args={"api_key": "k", "http_options": {"base_url": url}}, model_id=model
    ),
}


def ask(dialect, url, model, messages, look):
    *before, last = messages
    if last["role"] == "assistant":
        raise NotImplementedError("an agent's prompt is the user's")
    given = [message(each) for each in before]
    agent = Agent(MODELS[dialect](url, model), given, tools=[tool(look)], callback_handler=None)
    done = agent(last["text"])
    content = agent.messages[len(messages)]["content"]
    thoughts = [block["reasoningContent"] for block in content if "reasoningContent" in block]
    usage = done.metrics.accumulated_usage
    return {
        "text": "".join(block.get("text", "") for block in content),
        "thinking": "".join(each["reasoningText"]["text"] for each in thoughts if "reasoningText" in each),
        "finish": done.stop_reason,
        "input": usage["inputTokens"],
        "output": usage["outputTokens"],
    }


def message(each):
    if each["role"] == "tool":
        content = [{"text": each["text"]}]
        if each["image"]:
            source = {"bytes": base64.b64decode(each["image"])}
            content.append({"image": {"format": "png", "source": source}})
        status = "error" if each["failed"] else "success"
        return {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": each["id"], "status": status, "content": content}}],
        }
    content = [{"text": each["text"]}] if each["text"] or not each.get("calls") else []
    if each.get("thinking"):
        content.insert(0, {"reasoningContent": {"reasoningText": {"text": each["thinking"]}}})
    for call in each.get("calls", ()):
        try:
            arguments = json.loads(call["arguments"])
        except ValueError:
            raise NotImplementedError("an input is an object") from None
        content.append({"toolUse": {"toolUseId": call["id"], "name": call["name"], "input": arguments}})
    return {"role": each["role"], "content": content}
