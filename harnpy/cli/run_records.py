"""Run records for the command line: reading and finding them, and their lines on a terminal.

Spec: 09 §8, §10.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from harnpy.cli import FAILED
from harnpy.cli.console import complain, counted, harmless, one_line, paint
from harnpy.faults import MisuseError
from harnpy.formats.dicts import Dict
from harnpy.formats.json import compact_json, refuse_depth
from harnpy.workflow.records import record_files
from harnpy.workflow.records.record import RUNNING
from harnpy.workflow.records.record_lines import closed
from harnpy.workflow.records.record_shapes import ChildRun, RunRecord, StageRecord
from harnpy.workflow.records.replay_fixture import evaluate_fixture
from harnpy.world import World


def load(name: str) -> RunRecord:
    """Return the record in a file, of the run with that id, or of the one workflow of a durable run with it.

    Raises `MisuseError`; see `unreadable`.
    """
    return record_files.load_run(file_of(name), World())


def file_of(name: str) -> str:
    """Return the path of a record, given as a path or as an id that `harnpy runs list` shows.

    Raises `MisuseError` for a durable run that has left several.
    """
    of_id = record_files.default_path(name, World())
    if Path(name).exists() or "/" in name:
        return name
    if "." not in name and Path(of_id).exists():
        return of_id
    left = records_of(name)
    if len(left) > 1:
        ids = ", ".join(
            f"{one_line(each.id)} ({one_line(each.workflow_name or each.workflow_id)})" for each in left
        )
        raise MisuseError(f"run record: run '{name}' has run {len(left)} workflows: name one of {ids}")
    return left[0].path if left else name


def records_of(run: str) -> list[Summary]:
    """Return the records of the workflows that a durable run has run, the oldest first."""
    found = [
        each for each in summaries(Path(record_files.run_directory(World()))) if each.parent_run_id == run
    ]
    return sorted(found, key=lambda each: (each.started_at, each.id))


def unreadable(error: MisuseError) -> int:
    """Report that there is no record; return the exit status."""
    return refused(error, f"Failed to load run record: {error.message.partition(': ')[2]}")


def refused(error: Exception, message: str) -> int:
    """Report what is wrong, and with which file if known; return the exit status."""
    named = [harmless(file) for file in getattr(error, "__notes__", ())]
    complain("\n  --> ".join([message, *named]))
    return FAILED


class Usage(msgspec.Struct):
    total_cost: float = 0.0


class Summary(msgspec.Struct):
    """The parts of a record that a list shows; the rest of the file is skipped."""

    id: str
    workflow_id: str
    workflow_name: str | None = None
    status: str = ""
    started_at: str = ""
    finished_at: str | None = None
    parent_run_id: str | None = None
    stages: list[msgspec.Raw] = []
    usage: Usage | None = None
    path: str = ""

    @property
    def duration_ms(self) -> int | None:
        """None for a run that isn't over, or has invalid times."""
        started, finished = _time(self.started_at), _time(self.finished_at or "")
        if started is None or finished is None:
            return None
        return round((finished - started).total_seconds() * 1000)

    @property
    def cost(self) -> float | None:
        return None if self.usage is None else self.usage.total_cost

    def as_dict(self) -> Dict:
        names = "id workflow_id workflow_name status started_at finished_at path"
        shown: Dict = {name: getattr(self, name) for name in names.split()}
        shown |= {"stages": len(self.stages), "duration_ms": self.duration_ms, "cost": self.cost}
        return shown if self.parent_run_id is None else {**shown, "parent_run_id": self.parent_run_id}


def summaries(directory: Path) -> Iterator[Summary]:
    """Yield the records in a directory and below it. Other JSON files are skipped."""
    for path in sorted(directory.rglob("*.json")):
        try:
            summary = _summarised(path.read_bytes())
        except (msgspec.DecodeError, ValueError, OSError, RecursionError):
            continue
        if summary.id and summary.workflow_id:
            summary.path = str(path)
            yield summary


def _summarised(data: bytes) -> Summary:
    """Return the summary of a record; the file of a run that goes on, or was killed, has no end yet."""
    refuse_depth(data)
    try:
        return msgspec.json.decode(data, type=Summary)
    except msgspec.DecodeError:
        summary = msgspec.json.decode(closed(data.decode("utf-8", "replace")), type=Summary)
        summary.status = summary.status or RUNNING
        return summary


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None


