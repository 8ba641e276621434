"""Eval packs in files: TOML, JSON, and where their paths begin (08 §8.7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnpy.faults import MisuseError
from harnpy.workflow.evaluation import load_pack, run_pack
from harnpy.world import World
from tests.worlds import world_with

Dict = dict[str, Any]

EVENT = {"kind": "tool_gap", "source": "desk", "summary": "no lookup"}


def write(path: Path, value: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = value if isinstance(value, str) else json.dumps(value)
    path.write_text(text, encoding="utf-8")
    return str(path)


def run(id: str, **fields: Any) -> Dict:
    return {"_type": "run_record", "id": id, "workflow_id": "w", "status": "completed", **fields}


def report(path: str) -> Dict:
    world = World()
    return run_pack(load_pack(path, world), world)


def test_toml(tmp_path: Path) -> None:
    path = write(
        tmp_path / "harn.eval.toml",
        """
        version = 1
        id = "nightly"
        [metadata]
        since = 2026-01-02T03:04:05Z
        [defaults]
        severity = "warning"
        fixture-root = "fixtures"
        [defaults.thresholds]
        max-tokens = 10
        [[fixtures]]
        id = "base"
        kind = "run-record"
        path = "base.json"
        [[rubrics]]
        id = "done"
        [[rubrics.assertions]]
        kind = "run-status"
        expected = "completed"
        [[cases]]
        name = "smoke"
        run-path = "runs/a.json"
        compare-to = "base"
        rubrics = ["done"]
        """,
    )
    write(tmp_path / "fixtures" / "base.json", run("r0"))
    write(tmp_path / "runs" / "a.json", run("r1"))
    pack = load_pack(path, World())
    assert (pack["id"], pack["base_dir"]) == ("nightly", f"{tmp_path}/")
    assert pack["metadata"] == {"since": "2026-01-02T03:04:05+00:00"}
    case = report(path)["cases"][0]
    assert (case["label"], case["severity"], case["pass"], case["warnings"]) == ("smoke", "warning", True, [])
    assert case["source_path"] == f"{tmp_path}/runs/a.json"
    assert case["comparison"]["identical"]


def test_json(tmp_path: Path) -> None:
    path = write(tmp_path / "pack.json", {"version": 2, "id": "p", "cases": [{"run": "a.json"}]})
    write(tmp_path / "a.json", run("r1"))
    assert load_pack(path, World())["version"] == 2
    assert report(path)["cases"][0]["run_id"] == "r1"


def test_paths_begin_at_base_dir_below_the_folder_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "pack.json", {"id": "p", "base_dir": "runs", "cases": [{"run": "a.json"}]})
    write(tmp_path / "runs" / "a.json", run("r1"))
    assert report(path)["cases"][0]["source_path"] == f"{tmp_path}/runs/a.json"


def test_an_absolute_base_dir_is_as_it_is(tmp_path: Path) -> None:
    other = tmp_path / "other"
    path = write(tmp_path / "pack.json", {"id": "p", "base_dir": str(other), "cases": [{"run": "a.json"}]})
    write(other / "a.json", run("r1"))
    assert report(path)["cases"][0]["source_path"] == f"{other}/a.json"


def test_relative_paths_begin_at_the_working_directory(tmp_path: Path) -> None:
    write(tmp_path / "sub" / "pack.json", {"id": "p", "cases": [{"run": "a.json"}]})
    write(tmp_path / "sub" / "a.json", run("r1"))
    world = world_with(cwd=lambda: str(tmp_path))
    case = run_pack(load_pack("sub/pack.json", world), world)["cases"][0]
    assert case["source_path"] == "sub/a.json"


def test_fixtures_begin_at_the_fixture_root(tmp_path: Path) -> None:
    cases = [{"run": "a.json", "fixture": "strict"}, {"run": "a.json", "fixture_path": "lax.json"}]
    fixtures = [{"id": "strict", "path": "strict.json"}]
    pack = {"id": "p", "defaults": {"fixture_root": "fx"}, "fixtures": fixtures, "cases": cases}
    path = write(tmp_path / "pack.json", pack)
    write(tmp_path / "a.json", run("r1"))
    write(tmp_path / "fx" / "strict.json", {"expected_status": "failed"})
    write(tmp_path / "fx" / "lax.json", {"expected_status": "completed"})
    judged = report(path)["cases"]
    assert [case["failures"] for case in judged] == [
        ["run status mismatch: expected failed, got completed"],
        [],
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("events.json", json.dumps([EVENT, EVENT])),
        ("events.json", json.dumps({"events": [EVENT, EVENT]})),
        ("friction.jsonl", f"{json.dumps(EVENT)}\n\n{json.dumps(EVENT)}\n"),
        (
            "friction.jsonl",
            f"{json.dumps(EVENT)}\n{json.dumps({**EVENT, 'x': chr(0x2028)}, ensure_ascii=False)}",
        ),
    ],
)
def test_friction_events_in_files(tmp_path: Path, name: str, text: str) -> None:
    pack = {"id": "p", "defaults": {"fixture_root": "fx"}, "cases": [{"friction_events": name}]}
    path = write(tmp_path / "pack.json", pack)
    write(tmp_path / "fx" / name, text)
    case = report(path)["cases"][0]
    assert (case["pass"], case["source_path"]) == (True, f"{tmp_path}/fx/{name}")


def test_expectations_of_friction_in_a_file(tmp_path: Path) -> None:
    given = {"events": [EVENT], "expected_suggestions": [{"min_suggestions": 1}]}
    path = write(tmp_path / "pack.json", {"id": "p", "cases": [{"friction-events": "events.json"}]})
    write(tmp_path / "events.json", given)
    assert report(path)["cases"][0]["failures"] == ["expected at least 1 context-pack suggestion(s), got 0"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("pack.toml", "id = ", r"failed to parse eval pack: 'id =' is not valid here"),
        ("pack.json", "{", r"failed to parse eval pack: "),
        ("pack.json", "[]", r"eval_pack_manifest parse error at payload: expected dict, got list"),
    ],
)
def test_files_that_hold_no_pack(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(MisuseError, match=message):
        load_pack(write(tmp_path / name, text), World())


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="failed to read eval pack: No such file or directory"):
        load_pack(str(tmp_path / "pack.toml"), World())


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"run": "broken.json"}, "failed to parse run record: "),
        ({"run": "a.json", "fixture": "broken.json"}, "failed to parse replay fixture: "),
        ({"friction_events": "broken.json"}, "failed to parse friction events: "),
        ({"friction_events": "broken.jsonl"}, "failed to parse friction events: "),
    ],
)
def test_files_of_cases_that_are_broken(tmp_path: Path, case: Dict, message: str) -> None:
    path = write(tmp_path / "pack.json", {"id": "p", "cases": [case]})
    write(tmp_path / "a.json", run("r1"))
    for name in ("broken.json", "broken.jsonl"):
        write(tmp_path / name, "{")
    with pytest.raises(MisuseError, match=message):
        report(path)
