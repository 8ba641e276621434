"""Thresholds: how much a run may use, and how severe it is when it uses more. Spec: 08 §8.7."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.workflow.evals.pack_types import Thresholds
    from harnpy.workflow.records.record_types import RunRecord


BLOCKING, WARNING, INFORMATIONAL = "blocking", "warning", "informational"
_SEVERITIES = {"warn": WARNING, WARNING: WARNING, "info": INFORMATIONAL, INFORMATIONAL: INFORMATIONAL}
_NO_USAGE = {"total_duration_ms": 0, "total_cost": 0.0, "input_tokens": 0, "output_tokens": 0}


def severity(*given: str | None) -> str:
    """Return the first severity that is given; an unknown word is blocking."""
    first = next((each for each in given if each), BLOCKING)
    return _SEVERITIES.get(first, BLOCKING)


def failures(thresholds: Thresholds, run: RunRecord) -> Iterator[str]:
    """Report every threshold that the run exceeds."""
    usage = run["usage"] or _NO_USAGE
    stages, latency, cost = len(run["stages"]), usage["total_duration_ms"], usage["total_cost"]
    tokens = usage["input_tokens"] + usage["output_tokens"]
    if _exceeds(stages, most := thresholds["max_stage_count"]):
        yield f"stage count {stages} exceeds threshold {most}"
    if _exceeds(latency, most := thresholds["max_latency_ms"]):
        yield f"latency {latency}ms exceeds threshold {most}ms"
    if _exceeds(cost, highest := thresholds["max_cost_usd"]):
        yield f"cost ${cost:.6f} exceeds threshold ${highest:.6f}"
    if _exceeds(tokens, most := thresholds["max_tokens"]):
        yield f"token count {tokens} exceeds threshold {most}"


def _exceeds(amount: float, most: float | None) -> bool:
    return most is not None and amount > most
