"""The entries of a session's log for a model's replies and tool results; the request of a step, read back.

Spec: 07 §1.5, §6.3, §6.7; 08 §2.3; 10 §C16.2.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from harnpy.formats.json import compact_json
from harnpy.llm.native_tools import native_style
from harnpy.llm.reply import Reply
from harnpy.llm.request_messages import request_message
from harnpy.session import events as kinds
from harnpy.session.conversation import AGENT
from harnpy.session.errors import InvalidArgument
from harnpy.session.events import STEP_COMPLETED, STEP_STARTED
from harnpy.session.lifecycle import transcript_form
from harnpy.session.prompt import TOOLS, joined_system, memo_message
from harnpy.session.transcript import lifecycle_event, message_event, transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.llm.request import Request
    from harnpy.session.conversation import Conversation
    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.world import World


def completed_step(reply: Reply, iteration: int, agent: str = AGENT, **details: Any) -> Dict:
    """Return the payload of a model call's ``step_completed``: what it cost, and the reply, so that nobody
    has to ask again. ``details`` are what else transcripts show of it. Spec: 10 §C16.1."""
    usage: Dict = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
    if reply.cache_read_tokens:
        usage["cache_read_tokens"] = reply.cache_read_tokens
    if reply.cache_write_tokens:
        usage["cache_creation_tokens"] = reply.cache_write_tokens
    usage["total_tokens"] = reply.input_tokens + reply.output_tokens
    kept: Dict = {"text": reply.text, "tool_calls": reply.tool_calls}
    if reply.thinking:
        kept["thinking"] = reply.thinking
    if reply.thinking_blocks:
        kept["thinking_blocks"] = reply.thinking_blocks
    if reply.thinking_summary:
        kept["thinking_summary"] = reply.thinking_summary
    kept |= {"stop_reason": reply.stop_reason, "model": reply.model, "provider": reply.provider}
    if details:
        kept["details"] = details
    return {"agent_id": agent, "iteration": iteration, "usage": usage, "reply": kept}


def recorded_reply(step: Dict, request: Request) -> Reply:
    """Return the reply that a ``step_completed`` has: `completed_step` makes the same one of it."""
    kept, usage = step["reply"], step["usage"]
    return Reply(
        text=kept["text"],
        model=kept["model"],
        provider=kept["provider"],
        requested_model=request.model,
        input_tokens=usage["input_tokens"],
        output_tokens=usage["output_tokens"],
        cache_read_tokens=usage.get("cache_read_tokens", 0),
        cache_write_tokens=usage.get("cache_creation_tokens", 0),
        tool_calls=kept["tool_calls"],
        thinking=kept.get("thinking"),
        thinking_summary=kept.get("thinking_summary"),
        stop_reason=kept["stop_reason"],
        thinking_blocks=kept.get("thinking_blocks", []),
    )


def recorded_answer(conversation: Conversation) -> Callable[[Request], Reply] | None:
    """Return what gives the reply that the log has of the step that was just begun, if it has one.

    Spec: 10 §C16.5.
    """
    recorded = conversation.recorded_call(STEP_STARTED)
    done = None if recorded is None or recorded.end is None else recorded.end.data
    return partial(recorded_reply, done) if done is not None and "reply" in done else None


def record_reply(conversation: Conversation, reply: Reply, iteration: int, **details: Any) -> None:
    """Record a model call and what the model thought meanwhile."""
    step = completed_step(reply, iteration, conversation.agent, **details)
    conversation.fact(STEP_COMPLETED, step, reply.cost)
    for event in _thoughts(reply):
        conversation.note(event)


def reply_events(reply: Reply, **details: Any) -> list[Dict]:
    """Return a reply as transcripts show it beside its message."""
    return [transcript_form(STEP_COMPLETED, completed_step(reply, 0, **details)), *_thoughts(reply)]


def _thoughts(reply: Reply) -> Iterator[Dict]:
    for kind, text in (("private_reasoning", reply.thinking), ("thinking_summary", reply.thinking_summary)):
        if text:
            yield lifecycle_event(kind, text, role="assistant", visibility="private")


def assistant_message(reply: Reply, style: str) -> Dict:
    """Return the reply as the conversation's next message; ``style`` is that of its provider."""
    if reply.tool_calls:
        message = calls_message(reply.text, reply.tool_calls, style, reply.thinking_blocks)
    else:
        message = {"role": "assistant", "content": reply.blocks() or reply.text}
    return {**message, "reasoning": reply.thinking} if reply.thinking else message


def call_transcript(request: Request, reply: Reply, world: World, **details: Any) -> Dict:
    """Return the transcript of one call: request and reply; ``details`` as in `completed_step`."""
    style = native_style(request.provider, request.model)
    messages = [*request.messages, assistant_message(reply, style)]
    new_id = world.ids.new
    events = [message_event(message, new_id()) for message in messages]
    events += [{"id": new_id(), **event} for event in reply_events(reply, **details)]
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


def _ollama_call(call: Dict) -> Dict:
    return {"function": {"name": call["name"], "arguments": call["arguments"]}}


def _function_call(call: Dict) -> Dict:
    function = {"name": call["name"], "arguments": compact_json(call["arguments"])}
    return {"id": call["id"], "type": "function", "function": function}


# What a model was asked, from the log alone: the request of a step. Spec: 10 §C16.2.


def request_of(session: Session, step: int) -> Dict:
    """Return the request of the session's step number ``step``, counted from 1 over the whole log.

    ``{step, seq, provider, model, system, tools, messages, tail, prefill?, prompt_cache}``: ``messages`` are
    the stable ones, ``tail`` what only this request had and the log knows. A compaction's own calls don't
    count; provider and model are None where an agent, a function, named none. Raises `InvalidArgument` when
    there is no such step.
    """
    begun = steps_of(session)
    if not 1 <= step <= len(begun):
        has = {0: "no step", 1: "1 step"}.get(len(begun), f"{len(begun)} steps")
        raise InvalidArgument(f"session '{session.id}' has {has}: there is no step {step}", session.id)
    event = begun[step - 1]
    asked = event.data
    view = session.view.at(event.seq)

    def read_tools(after: int, before: int | None) -> Iterable[Event]:
        until = event.seq if before is None else before - 1
        return session.stream.read(after, until, types=kinds.CALL_TYPES)

    memo = view.register("memo")
    request: Dict = {
        "step": step,
        "seq": event.seq,
        "provider": asked.get("provider"),
        "model": asked.get("model"),
        "system": joined_system(view.register),
        "tools": view.register(TOOLS),
        "messages": [request_message(entry.message) for entry in view.entries(read_tools)],
        "tail": [] if memo is None else [memo_message(memo)],
    }
    kept: tuple[str, ...] = ("prefill", "prompt_cache")
    return request | {key: asked[key] for key in kept if key in asked}


def steps_of(session: Session) -> list[Event]:
    """Return the ``step_started`` of the session's steps, oldest first; not those of compactions."""
    begun = session.stream.read(types=frozenset({kinds.STEP_STARTED}))
    return [session.origin.own(event) for event in begun if not _is_aside(event.data)]


def _is_aside(asked: Any) -> bool:
    return "purpose" in asked
