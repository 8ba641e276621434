"""LangChain: chat models that stream, their chunks added up; the loop is ours."""

import json

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

MODELS = {
    "chat": lambda url, model: ChatOpenAI(
        model=model, base_url=url + "/v1", api_key="k", max_retries=0, stream_usage=True
    ),
    "anthropic": lambda url, model: ChatAnthropic(model=model, base_url=url, api_key="k", max_retries=0),
    "gemini": lambda url, model: ChatGoogleGenerativeAI(
        model=model, base_url=url, google_api_key="k", max_retries=1
    ),
}


def ask(dialect, url, model, messages, look):
    chat = MODELS[dialect](url, model).bind_tools([tool(look)])
    history, first = [message(each) for each in messages], None
    for _ in range(3):
        chunks = list(chat.stream(history))
        reply = sum(chunks[1:], chunks[0])
        first = first or reply
        history.append(reply)
        for call in reply.tool_calls:
            result = look(**call["args"]) if call["name"] == "look" else "No such tool."
            history.append(ToolMessage(result, tool_call_id=call["id"], name=call["name"]))
        if not reply.tool_calls:
            break
    known, usage = first.response_metadata, first.usage_metadata or {}
    return {
        "text": first.text,
        "thinking": "".join(
            each["reasoning"] for each in first.content_blocks if each["type"] == "reasoning"
        ),
        "finish": known.get("finish_reason") or known.get("stop_reason"),
        "input": usage.get("input_tokens"),
        "output": usage.get("output_tokens"),
    }


def message(each):
    text = each["text"]
    if each["role"] == "tool":
        content = [{"type": "text", "text": text}] if each["image"] else text
        if each["image"]:
            content.append({"type": "image", "base64": each["image"], "mime_type": "image/png"})
        status = "error" if each["failed"] else "success"
        return ToolMessage(content, tool_call_id=each["id"], name=each["name"], status=status)
    if each["role"] != "assistant":
        return {"user": HumanMessage, "system": SystemMessage}[each["role"]](text)
    if each["thinking"]:
        text = [{"type": "reasoning", "reasoning": each["thinking"]}, {"type": "text", "text": text}]
    calls, broken = [], []
    for call in each["calls"]:
        try:
            calls.append({"name": call["name"], "args": json.loads(call["arguments"]), "id": call["id"]})
        except ValueError as error:
            known = {"name": call["name"], "args": call["arguments"], "id": call["id"]}
            broken.append({**known, "error": str(error), "type": "invalid_tool_call"})
    return AIMessage(text, tool_calls=calls, invalid_tool_calls=broken)
