"""Friction: the log of JSON lines, and laws of redaction (08 §8.8)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.faults import MisuseError
from harnpy.workflow.friction import FrictionLog, normalised_event, redacted
from harnpy.world import World
from tests.worlds import world_with

Dict = dict[str, Any]


def event(summary: str, **fields: Any) -> Dict:
    return {"kind": "tool_gap", "summary": summary, **fields}


def lines(path: Path) -> list[Dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("key", ["log_path", "path"])
def test_a_log_gets_one_compact_line_an_event(tmp_path: Path, key: str) -> None:
    log, path = FrictionLog(), tmp_path / "new" / "deep" / "friction.jsonl"
    results = [log.record(event(text), {key: str(path)}, World()) for text in ("one", "größe\n two")]
    assert lines(path) == log.events == [result["event"] for result in results]
    assert [(result["recorded"], result["sink"], result["path"]) for result in results] == [
        (True, "jsonl", str(path))
    ] * 2
    assert ", " not in path.read_text(encoding="utf-8").replace("größe two", "")


def test_the_log_may_be_named_by_the_environment(tmp_path: Path) -> None:
    path, other = tmp_path / "environment.jsonl", tmp_path / "option.jsonl"
    world = world_with(get={"HARN_FRICTION_LOG": str(path)}.get)
    log = FrictionLog()
    assert log.record(event("a"), None, world)["path"] == str(path)
    assert log.record(event("b"), {"log_path": str(other)}, world)["path"] == str(other)
    assert [line["redacted_summary"] for line in lines(path)] == ["a"]
    assert [line["redacted_summary"] for line in lines(other)] == ["b"]


def test_an_empty_variable_names_no_log() -> None:
    result = FrictionLog().record(event("a"), None, world_with(get={"HARN_FRICTION_LOG": ""}.get))
    assert result["sink"] == "memory"
    assert "path" not in result


def test_a_disabled_record_writes_nothing(tmp_path: Path) -> None:
    log, path = FrictionLog(), tmp_path / "friction.jsonl"
    result = log.record(event("a"), {"enabled": False, "log_path": str(path)}, World())
    assert (result["recorded"], result["sink"], log.events, path.exists()) == (False, "disabled", [], False)


def test_an_event_that_could_not_be_written_is_not_kept(tmp_path: Path) -> None:
    log = FrictionLog()
    with pytest.raises(MisuseError, match="failed to write friction log"):
        log.record(event("a"), {"path": str(tmp_path)}, World())
    assert log.events == []


def test_nothing_secret_reaches_the_log(tmp_path: Path) -> None:
    path = tmp_path / "friction.jsonl"
    secrets = {"token": "hunter2", "nested": [{"password": "hunter2"}], "text": "password=hunter2"}
    given = event("sk-hunter2", metadata=secrets, raw_prompt="hunter2", raw_content="hunter2")
    FrictionLog().record(given, {"path": str(path)}, World())
    assert "hunter2" not in path.read_text(encoding="utf-8")


@given(st.text())
def test_redacting_twice_is_redacting_once(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)


@given(
    st.dictionaries(st.sampled_from(["a", "my_token", "b"]), st.recursive(st.text(), st.lists), max_size=3)
)
def test_a_normal_event_stays_as_it_is(metadata: Dict) -> None:
    once = normalised_event(event("s", metadata=metadata), World(), top_level_keys=True)
    assert normalised_event(once, World(), top_level_keys=True) == once
