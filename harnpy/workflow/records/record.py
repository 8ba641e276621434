"""The record of a run: everything that happened, as one dict with every key. Spec: 08 §8.1–8.2, §12.

`new_run` and its like build parts while a run proceeds; `normalised_run` reads a record from any dict. A part
of a record is never changed: a change makes a new dict (see `RunWriter`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent import handoffs
from harnpy.agent.people import merged_history
from harnpy.faults import MisuseError
from harnpy.formats.dicts import FieldError, as_dict, as_text, errors_after
from harnpy.formats.shapes import made, read
from harnpy.workflow import artifacts
from harnpy.workflow import artifacts as artifact
from harnpy.workflow.records.observability import observability
from harnpy.workflow.records.record_lines import DERIVED, unfolded
from harnpy.workflow.records.record_shapes import (
    Attempt,
    Checkpoint,
    ChildRun,
    ExecutionRecord,
    RunRecord,
    StageRecord,
    Transition,
    plain_json,
)
from harnpy.workflow.records.replay_fixture import fixture_made, fixture_of
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harnpy.agent.people import Question
    from harnpy.formats.dicts import Dict
    from harnpy.workflow.artifacts import Artifact
    from harnpy.world import World

    #: Maps the id of a run to the questions that it has asked people.
    QuestionsOf = Callable[[str], list[Question]]
    #: … and to all its requests to people, with their responses.
    HitlOf = Callable[[str], list[Dict]]


def completed_child_runs(known: Iterable[ChildRun], stages: Sequence[StageRecord]) -> list[ChildRun]:
    """Return the known child runs and those of the stages' workers, with unset fields filled in from the
    workers' handles. An entry without news stays the same object."""
    children = {child["worker_id"]: child for child in known}
    for stage in [stage for stage in stages if "worker" in stage["metadata"]]:
        reported = _of_stage(stage)
        if reported is not None:
            child = children.setdefault(reported["worker_id"], reported)
            known_fields: dict[str, Any] = {**child}
            news = {key: value for key, value in reported.items() if known_fields[key] in (None, "")}
            if any(value not in (None, "") for value in news.values()):
                children[reported["worker_id"]] = made(ChildRun, {**known_fields, **news})
    return list(children.values())


def _of_stage(stage: StageRecord) -> ChildRun | None:
    handle = as_dict(stage["metadata"].get("worker"))
    if not as_text(handle.get("id")):
        return None
    provenance, audit = as_dict(handle.get("provenance")), as_dict(handle.get("audit"))
    execution = handle.get("execution")
    child = {
        "worker_id": handle["id"],
        "parent_stage_id": as_text(handle.get("parent_stage_id")) or stage["id"],
        "session_id": as_text(provenance.get("session_id")),
        "parent_session_id": as_text(provenance.get("parent_session_id")),
        "mutation_scope": as_text(audit.get("mutation_scope")),
        "approval_policy": audit.get("approval_policy"),
        "request": handle.get("request"),
        "provenance": handle.get("provenance"),
        "run_id": as_text(handle.get("child_run_id")),
        "run_path": as_text(handle.get("child_run_path")),
        "snapshot_path": as_text(handle.get("snapshot_path")),
        "finished_at": as_text(handle.get("finished_at")),
        "execution": read(ExecutionRecord, execution) if isinstance(execution, dict) else None,
    }
    texts = {key: as_text(handle.get(key)) or "" for key in ("task", "status", "started_at")}
    return made(ChildRun, {**child, **texts, "worker_name": as_text(handle.get("name")) or ""})


# Keeping a run's list of handoffs and the artifacts that hold them in step. Spec: 08 §12.


_RECEIPT = "run_receipt"
_PRIORITY = 85


def read_handoffs(given: list[Any], world: World) -> list[Dict]:
    """Return a record's handoffs in normal form. Raise `MisuseError`."""
    return [_normal(item, world, f"handoffs[{index}]") for index, item in enumerate(given)]


def synchronise_handoffs(run: RunRecord, world: World) -> None:
    """Bring the run's `handoffs` and `artifacts` in step. What doesn't change stays the same object."""
    found = (item["data"] for item in run["artifacts"] if item["kind"] == artifacts.HANDOFF)
    merged: dict[str, Dict] = {}
    for handoff in (*run["handoffs"], *found):
        known = merged.get(handoff["id"])
        merged[handoff["id"]] = handoff if known is None else _merged(known, handoff)
    known_as = {item["id"]: item for item in run["handoffs"]}
    for id, handoff in merged.items():
        settled = _with_receipt(handoff, run)
        merged[id] = known_as[id] if known_as.get(id) == settled else settled
    run["handoffs"][:] = sorted(merged.values(), key=lambda handoff: str(handoff["created_at"]))
    held = {item["data"]["id"] for item in run["artifacts"] if item["kind"] == artifacts.HANDOFF}
    run["artifacts"][:] = [_rewritten(item, merged, world) for item in run["artifacts"]] + [
        _holder(handoff, world) for handoff in run["handoffs"] if handoff["id"] not in held
    ]


def _normal(given: Any, world: World, path: str) -> Dict:
    return handoffs.normalise(given, f"handoff_{world.ids.new()}", rfc3339(world.clock.now()), caller=path)


def _merged(own: Dict, other: Dict) -> Dict:
    """Return ``own`` with what only ``other`` sets, and the links of both."""
    links = own["receipt_links"] + [
        link for link in other["receipt_links"] if link not in own["receipt_links"]
    ]
    unset = {key: value for key, value in other.items() if own[key] in (None, [], {})}
    return {**own, **unset, "receipt_links": links}


