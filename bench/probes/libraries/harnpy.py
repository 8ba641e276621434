"""harnpy: a session, and the agent loop of its runtime."""

import os
from pathlib import Path

from harnpy import AgentDef, LoopFactory, runtime, tool

PROTOCOLS = {"chat": "openai", "anthropic": "anthropic", "gemini": "gemini"}
PROVIDER = '[providers.{name}]\nprotocol = "{protocol}"\nbase_url = "{url}/v1"\nauth_envs = ["LOCAL_KEY"]\n'
CAN = '[[capabilities.provider.{name}]]\nmodel_match = "*"\nnative_tools = true\nvision_supported = true\n'


def ask(dialect, url, model, messages, look):
    Path("harn.toml").write_text("".join(CAN.format(name=name) for name in PROTOCOLS))
    Path("providers.toml").write_text(
        "".join(
            PROVIDER.format(name=name, url=url, protocol=protocol) for name, protocol in PROTOCOLS.items()
        )
    )
    os.environ |= {"LOCAL_KEY": "sk-dialects", "HARN_PROVIDERS_CONFIG": str(Path("providers.toml").resolve())}
    # Not strict: a history of another program is stored as it is.
    with runtime("memory:", agents=LoopFactory(tools=[tool(look)]), strict=False) as desk:
        session = desk.create(AgentDef("a", model=f"{dialect}/{model}"), id="s")
        *before, last = messages
        session.add_history([message(each) for each in before])
        if last["role"] == "user":
            turn = desk.send("s", last["text"], llm_retries=0)
        else:
            session.add_history(message(last))
            turn = desk.send("s", None, llm_retries=0)
    first = next(each for each in turn.messages if each["role"] == "assistant")
    blocks = first["content"] if isinstance(first["content"], list) else []
    thoughts = [text(block["thinking"]) for block in blocks if block["type"] == "thinking"]
    return {
        "text": turn.text,
        "thinking": "".join(thoughts) or first.get("reasoning_content"),
        "finish": turn.finish_reason if turn.stop_reason == "completed" else turn.stop_reason,
        "input": turn.usage["input_tokens"],
        "output": turn.usage["output_tokens"],
    }


def text(thinking):
    """Return a thought's text. Mistral's are lists of texts, and kept so."""
    return thinking if isinstance(thinking, str) else "".join(part["text"] for part in thinking)


def message(each):
    if each["role"] == "tool":
        content = [{"type": "text", "text": each["text"]}]
        if each["image"]:
            content.append({"type": "image", "base64": each["image"], "media_type": "image/png"})
        known = {"role": "tool", "tool_call_id": each["id"], "content": content}
        return {**known, "is_error": True} if each["failed"] else known
    made = {"role": each["role"], "content": each["text"]}
    if each.get("thinking"):
        origin = {
            "dialect": "openai",
            "base_url": "https://api.deepseek.com/v1",
            "model": "deepseek-reasoner",
        }
        made |= {"reasoning_content": each["thinking"], "origin": origin}
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
