"""The file of a session's agent events (08 §1.7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnpy.session import SessionRegistry, open_sessions
from harnpy.session.open_sessions import VARIABLE
from tests.worlds import world_with


class Clock:
    def __init__(self) -> None:
        self.time = 1_700_000_000.0

    def __call__(self) -> float:
        self.time += 0.25
        return self.time


def store_in(directory: str | None, **methods: Any) -> SessionRegistry:
    return SessionRegistry(world=world_with(now=Clock(), get={VARIABLE: directory}.get, **methods))


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_event_is_a_line_with_an_index_and_a_time(tmp_path: Path) -> None:
    store = store_in(str(tmp_path / "made" / "for it"))
    store.open("s")
    heard: list[dict[str, Any]] = []
    store.subscribe("s", heard.append)
    for n in range(3):
        store.emit("s", {"type": "turn_start", "session_id": "s", "iteration": n})
    store.close("s", "over")
    written = rows(tmp_path / "made" / "for it" / "event_log-s.jsonl")
    assert [row.pop("index") for row in written] == [0, 1, 2, 3]
    stamps = [row.pop("emitted_at_ms") for row in written]
    assert stamps == sorted(stamps)
    assert all(type(stamp) is int for stamp in stamps)
    assert {row.pop("frame_depth") for row in written} == {None}
    assert written == heard
    assert written[-1]["type"] == "agent_session_closed"


def test_the_file_is_there_and_empty_as_soon_as_the_session_is(tmp_path: Path) -> None:
    (tmp_path / "event_log-s.jsonl").write_text("old\n")
    store_in(str(tmp_path)).open("s")
    assert (tmp_path / "event_log-s.jsonl").read_text() == ""


def test_opening_again_goes_on_with_the_file(tmp_path: Path) -> None:
    store = store_in(str(tmp_path))
    for _ in range(2):
        store.open("s")
        store.emit("s", {"type": "x"})
    assert [row["index"] for row in rows(tmp_path / "event_log-s.jsonl")] == [0, 1]


def test_a_fork_has_a_file_of_its_own(tmp_path: Path) -> None:
    store = store_in(str(tmp_path))
    store.open("s")
    store.fork("s", "f")
    store.emit("f", {"type": "x"})
    assert (tmp_path / "event_log-s.jsonl").read_text() == ""
    assert len(rows(tmp_path / "event_log-f.jsonl")) == 1


def test_ids_stay_apart_and_inside_the_directory(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    store = store_in(str(directory))
    for id in ("../x", "..%2Fx", "a/b", "a_b", "é", "\udcff"):
        store.open(id)
        store.emit(id, {"type": "x", "session_id": id})
    assert len(list(directory.iterdir())) == 6
    assert list(tmp_path.iterdir()) == [directory]


@pytest.mark.parametrize("directory", [None, ""])
def test_without_a_directory_nothing_is_written(directory: str | None, tmp_path: Path) -> None:
    def refuse(path: str, text: str, append: bool) -> None:
        raise AssertionError(path)

    store = store_in(directory, write_text=refuse)
    store.open("s")
    store.emit("s", {"type": "x"})


def test_a_sink_that_fails_warns_once_and_the_session_goes_on(tmp_path: Path) -> None:
    warnings: list[tuple[str, str]] = []
    (tmp_path / "file").write_text("")
    store = store_in(str(tmp_path / "file"), warn=lambda *warning: warnings.append(warning))
    store.open("s")
    store.emit("s", {"type": "x"})
    store.emit("s", {"type": "x"})
    store.inject("s", {"role": "user"})
    assert store.length("s") == 1
    assert [topic for topic, _ in warnings] == ["agent.event_log"]


def test_secrets_are_masked(tmp_path: Path) -> None:
    store = store_in(str(tmp_path))
    store.open("s")
    store.emit("s", {"type": "x", "text": "key sk-proj-4fTq9LxB72mNvR8sWz3kYp1c", "password": "hunter2"})
    [line] = (tmp_path / "event_log-s.jsonl").read_text().splitlines()
    assert "sk-proj" not in line
    assert "hunter2" not in line
    assert json.loads(line)["text"] == "key [redacted:secret]"


def test_a_full_file_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_sessions, "SIZE_LIMIT", 1000)
    written: dict[str, int] = {}

    def write(path: str, text: str, append: bool) -> None:
        written[Path(path).name] = written.get(Path(path).name, 0) + text.count("\n")

    store = store_in(str(tmp_path), write_text=write)
    store.open("s")
    big = {"type": "x", "text": "y" * 500}
    for _ in range(5):
        store.emit("s", big)
    assert written == {"event_log-s.jsonl": 2, "event_log-s-000001.jsonl": 2, "event_log-s-000002.jsonl": 1}
