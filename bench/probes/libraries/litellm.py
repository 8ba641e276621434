"""LiteLLM: `completion` with a stream, put together by `stream_chunk_builder`; the loop is ours."""

import json

import litellm

TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at something.",
        "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
    },
}
PREFIX = {"chat": "openai", "anthropic": "anthropic", "gemini": "gemini"}
BASE = {"chat": "/v1", "anthropic": "", "gemini": "/v1beta"}


def ask(dialect, url, model, messages, look):
    history, first = [message(each) for each in messages], None
    for _ in range(3):
        chunks = list(
            litellm.completion(
                f"{PREFIX[dialect]}/{model}",
                messages=history,
                tools=[TOOL],
                stream=True,
                stream_options={"include_usage": True},
                api_base=url + BASE[dialect],
                api_key="k",
                max_retries=0,
            )
        )
        whole = litellm.stream_chunk_builder(chunks, messages=history)
        reply = whole.choices[0].message
        first = first or whole
        history.append(reply.model_dump(exclude_none=True))
        for call in reply.tool_calls or ():
            result = run(look, call.function.name, call.function.arguments)
            history.append({"role": "tool", "tool_call_id": call.id, "content": result})
        if not reply.tool_calls:
            break
    said = first.choices[0].message
    return {
        "text": said.content,
        "thinking": getattr(said, "reasoning_content", None),
        "finish": first.choices[0].finish_reason,
        "input": first.usage.prompt_tokens,
        "output": first.usage.completion_tokens,
    }


def run(look, name, arguments):
    """Run what the library hands out, as applications do: nothing that is no JSON."""
    try:
        return look(**json.loads(arguments or "{}")) if name == "look" else "No such tool."
    except ValueError as error:
        return str(error)


def message(each):
    if each["role"] == "tool":
        if each["failed"]:
            raise NotImplementedError("its messages have no mark of a failure")
        content = [{"type": "text", "text": each["text"]}] if each["image"] else each["text"]
        if each["image"]:
            image = {"url": f"data:image/png;base64,{each['image']}"}
            content.append({"type": "image_url", "image_url": image})
        return {"role": "tool", "tool_call_id": each["id"], "name": each["name"], "content": content}
    made = {"role": each["role"], "content": each["text"]}
    if each.get("thinking"):
        made["reasoning_content"] = each["thinking"]
    if each.get("calls"):
        made["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in each["calls"]
        ]
    return made
