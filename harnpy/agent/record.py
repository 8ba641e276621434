"""What a transcript keeps of a model's reply. Spec: 07 §1.5, §6.3; 08 §2.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.llm.messages import compact_json
from harnpy.session.transcript import lifecycle_event, message_event, transcript

if TYPE_CHECKING:
    from harnpy.llm.reply import Reply
    from harnpy.session.effects import Effects

    Dict = dict[str, Any]


def reply_events(reply: Reply, **payload: Any) -> list[Dict]:
    """The lifecycle events of a reply; ``payload`` adds to the metadata of the first."""
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


def assistant_message(reply: Reply) -> Dict:
    """The reply as the message that continues its conversation."""
    message: Dict = {"role": "assistant", "content": reply.blocks() or reply.text}
    if reply.tool_calls:
        calls = [_function_call(call) for call in reply.tool_calls]
        message = {"role": "assistant", "content": reply.text, "tool_calls": calls}
    return {**message, "reasoning": reply.thinking} if reply.thinking else message


def call_transcript(sent: list[Dict], reply: Reply, effects: Effects) -> Dict:
    """The transcript of one call: what was sent, and what came back."""
    messages = [*sent, assistant_message(reply)]
    new_id, show = effects.new_id, effects.show
    events = [message_event(message, new_id(), show) for message in messages]
    events += [{"id": new_id(), **event} for event in reply_events(reply)]
    return transcript(new_id(), messages, events, [], state="active")


def _function_call(call: Dict) -> Dict:
    function = {"name": call["name"], "arguments": compact_json(call["arguments"])}
    return {"id": call["id"], "type": "function", "function": function}
