"""The progress of a run: its queue and its record, kept in step on disk. Spec: 08 §7.2 steps 5–8."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from harnpy.workflow.execution.stage_records import ERROR
from harnpy.workflow.records.record import FINALIZE, STAGE_COMPLETE, START, new_checkpoint, new_transition
from harnpy.workflow.records.replay_fixture import fixture_of
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.workflow.execution.ready_queue import Ready
    from harnpy.workflow.execution.run_recorder import RunRecorder
    from harnpy.workflow.graph.graph_types import Edge
    from harnpy.workflow.records.record_types import StageRecord, Transition
    from harnpy.workflow.records.record_writer import RunWriter
    from harnpy.world import World


COMPLETED, PAUSED = "completed", "paused"


class Progress:
    """``run`` is the record; the ``recorder`` adds what models, tools and people do."""

    def __init__(self, ready: Ready, writer: RunWriter, recorder: RunRecorder, world: World) -> None:
        self.run = writer.run
        self.ready = ready
        self.recorder = recorder
        self._writer = writer
        self._world = world

    @contextmanager
    def saved(self) -> Iterator[None]:
        """Write the record's state to its file when the block begins, and when it is left for any reason."""
        self._checkpoint(START)
        self._writer.checkpoint()
        try:
            yield
        finally:
            self._writer.catch_up()

    def stage_id(self, node_id: str) -> str:
        """Return the id of the next stage."""
        return f"{self.run['id']}:{node_id}:{len(self.run['stages']) + 1}"

    def add(self, stage: StageRecord) -> None:
        """Add a stage that has ended, and continue the run from it."""
        run = self.run
        run["artifacts"] += stage["artifacts"]
        if stage["transcript"] is not None and stage["branch"] != ERROR:
            run["transcript"] = stage["transcript"]
        run["stages"].append(stage)
        for edge in self.ready.complete(stage["node_id"], stage["branch"]):
            run["transitions"].append(self._transition(stage, edge))
        self._checkpoint(STAGE_COMPLETE)
        self._writer.checkpoint()

    def end(self) -> None:
        """End the run, completed or out of steps, and write it durably. Raise `MisuseError`."""
        run = self.run
        run["status"] = PAUSED if self.ready else COMPLETED
        run["finished_at"] = self.now()
        run["replay_fixture"] = fixture_of(run, self._world)
        self._checkpoint(FINALIZE)
        self._writer.save()

    def now(self) -> str:
        return rfc3339(self._world.clock.now())

    def _transition(self, stage: StageRecord, edge: Edge) -> Transition:
        return new_transition(
            self._world,
            from_stage_id=stage["id"],
            from_node_id=stage["node_id"],
            to_node_id=edge["to"],
            branch=edge["branch"],
            consumed_artifact_ids=stage["consumed_artifact_ids"],
            produced_artifact_ids=stage["produced_artifact_ids"],
        )

    def _checkpoint(self, reason: str) -> None:
        """Record the current state."""
        run, stages = self.run, self.run["stages"]
        checkpoint = new_checkpoint(
            self._world,
            ready_nodes=self.ready.pending,
            completed_nodes=self.ready.completed,
            last_stage_id=stages[-1]["id"] if stages else None,
            reason=reason,
        )
        run["checkpoints"].append(checkpoint)
        run["pending_nodes"] = checkpoint["ready_nodes"]
        run["completed_nodes"] = checkpoint["completed_nodes"]
        run["usage"] = self.recorder.usage.as_dict()
