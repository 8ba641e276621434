"""any-llm: `completion`. It hands out a stream's deltas as they are, so that only conversations are asked."""

from any_llm import completion

PROVIDERS = {"chat": "openai", "anthropic": "anthropic", "gemini": "gemini"}
BASE = {"chat": "/v1", "anthropic": "", "gemini": ""}


def ask(dialect, url, model, messages, look):
    completion(
        model,
        [message(each) for each in messages],
        provider=PROVIDERS[dialect],
        tools=[look],
        api_base=url + BASE[dialect],
        api_key="k",
    )
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
        made["reasoning"] = {"content": each["thinking"]}
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
