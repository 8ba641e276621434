"""The file of a run that a workflow writes: each thing once, a line for every stage. Spec: 08 §8.1.

A record repeats itself: a stage's artifact holds the stage's transcript and prompt, the run's artifacts are
its stages', every checkpoint lists all nodes completed so far. Its file doesn't: the head is written when the
run begins, each stage adds one line, and the end closes the JSON. So a stage costs the same in a run of any
length, and what a killed process leaves is a file whose end is missing. `unfolded` makes the whole record.

Pure: lines from a record whose parts are plain JSON, and back.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from harnpy.formats.dicts import read_fields
from harnpy.formats.json import parse_json
from harnpy.workflow.records.record_shapes import encoded
from harnpy.workflow.records.replay_fixture import fixture_made

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.records.record_shapes import RunRecord, StageRecord

#: The first key of such a file.
LAYOUT = "_layout"
_START = f'{{"{LAYOUT}":'
#: In the head: what the run began with, which later lines change.
_BEGUN = "_begun"
#: In a stage: what the record got with it; behind the stages: with the end.
_THEN = "_then"
#: In a stage: for each of its artifacts, the keys of `data` that are the stage's own transcript or metadata.
_SAME = "_same"
#: In a stage that consumed all that the former one did: its list has only what it consumed besides.
_MORE = "_more"
#: Lists that a transition shares with the stage that it leaves.
_OF_STAGE = ("consumed_artifact_ids", "produced_artifact_ids")
#: In a replay fixture that follows from the record: only its id and its time are there.
DERIVED = "_derived"
#: Lists that only grow. `artifacts` grows by those of the stages.
GROWING = ("transitions", "checkpoints", "trace_spans", "tool_recordings", "hitl_questions")
#: What is needed to make the whole of it; the reader of the record looks at the rest.
_PARTS = dict.fromkeys((*GROWING, "artifacts"), "list of dicts")
_OF_HEAD = {**_PARTS, _BEGUN: "dict", _THEN: "dict", "stages": "list of dicts"}
_OF_LINE = {
    "node_id": "string",
    "consumed_artifact_ids": "list of strings",
    "artifacts": "list of dicts",
    "metadata": "dict",
    _SAME: "list",
    _THEN: "dict",
}
#: What follows from the rest.
_DERIVED = ("stages", "transcript", "completed_nodes", "observability")
#: What the end says.
_ENDING = ("status", "finished_at", "usage", "pending_nodes", "replay_fixture")
_ERROR = "error"


# Writing.


def head(run: RunRecord, stages: Sequence[StageRecord]) -> bytes:
    """Return the head, with the stages of an earlier process."""
    whole: Dict = {**run}
    begun = {
        key: whole[key] for key in (*_ENDING, "transcript", "completed_nodes") if key != "replay_fixture"
    }
    kept = {key: value for key, value in whole.items() if key not in (*_DERIVED, *_ENDING)}
    by_id = {stage["id"]: stage for stage in stages}
    kept["transitions"] = [
        _step_of(step, by_id.get(step["from_stage_id"] or "")) for step in run["transitions"]
    ]
    start = encoded({LAYOUT: 1, **kept, _BEGUN: begun})
    lines, former = [], list[str]()
    for stage in stages:
        lines.append(encoded(_once(stage, None, former)))
        former = stage["consumed_artifact_ids"]
    return start[:-1] + b',"stages":[\n' + b",".join(line + b"\n" for line in lines)


def stage_line(stage: StageRecord, news: Dict, former: StageRecord | None) -> bytes:
    """Return the line of a stage that has ended after the ``former`` one; ``news`` are what `growth` and the
    run's state say."""
    if former is None:
        return encoded(_once(stage, news, [])) + b"\n"
    return b"," + encoded(_once(stage, news, former["consumed_artifact_ids"])) + b"\n"


def end(run: RunRecord, news: Dict) -> bytes:
    """Return the end: what makes the file whole."""
    whole: Dict = {**run}
    ending = {key: whole[key] for key in _ENDING}
    fixture = run["replay_fixture"]
    if fixture is not None and fixture == fixture_made(run, fixture["id"], fixture["created_at"]):
        ending["replay_fixture"] = {DERIVED: True, "id": fixture["id"], "created_at": fixture["created_at"]}
    return b"]," + encoded({**ending, _THEN: news})[1:] + b"\n"


def growth(run: RunRecord, counts: Dict) -> Dict:
    """Return what has been added to the lists of a record that had so many items, and count it."""
    whole: Any = run
    news: Dict = {}
    for key in GROWING:
        items = whole[key]
        known = counts[key]
        if len(items) > known:
            news[key] = items[known:]
            counts[key] = len(items)
    if "checkpoints" in news:
        news["checkpoints"] = [
            {key: value for key, value in each.items() if key != "completed_nodes"}
            for each in news["checkpoints"]
        ]
    return news


def _once(stage: StageRecord, news: Dict | None, former: list[str]) -> Dict:
    """Return the stage without what it says twice, and without what the ``former`` one consumed, too."""
    line: Dict = {**stage}
    consumed = stage["consumed_artifact_ids"]
    if former and consumed[: len(former)] == former:
        line["consumed_artifact_ids"], line[_MORE] = consumed[len(former) :], True
    metadata, transcript = stage["metadata"], stage["transcript"]
    artifacts: list[Mapping[str, Any]] = []
    same: list[list[str]] = []
    for artifact in stage["artifacts"]:
        data, keys = artifact["data"], []
        if type(data) is dict:
            keys = [
                key
                for key, value in data.items()
                if value is not None and value is (transcript if key == "transcript" else metadata.get(key))
            ]
        same.append(keys)
        if keys:
            rest = {key: value for key, value in data.items() if key not in keys}
            artifacts.append({**artifact, "data": rest})
        else:
            artifacts.append(artifact)
    if any(same):
        line["artifacts"], line[_SAME] = artifacts, same
    if news is not None:
        line[_THEN] = news
        if "transitions" in news:
            news["transitions"] = [
                _step_of(step, stage if step["from_stage_id"] == stage["id"] else None)
                for step in news["transitions"]
            ]
    return line


