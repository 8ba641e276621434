"""Messages: who says them, and their tool calls and results in every shape. Spec: 10 §A1.3, §A1.8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.dicts import dicts_at
from harnpy.formats.tool_messages import (
    Call,
    LateResults,
    calls_of,
    matched,
    results_of,
    with_calls,
    with_results,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harnpy.formats.dicts import Dict

# Messages by who says them, in harnpy's shape. Spec: 10 §A1.3.


Message = dict[str, Any]


def user(content: str | list[Any]) -> Message:
    """Return a user's message: a text, or a list of parts."""
    return {"role": "user", "content": content}


def system(content: str | list[Any]) -> Message:
    """Return a system message. A strict session's log takes none: set its ``system_prompt``."""
    return {"role": "system", "content": content}


def assistant(
    content: str | list[Any] = "",
    *,
    tool_calls: list[Message] | None = None,
    reasoning: str | None = None,
    thinking_blocks: list[Message] | None = None,
) -> Message:
    """Return a model's answer, with the calls that it makes."""
    more = {"tool_calls": tool_calls, "reasoning": reasoning, "thinking_blocks": thinking_blocks}
    return {"role": "assistant", "content": content, **{key: value for key, value in more.items() if value}}


def tool(name: str, tool_id: str, content: str | list[Any]) -> Message:
    """Return the result of a call; ``tool_id`` is the call's id."""
    return {"role": "tool", "name": name, "tool_call_id": tool_id, "content": content}


def as_dict(message: Any) -> Any:
    """Return a message object, which has a role and a content, as a dict; all else as it is."""
    if not isinstance(message, dict) and hasattr(message, "role") and hasattr(message, "content"):
        return {"role": message.role, "content": message.content}
    return message


def result_of_call(call: Call, text: str) -> Message:
    """Return a result of ``call``, in the shape that answers its message."""
    if call.block:
        block = {"type": "tool_result", "tool_use_id": call.id, "content": text}
        return {"role": "user", "content": [block]}
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def has_payload(message: Message) -> bool:
    """Return whether an assistant's message says anything. Spec: 10 §A1.3."""
    if message.get("tool_calls") or message.get("thinking_blocks"):
        return True
    if any(_is_said(message.get(key)) for key in ("content", "reasoning")):
        return True
    return any(_is_said(part.get("text")) for part in dicts_at(message, "parts"))


def _is_said(content: Any) -> bool:
    if isinstance(content, list):
        return any(
            _is_said(part if isinstance(part, str) else part.get("text", "x"))
            for part in content
            if isinstance(part, str | dict)
        )
    return isinstance(content, str) and bool(content.strip())


# Tool repair: every call of a conversation gets its result right behind it, or goes. Spec: 10 §A1.8, §C5.
#
# A conversation in order stays as it is, message by message.


class Record(NamedTuple):
    """A call as the log knows it: the events of its start and its end, and their data."""

    tool: str
    args: Any
    key: str | None
    completed: Any = None
    output: str | None = None
    error: str | None = None

    def text(self) -> str:
        """Return the result as the model is shown it."""
        text = self.output or ""
        if self.error and self.error not in text:
            text = f"{text}\nError: {self.error}"
        return text.strip()


class Answer(NamedTuple):
    """A result behind its call: number ``source`` of the messages, or one made from ``record``."""

    message: Message
    source: int | None
    call: Call
    record: Record | None


class Round(NamedTuple):
    """An assistant's message as it is after the repair, and its answers. Message number ``end`` is the next
    that isn't a result."""

    message: Message
    answers: list[Answer]
    end: int


