"""The entries of a session's log for a model's replies and tool results; the request of a step, read back.

Spec: 07 §1.5, §6.3, §6.7; 08 §2.3; 10 §C16.2.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from harnpy.formats.json import ordered_json
from harnpy.llm.reply import Reply
from harnpy.llm.request_messages import CALL_KEYS, read_arguments, request_message
from harnpy.session import events as kinds
from harnpy.session.conversation import AGENT
from harnpy.session.errors import InvalidArgument
from harnpy.session.events import STEP_COMPLETED, STEP_STARTED
from harnpy.session.lifecycle import transcript_form
from harnpy.session.prompt import TOOLS, joined_system, memo_message
from harnpy.session.transcript import lifecycle_event, message_event, transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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
    if reply.cache_hour_tokens:
        usage["cache_hour_tokens"] = reply.cache_hour_tokens
    usage["total_tokens"] = reply.input_tokens + reply.output_tokens
    if reply.price is None:
        usage["unpriced_calls"] = 1
    kept: Dict = {"text": reply.text, "tool_calls": reply.tool_calls}
    if reply.thinking:
        kept["thinking"] = reply.thinking
    if reply.parts:
        kept["parts"] = reply.parts
    if reply.more:
        kept["more"] = reply.more
    if _marks(reply):
        kept["origin"] = reply.origin
    if reply.thinking_summary:
        kept["thinking_summary"] = reply.thinking_summary
    kept |= {"stop_reason": reply.stop_reason, "model": reply.model, "provider": reply.provider}
    if reply.refusal:
        kept["refusal"] = reply.refusal
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
        cache_hour_tokens=usage.get("cache_hour_tokens", 0),
        tool_calls=kept["tool_calls"],
        thinking=kept.get("thinking"),
        thinking_summary=kept.get("thinking_summary"),
        stop_reason=kept["stop_reason"],
        parts=kept.get("parts") or _former_parts(kept),
        more=kept.get("more", {}),
        origin=kept.get("origin"),
        refusal=kept.get("refusal"),
    )


def _former_parts(kept: Dict) -> list[Dict]:
    """Return the blocks of a reply as builds before 0.2 kept them: thinking comes first."""
    thoughts = kept.get("thinking_blocks")
    if not thoughts:
        return []
    text = [{"type": "text", "text": kept["text"]}] if kept["text"] else []
    return [*thoughts, *text, *map(_call_block, kept["tool_calls"])]


def recorded_answer(conversation: Conversation) -> Callable[[Request], Reply] | None:
    """Return what gives the reply that the log has of the step that was just begun, if it has one.

    Spec: 10 §C16.5.
    """
    recorded = conversation.recorded_call(STEP_STARTED)
    done = None if recorded is None or recorded.end is None else recorded.end.data
    return partial(recorded_reply, done) if done is not None and "reply" in done else None


def record_reply(
    conversation: Conversation, reply: Reply, iteration: int, cost: float, **details: Any
) -> None:
    """Record a model call, its cost, and what the model thought meanwhile."""
    step = completed_step(reply, iteration, conversation.agent, **details)
    conversation.fact(STEP_COMPLETED, step, cost)
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
        message = calls_message(reply, reply.text, reply.tool_calls, style)
    elif reply.parts or reply.more:
        message = text_message(reply, reply.text)
    else:
        message = {"role": "assistant", "content": reply.blocks() or reply.text}
    return {**message, "reasoning": reply.thinking} if reply.thinking and "origin" not in message else message


def call_transcript(request: Request, reply: Reply, world: World, **details: Any) -> Dict:
    """Return the transcript of one call: request and reply; ``details`` as in `completed_step`."""
    messages = [*request.messages, assistant_message(reply, request.style)]
    new_id = world.ids.new
    events = [message_event(message, new_id()) for message in messages]
    events += [{"id": new_id(), **event} for event in reply_events(reply, **details)]
    return transcript(new_id(), messages, events, [], state="active")


def calls_message(reply: Reply, text: str, calls: list[Dict], style: str) -> Dict:
    """Return the assistant's message with those ``calls`` of a reply, in a provider's ``style``.

    What only its service understands stands where that has put it. Spec: 07 §1.17, §6.7.
    """
    made = {call["id"]: call for call in calls}
    parts = [part for part in reply.parts if part.get("type") != "tool_use" or made.pop(part["id"], None)]
    if parts and text != reply.text:
        parts.insert(0, {"type": "text", "text": text.removesuffix(reply.text)})
    left = list(made.values())
    if style == "anthropic":
        blocks = parts or ([{"type": "text", "text": text}] if text else [])
        return {"role": "assistant", "content": blocks + list(map(_call_block, left)), **_marks(reply)}
    message = {"role": "assistant", "content": parts or text, **_marks(reply)}
    shaped = _ollama_call if style == "ollama" else _function_call
    return {**message, "tool_calls": list(map(shaped, left))} if left else message


def text_message(reply: Reply, text: str) -> Dict:
    """Return the assistant's message of a reply without calls."""
    return {"role": "assistant", "content": reply.parts or text, **_marks(reply)}


#: How many characters of a reply in text format the history keeps.
_HISTORY_CAP = 131072


def recorded(text: str) -> str:
    """Return a reply's text as the history keeps it."""
    text = text.strip()
    if len(text) <= _HISTORY_CAP:
        return text
    note = f"<assistant turn truncated: raw length {len(text)} chars exceeded history cap ({_HISTORY_CAP})>"
    return f"{text[:_HISTORY_CAP]}\n\n{note}"


def elided(names: list[str], malformed: int) -> str:
    """Return what the history keeps of a turn with unreadable calls."""
    return (
        f"<assistant turn partially elided: {len(names)} tool call(s) executed successfully "
        f"({', '.join(names)}), {malformed} malformed tool call(s) rejected. See tool results and parse "
        "errors that follow.>"
    )


def _marks(reply: Reply) -> Dict:
    """Return the keys of a message that only its service understands, and which one that is."""
    own = reply.parts or reply.more or not all(map(CALL_KEYS.issuperset, reply.tool_calls))
    return {**reply.more, "origin": reply.origin} if own and reply.origin else {}


def _own_keys(call: Dict) -> Dict:
    return {key: value for key, value in call.items() if key not in CALL_KEYS}


def _call_block(call: Dict) -> Dict:
    given = read_arguments(call.get("written", call["arguments"]))
    return {**_own_keys(call), "type": "tool_use", "id": call["id"], "name": call["name"], "input": given}


def _ollama_call(call: Dict) -> Dict:
    return {**_own_keys(call), "function": {"name": call["name"], "arguments": call["arguments"]}}


def _function_call(call: Dict) -> Dict:
    written = call.get("written")
    text = ordered_json(call["arguments"]) if written is None else written
    function = {"name": call["name"], "arguments": text}
    return {**_own_keys(call), "id": call["id"], "type": "function", "function": function}


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
        "messages": [request_message(entry.spoken) for entry in view.entries(read_tools)],
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
