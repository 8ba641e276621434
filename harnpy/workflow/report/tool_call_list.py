"""Tool calls with their arguments and results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.workflow.report import parts
from harnpy.workflow.report.figures import duration
from harnpy.workflow.report.markup import Markup, element, joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.reading.dicts import Dict


def tool_calls(calls: Sequence[Dict]) -> Markup:
    return element("ol", [_call(call) for call in calls], class_="calls")


def _call(call: Dict) -> Markup:
    head = parts.apart(
        joined(
            parts.mono(str(call["tool_name"])), " ", parts.pill("rejected") if call["is_rejected"] else None
        ),
        f"turn {call['iteration']}" if call["iteration"] else None,
        duration(call["duration_ms"]) if call["duration_ms"] else None,
    )
    return element(
        "li",
        element("p", head),
        element(
            "div",
            _side("Arguments", call.get("arguments")),
            _side("Result", call.get("result")),
            class_="two",
        ),
    )


def _side(title: str, given: Any) -> Markup:
    shown = element("p", "none", class_="note") if given in (None, "", {}) else parts.value(given)
    return element("div", element("h5", title), shown)