def _step_of(step: Any, stage: StageRecord | None) -> Dict:
    """Return a step without the lists that are those of the stage that it leaves."""
    whole: Any = stage
    return {
        key: value
        for key, value in step.items()
        if stage is None or key not in _OF_STAGE or value != whole[key]
    }


# Reading.


def parsed(text: str) -> Any:
    """Return the value in the text of a record's file, also of one whose run was killed. Raise ValueError."""
    try:
        return parse_json(text)
    except ValueError:
        if not text.startswith(_START):
            raise
        return parse_json(closed(text))


def closed(text: str) -> str:
    """Return the text of a file whose end, or last line, is missing, with an end."""
    whole = text[: text.rfind("\n") + 1] if not text.endswith("\n") else text
    return f"{whole or text}]}}"


def unfolded(given: Any) -> Any:
    """Return the whole record of a file in lines; anything else as it is.

    A replay fixture that follows from the record is left as it is. Raise `FieldError` for what isn't as
    `head`, `stage_line` and `end` wrote it, as far as it matters here.
    """
    if not isinstance(given, dict) or LAYOUT not in given:
        return given
    read_fields(given, _OF_HEAD, "")
    read_fields(given.get(_BEGUN) or {}, {"completed_nodes": "list of strings"}, _BEGUN)
    read_fields(given.get(_THEN) or {}, _PARTS, _THEN)
    run = {key: value for key, value in given.items() if key not in (LAYOUT, _BEGUN, _THEN)}
    state: Dict = {**_dict(given.get(_BEGUN))}
    lists = {key: [*_list(run.get(key))] for key in (*GROWING, "artifacts")}
    completed = sorted(_list(state.get("completed_nodes")))
    stages: list[Any] = []
    consumed: list[Any] = []
    for place, line in enumerate(_list(run.get("stages"))):
        _check_line(line, f"stages[{place}]")
        stage = _whole(line, consumed)
        consumed = _list(stage.get("consumed_artifact_ids"))
        stages.append(stage)
        then = line.get(_THEN)
        if not isinstance(then, dict):
            continue  # of an earlier process: the head has the rest
        if stage.get("transcript") is not None and stage.get("branch") != _ERROR:
            state["transcript"] = stage["transcript"]
        _add_sorted(completed, stage.get("node_id") or "")
        lists["artifacts"] += _list(stage.get("artifacts"))
        _take(then, lists, state, completed)
    _take(_dict(given.get(_THEN)), lists, state, completed)
    lists["transitions"] = _with_lists(lists["transitions"], stages)
    state["completed_nodes"] = completed
    ending = {key: run[key] for key in _ENDING if key in run}
    return {**run, **lists, **state, **ending, "stages": stages}


def _check_line(line: Dict, path: str) -> None:
    """Raise `FieldError` for a stage that `stage_line` didn't write."""
    read_fields(line, _OF_LINE, path)
    read_fields(line.get(_THEN) or {}, _PARTS, f"{path}.{_THEN}")
    for place, keys in enumerate(line.get(_SAME) or ()):
        here = f"{_SAME}[{place}]"
        read_fields({here: keys}, {here: "list of strings"}, path)


def _take(then: Dict, lists: dict[str, list[Any]], state: Dict, completed: list[str]) -> None:
    """Add what a line says about the run."""
    for key, value in then.items():
        if key == "checkpoints":
            value = [{**each, "completed_nodes": [*completed]} for each in _list(value)]
            state["pending_nodes"] = value[-1].get("ready_nodes") if value else state.get("pending_nodes")
        if key in GROWING:
            lists[key] += _list(value)
        elif key == "artifacts":
            lists[key] = _list(value)
        else:
            state[key] = value


def _whole(line: Dict, consumed: list[Any]) -> Dict:
    """Return the stage of a line; the former one ``consumed`` these artifacts."""
    stage = {key: value for key, value in line.items() if key not in (_THEN, _SAME, _MORE)}
    if line.get(_MORE):
        stage["consumed_artifact_ids"] = consumed + _list(stage.get("consumed_artifact_ids"))
    same = _list(line.get(_SAME))
    if same:
        known = {**_dict(stage.get("metadata")), "transcript": stage.get("transcript")}
        stage["artifacts"] = [
            _with_same(artifact, keys, known)
            for artifact, keys in zip_longest(_list(stage.get("artifacts")), same)
        ]
    return stage


def _with_lists(steps: list[Any], stages: list[Any]) -> list[Any]:
    """Return the steps with the lists of the stages that they leave."""
    shared = {
        str(stage.get("id")): {key: stage.get(key) for key in _OF_STAGE}
        for stage in stages
        if isinstance(stage, dict)
    }
    return [
        {**shared.get(str(step.get("from_stage_id")), {}), **step} if isinstance(step, dict) else step
        for step in steps
    ]


def _with_same(artifact: Any, keys: Any, known: Dict) -> Any:
    if not keys or not isinstance(artifact, dict):
        return artifact
    same = {key: known.get(key) for key in _list(keys)}
    return {**artifact, "data": {**_dict(artifact.get("data")), **same}}


def _add_sorted(names: list[str], name: Any) -> None:
    place = bisect_left(names, name)
    if place == len(names) or names[place] != name:
        insort(names, name)


def _dict(value: Any) -> Dict:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
