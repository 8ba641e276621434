"""The result of a model call for a program: a dict, or the diagnostic envelope of a structured call.

Spec: 07 §1.3, §1.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.llm.reply import Reply
from harnpy.llm.structured import joined
from harnpy.llm.text_format import Parsed, interpreted, visible_text

if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict
    from harnpy.llm.structured import Answer, Reading


def result_dict(
    reply: Reply, tools: list[dict[str, Any]] | None = None, reading: Reading | None = None
) -> dict[str, Any]:
    """The result without its ``transcript``; keys that don't apply are absent.

    ``tools`` are those that were sent, ``reading`` is the structured output of the reply.
    """
    usage = reply.usage()
    parsed = interpreted(reply, tools)
    result: dict[str, Any] = {
        "text": reply.text,
        "prose": reply.text,
        "visible_text": visible_text(reply.text),
        "model": reply.model,
        "provider": reply.provider,
        "blocks": reply.blocks(),
        "usage": usage,
        **usage,
    }
    if parsed is not None:
        result |= _protocol_keys(parsed)
        if tools and not reply.tool_calls:
            result["visible_text"] = parsed.prose
    if reading is not None and reading.found:
        result["data"] = reading.data
    optional = {
        "tool_calls": reply.tool_calls,
        "thinking": reply.thinking,
        "private_reasoning": reply.thinking,
        "thinking_summary": reply.thinking_summary,
        "stop_reason": reply.stop_reason,
        "refusal": reply.refused,
    }
    return result | {key: value for key, value in optional.items() if value}


def _protocol_keys(parsed: Parsed) -> dict[str, Any]:
    keys = {
        "prose": parsed.prose,
        "tool_calls": parsed.calls,
        "protocol_violations": parsed.violations,
        "tool_parse_errors": parsed.errors,
        "done_marker": parsed.done_marker,
        "canonical_text": parsed.canonical,
    }
    return {key: value for key, value in keys.items() if value}


_REPAIR = (
    "The text below should have been JSON for the configured schema, but it did not validate. Correct it and "
    "answer with the corrected JSON alone: no explanation, no code fence.\n\nValidation errors: {errors}"
    "\n\nOriginal text:\n{raw}\n\nAnswer with JSON only."
)


def answer_envelope(answer: Answer) -> Dict:
    reading = answer.reading
    category = ("schema_validation" if reading.found else "missing_json") if reading.errors else None
    category = "refused" if category and answer.reply.refused else category
    envelope = _envelope(answer.reply, joined(reading.errors), category, answer.attempts)
    data = reading.data if category is None else None
    return {**envelope, "data": data, "extracted_json": reading.lifted}


def error_envelope(error: Dict, provider: str, model: str) -> Dict:
    """Return the envelope of a call that failed."""
    nothing = Reply("", model, provider, model, 0, 0)
    return _envelope(nothing, error["message"], error["category"], 0)


def _envelope(reply: Reply, error: str, category: str | None, attempts: int) -> Dict:
    return {
        "ok": category is None,
        "data": None,
        "raw_text": reply.text,
        "error": error,
        "error_category": category,
        "attempts": attempts,
        "repaired": False,
        "extracted_json": False,
        "usage": reply.usage(),
        "model": reply.model,
        "provider": reply.provider,
    }


def repaired_envelope(main: Dict, repair: Dict) -> Dict:
    """The repair's envelope if it succeeded, else the call's with the reason why the repair failed."""
    if repair["ok"]:
        return {**repair, "repaired": True}
    return {**main, "error": repair["error"], "error_category": "repair_failed"}


def repair_prompt(main: Dict) -> str:
    return _REPAIR.format(errors=main["error"], raw=main["raw_text"])


def repair_options(options: Dict) -> Dict | None:
    """The options of the repair call, None when there is to be none."""
    given = options.get("repair")
    overrides = given if isinstance(given, dict) else {"enabled": bool(given)}
    if not overrides.get("enabled", True):
        return None
    fixed = {"system": None, "messages": None, "repair": None, "retries": None, "schema_retries": 0}
    return {**options, **overrides, **fixed}