def to_the_second(text: str) -> str:
    """Return a time as a list shows it; one that can't be read as it is."""
    time = _time(text)
    return text if time is None else time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


# A run record as lines for the terminal, and the differences of two. Spec: 09 §8.1–8.2.


_PASSED = ("complete", "completed", "success", "verified")
_FAILED = ("failed", "error", "cancelled", "dead")


def style_of(status: str) -> str:
    """Return the colour of a status that a run ended with, "" while it goes on."""
    return "green" if status in _PASSED else "red" if status in _FAILED else ""


def inspection_lines(run: RunRecord) -> Iterator[str]:
    """Return what `harnpy runs inspect` prints of a record: what there is, without zeros and gaps."""
    yield from _summary(run)
    yield from _observed(run["observability"] or {})
    yield from _lineage(run["metadata"])
    if run["pending_nodes"]:
        yield f"Pending nodes: {one_line(', '.join(run['pending_nodes']))}"
    yield f"Replay fixture: {'derived' if run['replay_fixture'] is None else 'embedded'}"
    for stage in run["stages"]:
        yield from _stage(stage, run["child_runs"])
    yield from _details(run["observability"] or {})


def difference(diff: Dict) -> Iterator[str]:
    """Return what `--compare` adds: from the baseline to the run."""
    ids, statuses = (f"{diff[f'left_{what}']} -> {diff[f'right_{what}']}" for what in ("run_id", "status"))
    yield one_line(f"Diff: {ids} [{statuses}]")
    yield f"Identical: {_word(diff['identical'])}"
    for name, list_name in (("Stage", "stage"), ("Tool", "tool"), ("Observability", "observability")):
        yield f"{name} diffs: {len(diff[f'{list_name}_diffs'])}"
    for name in ("transition", "artifact", "checkpoint"):
        yield f"{name.capitalize()} delta: {diff[f'{name}_count_delta']}"
    for name, change, details in changes(diff):
        yield f"- {one_line(name)} [{change}]"
        yield from (f"  {harmless(detail)}" for detail in details)


def changes(diff: Dict) -> Iterator[tuple[str, str, list[str]]]:
    """Yield every difference: its subject, its kind, its details."""
    for stage in diff["stage_diffs"]:
        yield stage["node_id"], stage["change"], stage["details"]
    for tool in diff["tool_diffs"]:
        results = f"result: {_shown(tool['left_result'])} -> {_shown(tool['right_result'])}"
        yield f"tool {tool['tool_name']} {tool['args_hash']}", "changed", [results]
    for observed in diff["observability_diffs"]:
        yield f"{observed['section']} {observed['label']}", "changed", observed["details"]


def replay_lines(run: RunRecord) -> Iterator[str]:
    """Return what `harnpy replay` prints of a record."""
    yield f"Replay: {one_line(run['id'])}"
    for stage in run["stages"]:
        yield f"[{one_line(stage['node_id'])}] {_ending(stage)}".rstrip()
        if stage["visible_text"] is not None:
            yield f"  visible: {harmless(stage['visible_text'])}"
        if stage["verification"] is not None:
            yield f"  verification: {harmless(compact_json(stage['verification']))}"
    transcript = run["transcript"]
    if isinstance(transcript, dict):
        events = transcript.get("events")
        yield f"Transcript events persisted: {len(events) if isinstance(events, list) else 0}"
    if run["replay_fixture"] is not None:
        report = evaluate_fixture(run, run["replay_fixture"])
        verdict = "PASS" if report["pass"] else "FAIL"
        yield f"Embedded replay fixture: {_painted(verdict, 'green' if report['pass'] else 'red')}"
        yield from (f"  {harmless(failure)}" for failure in report["failures"])
    for step in run["transitions"]:
        origin, branch = step["from_node_id"] or "start", step["branch"] or "default"
        yield one_line(f"transition {origin} -> {step['to_node_id']} ({branch})")


# Parts of an inspection.


