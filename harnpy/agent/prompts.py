"""The words a loop speaks to its model. Spec: 07 §6.2–6.5."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harnpy.agent.options import LoopOptions

_HISTORY_CAP = 131072

ACTION_REQUIRED = (
    "You returned assistant text/JSON before using any tool. This stage requires at least one tool action "
    "before an answer counts. That response was not accepted. Call a tool now."
)
NOT_VERIFIED = (
    "You emitted a completion signal but verification has not passed (last run exit code: none). "
    "Run the verification and make it pass before you finish."
)


def system_prompt(caller: str | None, options: LoopOptions) -> str | None:
    """The caller's system prompt and the loop's own instructions; None when there is nothing to say."""
    parts = [(caller or "").strip(), _persistence(options) if options.persistent else ""]
    return "\n\n".join(filter(None, parts)) or None


def feedback(kind: str, text: str) -> dict[str, Any]:
    """A message from the runtime to the model."""
    kind = escape(kind, quote=True)
    content = f'<runtime_feedback kind="{kind}">\n{text.strip()}\n</runtime_feedback>'
    return {"role": "user", "content": content}


def nudge(options: LoopOptions) -> str:
    """What a reply without action is answered with."""
    if options.require_action:
        limit = options.max_prose_chars
        prose = "prose brief" if limit is None else f"prose to at most {limit} visible characters"
        return f"Keep {prose}, then make progress in your reply or finish."
    return options.nudge or "Continue — make progress in your reply."


def recorded(text: str) -> str:
    """A reply's text as the history keeps it."""
    text = text.strip()
    if len(text) <= _HISTORY_CAP:
        return text
    note = f"<assistant turn truncated: raw length {len(text)} chars exceeded history cap ({_HISTORY_CAP})>"
    return f"{text[:_HISTORY_CAP]}\n\n{note}"


def shown(text: str, limit: int | None) -> str:
    """Visible prose, cut to ``limit`` characters."""
    if limit is None or len(text) <= limit:
        return text
    note = "<assistant prose truncated by turn policy; keep prose brief and act>"
    return f"{text[:limit]}\n\n{note}"


def excerpt(text: str, limit: int = 240) -> str:
    return text if len(text) <= limit else text[:limit] + "…"


def _persistence(options: LoopOptions) -> str:
    keep_on = (
        "You MUST keep working until the current request is complete. Do not stop after describing what "
        "you would do: do it."
    )
    if not options.allow_sentinel:
        return keep_on
    return f"{keep_on} When the request is complete, include {options.sentinel} exactly once in your reply."
