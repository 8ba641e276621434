"""What a workflow worker carries over to its next task. Spec: 07 §11.2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.agent.workers.carry import FORK, INHERIT, RESET, forked
from harnpy.workflow.artifacts.selection import read_context_policy, select

if TYPE_CHECKING:
    from harnpy.agent.workers.worker import Worker
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.world import World


def carried_artifacts(worker: Worker) -> list[Artifact]:
    """Return the artifacts to work with: the last run's if they are carried over, else the config's."""
    configured: list[Artifact] = worker.config["artifacts"]
    if worker.carry.artifact_mode != INHERIT:
        return configured
    policy = worker.carry.context_policy
    last: list[Artifact] = worker.artifacts
    if policy is not None:
        last = select(last, read_context_policy(policy))
    return last or configured


def carried_transcript(worker: Worker, world: World) -> Dict | None:
    """Return the transcript to continue, according to the worker's mode."""
    if not worker.restarted:
        configured: Dict | None = worker.config.get("transcript")
        return configured
    former, mode = worker.transcript, worker.carry.transcript_mode
    if former is None or mode == RESET:
        return None
    return forked(former, world.ids.new()) if mode == FORK else former
