"""`offload` and `summarize`: what becomes of the turns behind the last few users' turns. Spec: 10 §A1.17."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.session.errors import ResizeError
from harnpy.session.resize.compaction import Compaction
from harnpy.session.resize.engine import estimate_tokens
from harnpy.session.resize.files import files_of
from harnpy.session.resize.summaries import conversation_lines
from harnpy.session.shown.message_parts import results_of
from harnpy.session.transcript import RESULT_ROLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.resize.resize_policy import Artifacts, ResizePolicy
    from harnpy.session.resize.seen import Seen

    Message = dict[str, Any]

#: Tool outputs of more characters are offloaded.
LONG_OUTPUT = 1000
KIND = "context_offload"

_SUMMARY = re.compile(r"<conversation_summary>\n(.*)\n</conversation_summary>", re.DOTALL)
_PROMPT = (
    "Summarize the conversation below, so that another agent can go on with it: keep goals, limits, "
    "decisions, finished tool work, open problems and next steps. Answer with the summary alone."
)
_UPDATE = "It goes on from this summary: keep what still holds of it, and add what is new."


def older_turns(seen: Seen, keep_turns: int) -> int:
    """Return how many messages stand before the last ``keep_turns`` users' turns; 0 if there are no more."""
    starts = [number for number, message in enumerate(seen.window) if _begins_turn(seen, number, message)]
    if len(starts) <= keep_turns:
        return 0
    return starts[-keep_turns] if keep_turns else len(seen.window)


def _begins_turn(seen: Seen, number: int, message: Message) -> bool:
    return message.get("role") == "user" and number not in seen.made and results_of(message) is None


# Offload.


def offload(seen: Seen, policy: ResizePolicy) -> tuple[list[Message], list[dict[str, Any]]]:
    """Put long tool outputs of older turns into artifacts. Return the window's messages with references to
    them, and the artifacts' descriptors."""
    if policy.artifacts is None:
        raise ResizeError('resize strategy "offload" needs an artifact store: give the policy `artifacts`')
    older = older_turns(seen, policy.min_keep_turns)
    descriptors: list[dict[str, Any]] = []
    keep = _keeper(policy.artifacts, seen.session_id, descriptors)
    shorter = [_offloaded(message, keep) for message in seen.window[:older]]
    return [*shorter, *seen.window[older:]], descriptors


def _keeper(
    artifacts: Artifacts, session_id: str, descriptors: list[dict[str, Any]]
) -> Callable[[str, str], str]:
    def keep(text: str, tool: str) -> str:
        given = {"kind": KIND, "mime_type": "text/plain", "producer_session_id": session_id}
        if tool:
            given["label"] = tool
        descriptors.append(artifacts.put(given, text.encode("utf-8", "surrogatepass")))
        return f"[Content offloaded to {descriptors[-1]['uri']}. Use read_offload tool to retrieve.]"

    return keep


def _offloaded(message: Message, keep: Callable[[str, str], str]) -> Message:
    """Return the message with references in place of its long tool outputs: itself if it has none."""
    if message.get("role") in RESULT_ROLES:
        return _kept(message, keep)
    content = message.get("content")
    if results_of(message) is None or not isinstance(content, list):
        return message
    blocks = [_kept(block, keep) if _is_result(block) else block for block in content]
    is_same = all(one is other for one, other in zip(blocks, content, strict=True))
    return message if is_same else {**message, "content": blocks}


def _kept(result: Message, keep: Callable[[str, str], str]) -> Message:
    text, name = result.get("content"), result.get("name")
    if not isinstance(text, str) or len(text) <= LONG_OUTPUT:
        return result
    return {**result, "content": keep(text, name if isinstance(name, str) else "")}


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


# Summarize.


def summarize(seen: Seen, policy: ResizePolicy, ask: Callable[[str], str]) -> Compaction | None:
    """Replace older turns with a summary that ``ask(prompt)`` writes, going on from an earlier one. None when
    there are too few turns."""
    older = older_turns(seen, policy.min_keep_turns)
    archived = seen.window[:older]
    if older <= len([number for number in seen.made if number < older]):
        return None
    former = _former_summary(seen, older)
    news = [message for number, message in enumerate(archived) if number not in seen.made or former is None]
    parts = [_PROMPT] if former is None else [_PROMPT, _UPDATE, _said(former)]
    reply = ask("\n\n".join([*parts, f"Conversation:\n{conversation_lines(news, only_text=True)}"])).strip()
    if not reply:
        raise ResizeError('resize strategy "summarize": the model\'s summary is empty')
    text = "\n\n".join([*files_of(archived), _said(reply)])
    message = {"role": "user", "content": text}
    after = estimate_tokens([message, *seen.window[older:]])
    return Compaction(0, older, text, "summarize", estimate_tokens(seen.window), after)


def _said(summary: str) -> str:
    return f"<conversation_summary>\n{summary}\n</conversation_summary>"


def _former_summary(seen: Seen, older: int) -> str | None:
    for number in sorted(seen.made):
        content = seen.window[number].get("content")
        found = _SUMMARY.search(content) if number < older and isinstance(content, str) else None
        if found is not None:
            return found[1]
    return None
