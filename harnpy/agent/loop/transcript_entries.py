"""What a transcript keeps of replies and tool results. Spec: 07 §1.5, §6.3, §6.7; 08 §2.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.llm.native_tools import native_style
from harnpy.session.transcript import lifecycle_event, message_event, transcript
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request
    from harnpy.reading.dicts import Dict
    from harnpy.world import World


def reply_events(reply: Reply, **payload: Any) -> list[Dict]:
    """Return the lifecycle events of a reply; ``payload`` adds to the metadata of the first."""
    metadata = {
        "model": reply.model,
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "tool_calls": reply.tool_calls,
        "thinking_summary": reply.thinking_summary,
        "structural_experiment": None,
        **payload,
    }
    events = [lifecycle_event("provider_payload", role="assistant", metadata=metadata)]
    for kind, text in (("private_reasoning", reply.thinking), ("thinking_summary", reply.thinking_summary)):
        if text:
            events.append(lifecycle_event(kind, text, role="assistant", visibility="private"))
    return events


def assistant_message(reply: Reply, style: str) -> Dict:
    """Return the reply as the conversation's next message; ``style`` is that of its provider."""
    if reply.tool_calls:
        message = calls_message(reply.text, reply.tool_calls, style, reply.thinking_blocks)
    else:
        message = {"role": "assistant", "content": reply.blocks() or reply.text}
    return {**message, "reasoning": reply.thinking} if reply.thinking else message


def call_transcript(request: Request, reply: Reply, world: World, **payload: Any) -> Dict:
    """Return the transcript of one call: request and reply; ``payload`` as in `reply_events`."""
    style = native_style(request.provider, request.model)
    messages = [*request.messages, assistant_message(reply, style)]
    new_id = world.ids.new
    events = [message_event(message, new_id()) for message in messages]
    events += [{"id": new_id(), **event} for event in reply_events(reply, **payload)]
    return transcript(new_id(), messages, events, [], state="active")


def calls_message(text: str, calls: list[Dict], style: str, thoughts: Sequence[Dict] = ()) -> Dict:
    """Return the assistant's message with tool calls, in a provider's ``style``. Spec: 07 §6.7.

    ``thoughts`` are blocks that Anthropic requires again before the calls that they led to.
    """
    if style == "anthropic":
        blocks = [*thoughts]
        blocks += [{"type": "text", "text": text}] if text else []
        blocks += [
            {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]}
            for call in calls
        ]
        return {"role": "assistant", "content": blocks}
    shaped = _ollama_call if style == "ollama" else _function_call
    return {"role": "assistant", "content": text, "tool_calls": [shaped(call) for call in calls]}


def result_message(call: Dict, text: str, style: str) -> Dict:
    """Return a tool's result as a message in a provider's ``style``."""
    if style == "anthropic":
        block = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
        return {"role": "user", "content": [block]}
    if style == "ollama":
        return {"role": "tool", "tool_name": call["name"], "content": text}
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def _ollama_call(call: Dict) -> Dict:
    return {"function": {"name": call["name"], "arguments": call["arguments"]}}


def _function_call(call: Dict) -> Dict:
    function = {"name": call["name"], "arguments": compact_json(call["arguments"])}
    return {"id": call["id"], "type": "function", "function": function}