def rounds(
    messages: Sequence[Message], lookup: Callable[[int, int], dict[str, Record]], *, moves_up: bool = True
) -> list[Any]:
    """Return the messages in order as (number, message), with a `Round` for each message that calls tools.

    A result further behind ``moves_up`` to its call; those that answer none are gone. ``lookup(at,
    end)`` returns what the log knows of the calls of message number ``at``; the next that isn't a result is
    number ``end``.
    """
    found: list[Any] = []
    late = LateResults(messages if moves_up else ())
    at = 0
    while at < len(messages):
        message = messages[at]
        answered = results_of(message)
        end = at + 1
        if answered is not None:
            rest = with_results(message, [None] * len(answered))
            if rest is not None:
                found.append((at, rest))
        elif calls := calls_of(message):
            while end < len(messages) and results_of(messages[end]) is not None:
                end += 1
            found.append((at, _round(messages, at, end, calls, late, lookup)))
        else:
            found.append((at, message))
        at = end
    return found


def _round(
    messages: Sequence[Message],
    at: int,
    end: int,
    calls: list[Call],
    late: LateResults,
    lookup: Callable[[int, int], dict[str, Record]],
) -> Round:
    matches = matched(calls, [results_of(messages[number]) or [] for number in range(at + 1, end)])
    answered = {call for match in matches for call in match if call is not None}
    missing = [n for n, call in enumerate(calls) if n not in answered and call.id is not None]
    answers: list[tuple[int, Answer]] = []
    for number in missing[:]:
        moved = late.take(str(calls[number].id), at, end)
        if moved is not None:
            missing.remove(number)
            answered.add(number)
            answers.append((number, Answer(*moved, calls[number], None)))
    records = lookup(at, end) if missing else {}
    for number, match in enumerate(matches, at + 1):
        ids = [None if call is None else calls[call].id or "" for call in match]
        kept = with_results(messages[number], ids)
        if kept is not None:
            first = min((call for call in match if call is not None), default=len(calls))
            call = calls[first] if first < len(calls) else calls[0]
            answers.append((first, Answer(kept, number, call, None)))
    for number in missing:
        record = records.get(calls[number].id or "")
        if record is not None and record.completed is not None:
            made = result_of_call(calls[number], record.text())
            answers.append((number, Answer(made, None, calls[number], record)))
            answered.add(number)
    answers.sort(key=lambda item: item[0])
    message = with_calls(messages[at], [number in answered for number in range(len(calls))])
    return Round(message, [answer for _, answer in answers], end)


# The messages that tell a model what its calls came to. Spec: 07 §6.7.


#: How messages from the runtime to the model begin.
_FEEDBACK = "<runtime_feedback "
_RESULTS_KIND = "tool_results"
#: How the one of them begins that has results of tools.
RESULTS = f'{_FEEDBACK}kind="{_RESULTS_KIND}">'


def styled_result(call: Dict, content: str | list[Dict], style: str, failed: bool = False) -> Dict:
    """Return a tool's result as a message in a provider's ``style``."""
    said: Dict = {"content": content, "is_error": True} if failed else {"content": content}
    if style == "anthropic":
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], **said}]}
    if style == "ollama":
        return {"role": "tool", "tool_name": call["name"], **said}
    return {"role": "tool", "tool_call_id": call["id"], **said}


def results_message(results: Iterable[tuple[str, str]]) -> Dict:
    """Return the results of a text-format step, (tool, text) each, as one message."""
    return feedback(_RESULTS_KIND, "\n\n".join(tool_result(name, text) for name, text in results))


def tool_result(name: str, text: str) -> str:
    return f"[result of {name}]\n{text}\n[end of {name} result]"


def is_feedback(message: Message) -> bool:
    """Return whether a message is what a loop tells its model by itself."""
    return message.get("role") == "user" and str(message.get("content")).startswith(_FEEDBACK)


def feedback(kind: str, text: str) -> Dict:
    """Return a message from the runtime to the model."""
    from html import escape

    kind = escape(kind, quote=True)
    content = f'{_FEEDBACK}kind="{kind}">\n{text.strip()}\n</runtime_feedback>'
    return {"role": "user", "content": content}


def text_of(message: Dict) -> str:
    """Return what a message says: its text, or that of its parts."""
    content = message.get("content") or message.get("parts")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""
