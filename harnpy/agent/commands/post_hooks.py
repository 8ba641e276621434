"""What the post-hook of a command policy answers. Spec: 02 §28."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.commands.decisions import POST_HOOK, REWRITE, Decision
from harnpy.agent.commands.results import MARK_UNSAFE
from harnpy.agent.commands.risks import ALLOW
from harnpy.faults import MisuseError
from harnpy.reading.option_tables import expected
from harnpy.text.display import display, type_name

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict

_WHAT = "command policy post-hook"
_ANNOTATIONS = ("annotations", "audit", "unsafe")
_FEEDBACK = ("session_id", "kind", "content")


class Feedback(NamedTuple):
    """A note for a session's loop; ``session_id`` None is the session that the task drives."""

    session_id: str | None
    kind: str
    content: str


class PostAnswer(NamedTuple):
    """``result`` replaces that of the command, ``annotation`` is kept beside it; None is neither."""

    decision: Decision
    result: Dict | None
    feedback: Feedback | None
    annotation: Dict | None


def read_post(answer: Any) -> PostAnswer | None:
    """Return what a post-hook's answer means, None for nil. Raises `MisuseError`."""
    if answer is None:
        return None
    if not isinstance(answer, dict):
        raise MisuseError(f"{_WHAT} must return nil or a dict, got {type_name(answer)}")
    result, feedback = _dict(answer, "result"), _dict(answer, "feedback")
    annotation = None
    if any(answer.get(key) is not None for key in _ANNOTATIONS):
        annotation = {key: value for key, value in answer.items() if key not in ("result", "feedback")}
    return PostAnswer(
        _decision(answer, result), result, None if feedback is None else _feedback(feedback), annotation
    )


def _decision(answer: Dict, result: Dict | None) -> Decision:
    """Return what stands among the decisions on the command."""
    action = MARK_UNSAFE if answer.get("unsafe") else ALLOW if result is None else REWRITE
    reason = answer.get("reason")
    return Decision(action, None if reason is None else display(reason), POST_HOOK)


def _dict(answer: Dict, key: str) -> Dict | None:
    given = answer.get(key)
    if given is not None and not isinstance(given, dict):
        raise MisuseError(f"{_WHAT} {key} must be a dict, got {type_name(given)}")
    return given


def _feedback(given: Dict) -> Feedback:
    for key, value in given.items():
        if key not in _FEEDBACK:
            raise MisuseError(f"{_WHAT} feedback: unknown key '{key}' ({expected(key, _FEEDBACK)})")
        if value is not None and not isinstance(value, str):
            raise MisuseError(f"{_WHAT} feedback.{key} must be a string, got {type_name(value)}")
    content = given.get("content")
    if content is None:
        raise MisuseError(f"{_WHAT} feedback.content is required")
    return Feedback(given.get("session_id"), given.get("kind") or "command_policy", content)
