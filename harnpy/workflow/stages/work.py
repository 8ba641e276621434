"""The interface between the executor and the kinds of stages: what a node gets, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harnpy.agent.runtime import Runtime
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.workflow.graph.graph_types import Node
    from harnpy.workflow.stages.stage_session import StageSession


@dataclass(frozen=True, slots=True)
class Work:
    """One turn of one node.

    ``node`` is normalised, with the run's options filled in, and has Python callables for functions;
    ``artifacts`` are all of the run so far, ``transcript`` the last stage's.
    ``contracts`` are those that the stage's prompt shows; ``execution`` is where commands run.
    """

    runtime: Runtime
    node: Node
    task: str
    artifacts: Sequence[Artifact]
    transcript: Dict | None
    run_id: str
    stage_id: str
    session: StageSession
    contracts: Sequence[Dict] = ()
    execution: Mapping[str, Any] | None = None


class Ended(NamedTuple):
    """``result`` has at least `status`, `text` and `visible_text`; ``transcript`` is None if the run's last
    one continues. ``worker`` is the handle of the worker that ran it."""

    result: Dict
    outcome: str
    branch: str
    artifacts: list[Artifact]
    transcript: Dict | None
    verification: Dict | None = None
    worker: Dict | None = None
