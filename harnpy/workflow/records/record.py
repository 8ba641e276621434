"""The record of a run: everything that happened, as one dict with every key. Spec: 08 §8.1–8.2.

`new_run` and its like make parts as a run goes on; `normalised` makes a record of any dict. A part that
stands in a record is never changed: what is different is a new dict (see `record_writer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.workflow.records.record_types import (
        Attempt,
        Checkpoint,
        RunRecord,
        StageRecord,
        Transition,
    )
    from harnpy.world.world import World

    #: From the id of a run to the questions that it has asked people: dicts as in `hitl_questions`.
    QuestionsOf = Callable[[str], list[Question]]

RUNNING = "running"
START, STAGE_COMPLETE, FINALIZE = "start", "stage_complete", "finalize"


# What an executor puts together.


def new_run(id: str, world: World, **fields: Any) -> RunRecord:
    """The record of a run that starts now; ``fields`` as in 08 §8.1."""
    known = {"status": RUNNING, "started_at": rfc3339(world.clock.now()), "root_run_id": id, **fields}
    return made(RUN, {"id": id, **known})


def new_stage(**fields: Any) -> StageRecord:
    """The record of a stage; ``fields`` as in 08 §8.1."""
    return made(STAGE, fields)


def new_attempt(**fields: Any) -> Attempt:
    """One of the attempts of a stage; ``fields`` as in 08 §8.1."""
    return made(ATTEMPT, fields)


def new_transition(world: World, **fields: Any) -> Transition:
    """A step from one stage to the next, taken now."""
    known = {"id": world.ids.new(), "timestamp": rfc3339(world.clock.now()), **fields}
    return made(TRANSITION, known)


def new_checkpoint(world: World, **fields: Any) -> Checkpoint:
    """Where a run stands now. ``reason`` is one of `START`, `STAGE_COMPLETE`, `FINALIZE`."""
    known = {"id": world.ids.new(), "persisted_at": rfc3339(world.clock.now()), **fields}
    known["completed_nodes"] = sorted(known.get("completed_nodes", ()))
    return made(CHECKPOINT, known)


# What a dict says.


def no_questions(run_id: str) -> list[Question]:
    """For records that tell of all their questions themselves."""
    return []


def normalised(given: Any, world: World, asked: QuestionsOf = no_questions) -> RunRecord:
    """The record in a dict, with what can be told from the rest filled in. Raises `MisuseError`."""
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


def derive(run: RunRecord, world: World, asked: QuestionsOf = no_questions) -> None:
    """Bring what other parts tell up to date: questions, child runs, handoffs."""
    known = {question["request_id"] for question in run["hitl_questions"]}
    run["hitl_questions"] += [each for each in asked(run["id"]) if each["request_id"] not in known]
    run["child_runs"][:] = child_runs.completed(run["child_runs"], run["stages"])
    handoff_receipts.synchronise(run, world)


def read_run(given: Any, world: World) -> RunRecord:
    """The record as the dict has it: every key, nothing made up. Raises `MisuseError`."""
    with errors_after("run_record parse error at "):
        run = read(RUN, plain(given, world))
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