def _summary(run: RunRecord) -> Iterator[str]:
    yield f"Run: {one_line(run['id'])}"
    yield f"Workflow: {harmless(run['workflow_name'] or run['workflow_id'])}"
    if run["status"]:
        yield f"Status: {_status(run['status'])}"
    if isinstance(run["metadata"].get("error"), str):
        yield f"Error: {harmless(run['metadata']['error'])}"
    if run["task"]:
        yield f"Task: {harmless(run['task'])}"
    counts = {
        name.capitalize(): len(run[name]) for name in ("stages", "artifacts", "transitions", "checkpoints")
    }
    yield from _counts({**counts, "HITL questions": len(run["hitl_questions"])})
    usage = run["usage"]
    if usage is not None:
        yield from _counts({"Input tokens": usage["input_tokens"], "Output tokens": usage["output_tokens"]})
        if usage["total_cost"]:
            yield f"Cost: ${usage['total_cost']:.4f}"


def _counts(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each that isn't zero."""
    yield from (f"{name}: {count}" for name, count in counts.items() if count)


def _observed(told: Dict) -> Iterator[str]:
    yield from _counts(
        {
            "Planner rounds": len(told["planner_rounds"]),
            "Research facts": told["research_fact_count"],
            "Workers": len(told["worker_lineage"]),
        }
    )
    nodes, edges = len(told["action_graph_nodes"]), len(told["action_graph_edges"])
    if nodes or edges:
        yield f"Action graph: {counted(nodes, 'node')} / {counted(edges, 'edge')}"
    pointers = sum(bool(pointer["available"]) for pointer in told["transcript_pointers"])
    yield from _counts({"Transcript pointers": pointers, "Daemon events": len(told["daemon_events"])})


def _lineage(metadata: Dict) -> Iterator[str]:
    for key, name in (("parent_worker_id", "Parent worker"), ("parent_stage_id", "Parent stage")):
        if isinstance(metadata.get(key), str):
            yield f"{name}: {one_line(metadata[key])}"
    if metadata.get("delegated") is True:
        yield "Delegated: true"


def _stage(stage: StageRecord, children: list[ChildRun]) -> Iterator[str]:
    kind = f"[{one_line(stage['kind'])}]" if stage["kind"] else ""
    line = " ".join(filter(None, ("-", one_line(stage["node_id"]), kind, _ending(stage))))
    handle = stage["metadata"].get("worker")
    if not isinstance(handle, dict):
        yield line
        if stage["branch"] == "error" and stage["metadata"].get("error"):
            yield f"  error: {one_line(stage['metadata']['error'])}"
        return
    known = [child for child in children if child["worker_id"] == handle.get("id")]
    child: Mapping[str, Any] = (
        known[0] if known else dict.fromkeys(("worker_name", "worker_id", "run_id", "run_path"))
    )
    yield f"{line} worker={one_line(child['worker_name'])}" if child["worker_name"] else line
    for name, key in (("worker_id", "worker_id"), ("child_run_id", "run_id"), ("child_run_path", "run_path")):
        if child[key]:
            yield f"  {name}: {one_line(child[key])}"


def _details(told: Dict) -> Iterator[str]:
    for each in told["planner_rounds"]:
        did = {
            "iterations": each["iteration_count"],
            "llm_calls": each["llm_call_count"],
            "tool_executions": each["tool_execution_count"],
            "tools": ", ".join(each["tools_used"]),
        }
        yield one_line(f"planner {each['node_id']}: {_pairs(did)}")
    for pointer in told["transcript_pointers"]:
        if pointer["available"]:
            yield one_line(f"transcript {pointer['label']}: {pointer['location']}")
    for event in told["daemon_events"]:
        parts = (event["daemon_state"], event["snapshot_path"])
        yield one_line(f"daemon {event['node_id']}: {' '.join(filter(None, parts))}")


def _ending(stage: StageRecord) -> str:
    status = _status(stage["status"]) if stage["status"] else None
    outcome, branch = (one_line(stage[key] or "") for key in ("outcome", "branch"))
    return _pairs({"status": status, "outcome": outcome, "branch": branch})


def _pairs(given: Mapping[str, Any]) -> str:
    """Return what isn't empty, as `key=value`."""
    return " ".join(f"{key}={value}" for key, value in given.items() if value)


def _status(status: str) -> str:
    return _painted(one_line(status), style_of(status))


def _painted(text: str, style: str) -> str:
    return paint(text, style, sys.stdout) if style else text


def _word(value: bool) -> str:
    return "true" if value else "false"


def _shown(value: Any) -> str:
    return "-" if value is None else value if isinstance(value, str) else compact_json(value)
