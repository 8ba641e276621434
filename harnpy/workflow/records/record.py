"""The record of a run: everything that happened, as one dict with every key. Spec: 08 §8.1–8.2.

`new_run` and its like build parts while a run proceeds; `normalised` reads a record from any dict. A part of
a record is never changed: a change makes a new dict (see `record_writer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.people.history import merged
from harnpy.faults import MisuseError
from harnpy.reading.strict import FieldError, errors_after
from harnpy.workflow.artifacts import artifact
from harnpy.workflow.records import child_runs, handoff_receipts
from harnpy.workflow.records.observability import observability
from harnpy.workflow.records.plain_json import plain
from harnpy.workflow.records.record_shapes import ATTEMPT, CHECKPOINT, RUN, STAGE, TRANSITION
from harnpy.workflow.records.replay_fixture import fixture_of
from harnpy.workflow.shapes import made, read
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.people.requests import Question
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.workflow.records.record_types import (
        Attempt,
        Checkpoint,
        RunRecord,
        StageRecord,
        Transition,
    )
    from harnpy.world import World

    #: Maps the id of a run to the questions that it has asked people.
    QuestionsOf = Callable[[str], list[Question]]
    #: … and to all its requests to people, with their responses.
    HitlOf = Callable[[str], list[Dict]]

RUNNING = "running"
START, STAGE_COMPLETE, FINALIZE = "start", "stage_complete", "finalize"


# Parts for an executor.


def new_run(id: str, world: World, **fields: Any) -> RunRecord:
    """Return the record of a run that starts now; ``fields`` as in 08 §8.1."""
    known = {"status": RUNNING, "started_at": rfc3339(world.clock.now()), "root_run_id": id, **fields}
    return made(RUN, {"id": id, **known})


def new_stage(**fields: Any) -> StageRecord:
    """Return the record of a stage; ``fields`` as in 08 §8.1."""
    return made(STAGE, fields)


def new_attempt(**fields: Any) -> Attempt:
    """Return the record of one attempt of a stage; ``fields`` as in 08 §8.1."""
    return made(ATTEMPT, fields)


def new_transition(world: World, **fields: Any) -> Transition:
    """Return a step from one stage to the next, taken now."""
    known = {"id": world.ids.new(), "timestamp": rfc3339(world.clock.now()), **fields}
    return made(TRANSITION, known)


def new_checkpoint(world: World, **fields: Any) -> Checkpoint:
    """Return the current state of a run. ``reason`` is one of `START`, `STAGE_COMPLETE`, `FINALIZE`."""
    known = {"id": world.ids.new(), "persisted_at": rfc3339(world.clock.now()), **fields}
    known["completed_nodes"] = sorted(known.get("completed_nodes", ()))
    return made(CHECKPOINT, known)


# Reading dicts.


def no_questions(run_id: str) -> list[Question]:
    """Return no questions: for records that list all their questions themselves."""
    return []


def no_requests(run_id: str) -> list[Dict]:
    """Return no requests: for records that list all their requests themselves."""
    return []


def normalised(given: Any, world: World, asked: QuestionsOf = no_questions) -> RunRecord:
    """Return the record in a dict, with derived parts filled in. Raise `MisuseError`."""
    run = read_run(given, world)
    run["_type"] = "run_record"
    run["id"] = run["id"] or f"run_{world.ids.new()}"
    run["started_at"] = run["started_at"] or rfc3339(world.clock.now())
    run["status"] = run["status"] or RUNNING
    run["root_run_id"] = run["root_run_id"] or run["id"]
    if run["replay_fixture"] is None:
        run["replay_fixture"] = fixture_of(run, world)
    derive(run, world, asked)
    if run["observability"] is None:
        run["observability"] = observability(run, world)
    return run


def derive(
    run: RunRecord, world: World, asked: QuestionsOf = no_questions, hitl: HitlOf = no_requests
) -> None:
    """Bring derived parts up to date: questions, requests to people, child runs, handoffs."""
    known = {question["request_id"] for question in run["hitl_questions"]}
    run["hitl_questions"] += [each for each in asked(run["id"]) if each["request_id"] not in known]
    requests = hitl(run["id"])
    if requests:
        run["metadata"] = {**run["metadata"], "hitl": merged(run["metadata"].get("hitl"), requests)}
    run["child_runs"][:] = child_runs.completed(run["child_runs"], run["stages"])
    handoff_receipts.synchronise(run, world)


def read_run(given: Any, world: World) -> RunRecord:
    """Return the record in a dict: every key, nothing derived. Raise `MisuseError`."""
    with errors_after("run_record parse error at "):
        run = read(RUN, plain(given))
        for index, stage in enumerate(run["stages"]):
            stage["artifacts"] = _artifacts(stage["artifacts"], f"stages[{index}].artifacts", world)
        run["artifacts"] = _artifacts(run["artifacts"], "artifacts", world)
        run["handoffs"] = handoff_receipts.read_handoffs(run["handoffs"], world)
    return run


def _artifacts(given: list[Any], path: str, world: World) -> list[Artifact]:
    artifacts = []
    for index, item in enumerate(given):
        place = f"{path}[{index}]"
        try:
            artifacts.append(artifact.normalised(item, world, place))
        except FieldError:
            raise
        except MisuseError as error:
            raise MisuseError(f"{place}: {error.message}") from error
    return artifacts
