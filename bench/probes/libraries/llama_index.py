"""LlamaIndex: the models' `stream_chat_with_tools`; the loop is ours."""

import base64
import json

from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock
from llama_index.core.tools import FunctionTool
from llama_index.llms.anthropic import Anthropic
from llama_index.llms.google_genai import GoogleGenAI
from llama_index.llms.openai import OpenAI

MODELS = {
    "chat": lambda url, model: OpenAI(
        model,
        api_base=url + "/v1",
        api_key="k",
        max_retries=0,
        additional_kwargs={"stream_options": {"include_usage": True}},
    ),
    "anthropic": lambda url, model: Anthropic(model, base_url=url, api_key="k", max_retries=0),
    "gemini": lambda url, model: GoogleGenAI(
        model, api_key="k", http_options={"base_url": url}, max_retries=1
    ),
}


def ask(dialect, url, model, messages, look):
    chat, tool = MODELS[dialect](url, model), FunctionTool.from_defaults(look)
    history, first = [message(each) for each in messages], None
    for _ in range(3):
        reply = list(chat.stream_chat_with_tools([tool], chat_history=history))[-1]
        first = first or reply
        history.append(reply.message)
        calls = chat.get_tool_calls_from_response(reply, error_on_no_tool_call=False)
        for call in calls:
            result = look(**call.tool_kwargs) if call.tool_name == "look" else "No such tool."
            known = {"tool_call_id": call.tool_id, "name": call.tool_name}
            history.append(ChatMessage(result, role="tool", additional_kwargs=known))
        if not calls:
            break
    return {
        "text": first.message.content,
        "thinking": "".join(
            block.content or "" for block in first.message.blocks if isinstance(block, ThinkingBlock)
        ),
        "finish": finish(first),
        **tokens(first),
    }


def finish(reply):
    raw = reply.raw if isinstance(reply.raw, dict) else dict(reply.raw)
    choices = raw.get("choices") or [{}]
    known = choices[0] if isinstance(choices[0], dict) else dict(choices[0])
    reason = known.get("finish_reason") or raw.get("finish_reason")
    return reason or reply.message.additional_kwargs.get("stop_reason")


def tokens(reply):
    """Return what the reply, or its message, has counted."""
    counted, usage = reply.additional_kwargs, reply.message.additional_kwargs.get("usage")
    if usage:
        return {"input": usage["input_tokens"], "output": usage["output_tokens"]}
    prompt, total = counted.get("prompt_tokens"), counted.get("total_tokens")
    return {"input": prompt, "output": total - prompt if total else None}


def message(each):
    text = each["text"]
    if each["role"] == "tool":
        if each["failed"]:
            raise NotImplementedError("its messages have no mark of a failure")
        blocks = [TextBlock(text=text)]
        if each["image"]:
            blocks.append(ImageBlock(image=base64.b64decode(each["image"]), image_mimetype="image/png"))
        known = {"tool_call_id": each["id"], "name": each["name"]}
        return ChatMessage(role="tool", blocks=blocks, additional_kwargs=known)
    blocks = [ThinkingBlock(content=each["thinking"])] if each.get("thinking") else []
    blocks += [TextBlock(text=text)] if text or not each.get("calls") else []
    for call in each.get("calls", ()):
        try:
            arguments = json.loads(call["arguments"])
        except ValueError:
            arguments = call["arguments"]
        blocks.append(ToolCallBlock(tool_call_id=call["id"], tool_name=call["name"], tool_kwargs=arguments))
    return ChatMessage(role=each["role"], blocks=blocks)