def _with_receipt(handoff: Dict, run: RunRecord) -> Dict:
    """Return the handoff with its run, and with a link to that run's record."""
    label = run["workflow_name"] or run["workflow_id"]
    link = {"kind": _RECEIPT, "label": label or None, "run_id": run["id"], "path": run["persisted_path"]}
    receipt = {**dict.fromkeys(("artifact_id", "href")), **link}
    links = [each for each in handoff["receipt_links"] if not _is_of_run(each, run["id"])]
    return {
        **handoff,
        "parent_run_id": handoff["parent_run_id"] or run["id"],
        "receipt_links": [*links, receipt],
    }


def _is_of_run(link: Dict, run_id: str) -> bool:
    return (link["kind"], link["run_id"]) == (_RECEIPT, run_id)


def _rewritten(item: Artifact, merged: dict[str, Dict], world: World) -> Artifact:
    """Return the artifact with its handoff brought up to date."""
    if item["kind"] != artifacts.HANDOFF or item["data"] == merged[item["data"]["id"]]:
        return item
    updated: Artifact = {**item, "data": merged[item["data"]["id"]], "estimated_tokens": None}
    return {**artifacts.normalised_artifact(updated, world), "title": item["title"]}


def _holder(handoff: Dict, world: World) -> Artifact:
    """Return an artifact for a handoff that has none."""
    return artifacts.normalised_artifact(
        {
            "id": f"artifact_{handoff['id']}",
            "kind": artifacts.HANDOFF,
            "data": handoff,
            "source": handoff["source_persona"],
            "freshness": "fresh",
            "priority": _PRIORITY,
        },
        world,
    )


RUNNING = "running"
START, STAGE_COMPLETE, FINALIZE = "start", "stage_complete", "finalize"


# Parts for an executor.


def new_run(id: str, world: World, **fields: Any) -> RunRecord:
    """Return the record of a run that starts now; ``fields`` as in 08 §8.1."""
    known = {"status": RUNNING, "started_at": rfc3339(world.clock.now()), "root_run_id": id, **fields}
    return made(RunRecord, {"id": id, **known})


def new_stage(**fields: Any) -> StageRecord:
    """Return the record of a stage; ``fields`` as in 08 §8.1."""
    return made(StageRecord, fields)


def new_attempt(**fields: Any) -> Attempt:
    """Return the record of one attempt of a stage; ``fields`` as in 08 §8.1."""
    return made(Attempt, fields)


def new_transition(world: World, now: str | None = None, **fields: Any) -> Transition:
    """Return a step from one stage to the next, taken now."""
    now = now or rfc3339(world.clock.now())
    return made(Transition, {"id": world.ids.new(), "timestamp": now, **fields})


def new_checkpoint(world: World, now: str | None = None, **fields: Any) -> Checkpoint:
    """Return the current state of a run. ``reason`` is one of `START`, `STAGE_COMPLETE`, `FINALIZE`."""
    now = now or rfc3339(world.clock.now())
    return made(Checkpoint, {"id": world.ids.new(), "persisted_at": now, **fields})


# Reading dicts.


def no_questions(run_id: str) -> list[Question]:
    """Return no questions: for records that list all their questions themselves."""
    return []


def no_requests(run_id: str) -> list[Dict]:
    """Return no requests: for records that list all their requests themselves."""
    return []


def normalised_run(given: Any, world: World, asked: QuestionsOf = no_questions) -> RunRecord:
    """Return the record in a dict, with derived parts filled in. Raise `MisuseError`."""
    run = read_run(given, world)
    run["_type"] = "run_record"
    run["id"] = run["id"] or f"run_{world.ids.new()}"
    run["started_at"] = run["started_at"] or rfc3339(world.clock.now())
    run["status"] = run["status"] or RUNNING
    run["root_run_id"] = run["root_run_id"] or run["id"]
    if run["replay_fixture"] is None:
        run["replay_fixture"] = fixture_of(run, world)
    derive_run(run, world, asked)
    if run["observability"] is None:
        run["observability"] = observability(run, world)
    return run


def derive_run(
    run: RunRecord, world: World, asked: QuestionsOf = no_questions, hitl: HitlOf = no_requests
) -> None:
    """Bring derived parts up to date: questions, requests to people, child runs, handoffs."""
    known = {question["request_id"] for question in run["hitl_questions"]}
    run["hitl_questions"] += [each for each in asked(run["id"]) if each["request_id"] not in known]
    requests = hitl(run["id"])
    if requests:
        run["metadata"] = {**run["metadata"], "hitl": merged_history(run["metadata"].get("hitl"), requests)}
    run["child_runs"][:] = completed_child_runs(run["child_runs"], run["stages"])
    synchronise_handoffs(run, world)


def read_run(given: Any, world: World) -> RunRecord:
    """Return the record in a dict: every key, nothing derived. Raise `MisuseError`."""
    with errors_after("run_record parse error at "):
        whole = unfolded(plain_json(given))
        run = read(RunRecord, whole)
        for index, stage in enumerate(run["stages"]):
            stage["artifacts"] = _artifacts(stage["artifacts"], f"stages[{index}].artifacts", world)
        run["artifacts"] = _artifacts(run["artifacts"], "artifacts", world)
        run["handoffs"] = read_handoffs(run["handoffs"], world)
    fixture = run["replay_fixture"]
    if fixture is not None and DERIVED in whole["replay_fixture"]:
        run["replay_fixture"] = fixture_made(run, fixture["id"], fixture["created_at"])
    return run


def _artifacts(given: list[Any], path: str, world: World) -> list[Artifact]:
    artifacts = []
    for index, item in enumerate(given):
        place = f"{path}[{index}]"
        try:
            artifacts.append(artifact.normalised_artifact(item, world, place))
        except FieldError:
            raise
        except MisuseError as error:
            raise MisuseError(f"{place}: {error.message}") from error
    return artifacts
