"""Replaying a run: its recorded stages in order, without models and tools. Spec: 08 §7.8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.faults import MisuseError

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.records.record_types import RunRecord, StageRecord


class Replay:
    """The stages of the record ``run`` that are still to come."""

    def __init__(self, run: RunRecord) -> None:
        self.source_id: str = run["id"]
        self.max_steps = _max_steps(run["metadata"])
        self._stages = run["stages"]
        self._next = 0

    def __bool__(self) -> bool:
        return self._next < len(self._stages)

    def take(self, node_id: str) -> StageRecord:
        """Return the recorded stage of a node. Raise `MisuseError` when another one comes next, or none."""
        if not self:
            raise MisuseError(f"workflow replay exhausted before node {node_id}")
        stage = self._stages[self._next]
        if stage["node_id"] != node_id:
            raise MisuseError(
                f"workflow replay mismatch: expected node {node_id}, next replay stage is {stage['node_id']}"
            )
        self._next += 1
        return stage


def _max_steps(metadata: Dict) -> int | None:
    """Return the recorded step limit; None if it is unknown, or if the run was resumed, which renews it."""
    steps = metadata.get("max_steps")
    known = type(steps) is int and steps > 0 and metadata.get("resumed") is not True
    return steps if known else None
