"""Asking a model for the text between two others. Spec: 07 §1.11.

The mock provider does this in its own way, without its queue and its log of calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.llm.providers.mock import NAME as MOCK
from harnpy.llm.reply import Reply

if TYPE_CHECKING:
    from harnpy.llm.call import Models
    from harnpy.llm.request import Request

_INFILL = """\
Continue the text between <prefix> and </prefix>. What you write is put directly behind it{}.
Answer with that text alone: no explanation, no code fence.

<prefix>{}</prefix>"""


def infill_prompt(prefix: str, suffix: str) -> str:
    """The prompt that asks a chat model for the text between ``prefix`` and ``suffix``."""
    if not suffix:
        return _INFILL.format("", prefix)
    return _INFILL.format(" and before <suffix>", prefix) + f"\n<suffix>{suffix}</suffix>"


def complete(models: Models, request: Request, prefix: str, suffix: str) -> Reply:
    """The text between; ``request`` is for the `infill_prompt`. Raises `CallError`."""
    if request.provider == MOCK:
        return models.ask(request, answer=lambda request: _mock_completion(request, prefix, suffix))
    return models.ask(request)


def _mock_completion(request: Request, prefix: str, suffix: str) -> Reply:
    text = f"Mock completion after {len(prefix)} chars"
    return Reply(
        text=f"{text} before {len(suffix)} chars" if suffix else text,
        model=MOCK,
        provider=MOCK,
        requested_model=request.model,
        input_tokens=len((prefix + suffix).encode("utf-8", "surrogatepass")),
        output_tokens=16,
        stop_reason="stop",
    )
