"""`harnpy run --trace`: the model calls of a run, on stderr. Spec: 09 §2.5."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.live_models import models_of
from harnpy.cli.console import complain, paint

if TYPE_CHECKING:
    from harnpy import Vm

#: Dollars per token: a rough price for any model.
_INPUT_PRICE, _OUTPUT_PRICE = 3e-6, 15e-6


def show(vm: Vm) -> None:
    """Print the calls of `vm` and their sum; nothing without calls."""
    calls = [event for event in models_of(vm).trace.events if event["type"] == "llm_call"]
    for line in _lines(calls) if calls else ():
        complain(line)


def _lines(calls: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield paint("─── LLM trace ───", "dim", sys.stderr)
    for number, call in enumerate(calls, 1):
        tokens = f"{call['input_tokens']} in + {call['output_tokens']} out tokens"
        yield f"  #{number}: {call['model']} | {tokens} | {call['duration_ms']} ms"
    asked, answered, ms = (
        sum(call[field] for call in calls) for field in ("input_tokens", "output_tokens", "duration_ms")
    )
    plural = "call" if len(calls) == 1 else "calls"
    cost = asked * _INPUT_PRICE + answered * _OUTPUT_PRICE
    total = f"{asked + answered} tokens ({asked}in + {answered}out), {ms} ms, ~${cost:.4f}"
    yield paint(f"  {len(calls)} {plural}, {total}", "bold", sys.stderr)
