"""The sections of a bundle, taken from a run record. Pure. Spec: 08 §17, the table.

Sections only read parts of the record that an import restores; so exporting an imported record gives the same
sections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harnpy.agent.people.history import requests_of
from harnpy.agent.people.requests import QUESTION
from harnpy.reading.lenient import as_dict, dicts_at
from harnpy.workflow.bundle.decisions import decisions
from harnpy.workflow.bundle.tool_calls import tool_calls
from harnpy.workflow.records.observability import verdict_of
from harnpy.workflow.records.record_shapes import RUN
from harnpy.workflow.shapes import Field, Shape, all_of, only, read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.reading.dicts import Dict
    from harnpy.workflow.bundle.bundle_types import Sections, StageOutcome, TranscriptSection
    from harnpy.workflow.records.record_types import ReplayFixture, RunRecord, StageRecord


IDENTITY = (
    "id", "workflow_id", "workflow_name", "task", "status", "started_at", "finished_at", "parent_run_id",
    "root_run_id",
)  # fmt: skip
_QUESTION = ("request_id", "prompt", "agent", "trace_id", "asked_at")
SECTIONS: Final = (
    "run", "transcripts", "tool_calls", "permissions", "hitl", "replay", "trace_spans", "usage", "child_runs"
)  # fmt: skip

_OUTCOME: Shape[StageOutcome] = Shape(
    {
        **all_of(Field("string", ""), "stage_id node_id status outcome"),
        "branch": Field("string"),
        "artifact_kinds": Field("list of strings", []),
        "verification_ok": Field("bool"),
    }
)


def sections(run: RunRecord, fixture: ReplayFixture | None, sidecar: Sequence[Dict]) -> Sections:
    """Return the sections of a record that has all its keys.

    ``sidecar`` are the rows of the run's `llm_transcript.jsonl`.
    """
    requests = requests_of(run["metadata"].get("hitl"), run["hitl_questions"])
    identity: Any = only(run, IDENTITY)
    return {
        "run": identity,
        "transcripts": list(_transcripts(run, sidecar)),
        "tool_calls": tool_calls(run),
        "permissions": decisions(_events(run), requests),
        "hitl": requests,
        "replay": {"fixture": fixture, "stages": [_outcome(stage) for stage in run["stages"]]},
        "trace_spans": run["trace_spans"],
        "usage": run["usage"],
        "child_runs": run["child_runs"],
    }


def record_of(bundle: Dict) -> RunRecord:
    """Return the record in a bundle's sections, without its stages and transcripts. Raise `MisuseError`."""
    return read(
        RUN,
        {
            **{key: bundle["run"][key] for key in IDENTITY},
            "tool_recordings": bundle["tool_calls"],
            "hitl_questions": [_question(each) for each in bundle["hitl"] if each.get("kind") == QUESTION],
            "metadata": {"hitl": bundle["hitl"]} if bundle["hitl"] else {},
            "replay_fixture": bundle["replay"]["fixture"],
            **{key: bundle[key] for key in ("trace_spans", "usage", "child_runs")},
        },
    )


def outcomes_of(bundle: Dict) -> list[StageOutcome]:
    """Return how the stages ended. Raise `MisuseError`."""
    stages = enumerate(bundle["replay"]["stages"])
    return [read(_OUTCOME, stage, f"replay.stages[{at}]") for at, stage in stages]


def _transcripts(run: RunRecord, sidecar: Sequence[Dict]) -> Iterator[TranscriptSection]:
    if run["transcript"] is not None:
        yield _section("run", run["transcript"])
    for stage in run["stages"]:
        if stage["transcript"] is not None:
            yield _section(f"stage:{stage['id']}", stage["transcript"])
    if sidecar:
        session = next((row["session_id"] for row in sidecar if row.get("session_id")), None)
        yield {"section": "sidecar", "session_id": session, "transcript": {"rows": list(sidecar)}}


def _section(name: str, transcript: Any) -> TranscriptSection:
    return {"section": name, "session_id": as_dict(transcript).get("id"), "transcript": transcript}


def _events(run: RunRecord) -> Iterator[Dict]:
    """Yield the events of all transcripts, with the id of the stage; a shared event once."""
    seen: set[str] = set()
    sources = [(stage["id"], stage["transcript"]) for stage in run["stages"]]
    for stage_id, transcript in [*sources, (None, run["transcript"])]:
        for event in dicts_at(transcript, "events"):
            if not isinstance(event.get("kind"), str):
                continue
            id = event.get("id")
            if not isinstance(id, str) or id not in seen:
                yield {"stage_id": stage_id, **event}
            if isinstance(id, str):
                seen.add(id)


def _question(request: Dict) -> Dict:
    """Return the question of a request as `hitl_questions` has it; its prompt may have been removed."""
    known = {**request, "asked_at": request.get("requested_at")}
    if not isinstance(known.get("prompt"), str):
        known["prompt"] = ""
    return {key: known[key] for key in _QUESTION if known.get(key) is not None}


def _outcome(stage: StageRecord) -> StageOutcome:
    return {
        "stage_id": stage["id"],
        "node_id": stage["node_id"],
        "status": stage["status"],
        "outcome": stage["outcome"],
        "branch": stage["branch"],
        "artifact_kinds": [artifact["kind"] for artifact in stage["artifacts"]],
        "verification_ok": verdict_of(stage["verification"]),
    }
