"""The messages that tell a model what its calls came to. Spec: 07 §6.7."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.reading.dicts import Dict

#: How messages from the runtime to the model begin.
_FEEDBACK = "<runtime_feedback "
_RESULTS_KIND = "tool_results"
#: How the one of them begins that has results of tools.
RESULTS = f'{_FEEDBACK}kind="{_RESULTS_KIND}">'


def result_message(call: Dict, text: str, style: str) -> Dict:
    """Return a tool's result as a message in a provider's ``style``."""
    if style == "anthropic":
        block = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
        return {"role": "user", "content": [block]}
    if style == "ollama":
        return {"role": "tool", "tool_name": call["name"], "content": text}
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def results_message(results: Iterable[tuple[str, str]]) -> Dict:
    """Return the results of a text-format step, (tool, text) each, as one message."""
    return feedback(_RESULTS_KIND, "\n\n".join(tool_result(name, text) for name, text in results))


def tool_result(name: str, text: str) -> str:
    return f"[result of {name}]\n{text}\n[end of {name} result]"


def feedback(kind: str, text: str) -> Dict:
    """Return a message from the runtime to the model."""
    kind = escape(kind, quote=True)
    content = f'{_FEEDBACK}kind="{kind}">\n{text.strip()}\n</runtime_feedback>'
    return {"role": "user", "content": content}
