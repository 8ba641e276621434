"""Whether a stage that failed is run again, and when: the `retry_policy` of its node. Spec: 08 §6.1, §7.4.

Pauses have no chance in them, so that a run which is done again waits as it did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harnpy.llm.errors import TRANSIENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.workflow.graph_shapes import RetryPolicy
    from harnpy.workflow.records.record_shapes import StageRecord, UsageRecord

#: The first pause, and what each further one is longer by, where the policy says nothing.
BACKOFF_MS: Final = 1000
MULTIPLIER: Final = 2.0
LONGEST_MS: Final = 3_600_000


def pause_before_next(
    policy: RetryPolicy, attempt: int, category: str, retry_after: float | None
) -> float | None:
    """Return the seconds to wait after attempt number ``attempt``, which failed; None if it was the last one.

    ``retry_after`` is what the service that failed has asked for.
    """
    if attempt >= policy["max_attempts"] or category not in (policy.get("on") or TRANSIENT):
        return None
    first, multiplier = policy["backoff_ms"], policy["backoff_multiplier"]
    pause = float(BACKOFF_MS if first is None else max(first, 0))
    for _ in range(attempt - 1):
        pause = min(pause * (MULTIPLIER if multiplier is None else max(multiplier, 0.0)), LONGEST_MS)
    return max(min(pause, LONGEST_MS) / 1000, retry_after or 0.0)


def joined(attempts: Sequence[StageRecord]) -> StageRecord:
    """Return the record of a stage from those of its attempts, each of which has one."""
    first, last = attempts[0], attempts[-1]
    if first is last:
        return last
    tried = [{**stage["attempts"][0], "attempt": number} for number, stage in enumerate(attempts, 1)]
    made: Any = {**last, "started_at": first["started_at"], "attempts": tried, "usage": _total(attempts)}
    joined: StageRecord = made
    return joined


def _total(attempts: Sequence[StageRecord]) -> UsageRecord | None:
    used: list[Any] = [stage["usage"] for stage in attempts if stage["usage"] is not None]
    if not used:
        return None
    total: Any = {key: sum(usage[key] for usage in used) for key in used[0] if key != "models"}
    total["models"] = list(dict.fromkeys(model for usage in used for model in usage["models"]))
    usage: UsageRecord = total
    return usage
