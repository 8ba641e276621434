"""DSPy: a call of `LM` with messages. It isn't streamed, so that only conversations are asked."""

import dspy

PREFIX = {"chat": "openai", "anthropic": "anthropic", "gemini": "gemini"}
BASE = {"chat": "/v1", "anthropic": "", "gemini": "/v1beta"}


def ask(dialect, url, model, messages, look):
    base = url + BASE[dialect]
    chat = dspy.LM(f"{PREFIX[dialect]}/{model}", api_base=base, api_key="k", cache=False, num_retries=0)
    given = [message(each) for each in messages]
    if len(given) == 1:
        raise NotImplementedError("it streams the fields of a signature")
    chat(messages=given)
    return {}


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
