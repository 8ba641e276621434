"""The texts that a loop sends to its model. Spec: 07 §6.2–6.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnpy.agent.loop.ledger import Deliverable
    from harnpy.agent.loop.options import LoopOptions

#: How messages of the runtime begin.

_HISTORY_CAP = 131072

ACTION_REQUIRED = (
    "You returned assistant text/JSON before using any tool. This stage requires at least one tool action "
    "before an answer counts. That response was not accepted. Call a tool now."
)


def persistence(options: LoopOptions, has_tools: bool) -> str:
    """Return the instruction to continue until the request is complete, and how to report that."""
    keep_on = (
        "You MUST keep working until the current request is complete. Do not stop after describing what "
        "you would do: do it."
    )
    if not options.allow_sentinel:
        return keep_on
    if has_tools and options.tool_format == "text":
        return (
            f"{keep_on} When the request is complete, emit <done>{options.sentinel}</done> as its own block."
        )
    return f"{keep_on} When the request is complete, include {options.sentinel} exactly once in your reply."


def not_verified(exit_code: str) -> str:
    return (
        f"You emitted a completion signal but verification has not passed (last run exit code: {exit_code}). "
        "Run the verification and make it pass before you finish."
    )


def without_action(options: LoopOptions) -> str:
    what = f"`{options.sentinel}`" if options.tool_format == "native" else "a <done> block"
    return (
        f"You emitted {what} without taking any tool action. Use a tool to do the work first, and finish "
        "when it is done."
    )


def ledger_open(items: list[Deliverable]) -> str:
    lines = [f"- [{item.status}] {item.id}: {item.text}" for item in items]
    return "\n".join(
        [
            f"`<done>` rejected: {len(items)} deliverable(s) are not yet resolved.",
            *lines,
            "Finish each of them, or mark it as dropped with a note, before you finish.",
        ]
    )


def unparsable(errors: list[str]) -> str:
    return f"Your tool call could not be parsed: {'; '.join(errors)}"


def violated(violations: list[str], sentinel: str) -> str:
    return "\n".join(
        [
            "Your response violated the tagged response protocol. Each issue:",
            *(f"- {violation}" for violation in violations),
            "Use only these tags at the top level: <tool_call>, <assistant_prose>, <user_response>, and "
            f"<done>{sentinel}</done> when the request is complete.",
        ]
    )


def native_contract(policy: str, fallback_index: int) -> str:
    return (
        "This stage is running in native tool mode. Tool calls written as text are not executed: use the "
        f"native tool channel. Policy: `{policy}`. Observed fallback turn: {fallback_index}."
    )


def nudge(options: LoopOptions, has_tools: bool) -> str:
    """Return the feedback for a reply without action."""
    if options.require_action:
        limit = options.max_prose_chars
        prose = "prose brief" if limit is None else f"prose to at most {limit} visible characters"
        action = "use a tool call" if has_tools else "make progress in your reply"
        return f"Keep {prose}, then {action} or finish."
    if options.nudge:
        return options.nudge
    if has_tools:
        return "Continue — use a tool call to make progress."
    return "Continue — make progress in your reply."


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


def shown(text: str, limit: int | None) -> str:
    """Return visible prose, cut to ``limit`` characters."""
    if limit is None or len(text) <= limit:
        return text
    note = "<assistant prose truncated by turn policy; keep prose brief and act>"
    return f"{text[:limit]}\n\n{note}"


def excerpt(text: str, limit: int = 240) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
