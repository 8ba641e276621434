"""Checkpoints on disk (08 §11): where they are, and that no reader ever meets half of one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.builtins.agents.stored_values import program_name
from tests.support import ROOT, Command, last_written, wait_for_rewrite

KEEP = 'checkpoint("n", (checkpoint_get("n") ?? 0) + 1)\nprintln(checkpoint_get("n"))\n'


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_next_run_finds_them_beside_the_program(harnpy: Command, tmp_path: Path) -> None:
    written(tmp_path / "deep/count.harn", KEEP)
    assert [harnpy("run", "deep/count.harn").stdout for _ in range(3)] == ["1\n", "2\n", "3\n"]
    kept = tmp_path / "deep/.harn/checkpoints/count.json"
    assert kept.read_text() == '{\n  "n": 3\n}\n'
    assert sorted(os.listdir(kept.parent)) == ["count.json", "count.json.lock"]


def test_programs_of_a_project_share_its_state_directory_and_no_checkpoints(
    harnpy: Command, tmp_path: Path
) -> None:
    written(tmp_path / "harn.toml", "")
    for name in ("a/one.harn", "two.harn"):
        written(tmp_path / name, KEEP)
        assert harnpy("run", name).stdout == "1\n"
    assert {name.removesuffix(".lock") for name in os.listdir(tmp_path / ".harn/checkpoints")} == {
        "one.json",
        "two.json",
    }
    assert not (tmp_path / "a/.harn").exists()


@pytest.mark.parametrize(("given", "where"), [("state", "state"), ("  ", ".harn"), ("/abs", "/abs")])
def test_the_environment_names_the_state_directory(
    harnpy: Command, tmp_path: Path, given: str, where: str
) -> None:
    place = tmp_path / "elsewhere" if where == "/abs" else tmp_path / where
    written(tmp_path / "p.harn", KEEP)
    harnpy("run", "p.harn", HARN_STATE_DIR=given.replace("/abs", str(place)))
    assert (place / "checkpoints/p.json").exists()


@pytest.mark.parametrize("content", ["", "{", "[1]", '"n"', '{"n": 1} more', "\udcff"])
def test_a_file_that_is_no_object_counts_as_empty_and_is_kept(
    harnpy: Command, tmp_path: Path, content: str
) -> None:
    kept = tmp_path / ".harn/checkpoints/p.json"
    kept.parent.mkdir(parents=True)
    data = content.encode("utf-8", "surrogateescape")
    kept.write_bytes(data)
    written(tmp_path / "p.harn", "println(checkpoint_list())\n" + KEEP)
    assert harnpy("run", "p.harn").stdout == "[]\n1\n"
    assert json.loads(kept.read_text()) == {"n": 1}
    assert Path(f"{kept}.unreadable").read_bytes() == data


def test_nothing_is_written_before_there_is_something_to_keep(harnpy: Command, tmp_path: Path) -> None:
    written(tmp_path / "p.harn", 'println([checkpoint_get("a"), checkpoint_delete("a"), checkpoint_clear()])')
    assert harnpy("run", "p.harn").stdout == "[nil, nil, nil]\n"
    assert not (tmp_path / ".harn").exists()


def test_clear_removes_the_file(harnpy: Command, tmp_path: Path) -> None:
    written(tmp_path / "p.harn", 'checkpoint("a", 1)\ncheckpoint_clear()\n')
    assert harnpy("run", "p.harn").returncode == 0
    assert os.listdir(tmp_path / ".harn/checkpoints") == ["p.json.lock"]


def test_what_cannot_be_written_is_not_kept(harnpy: Command, tmp_path: Path) -> None:
    tried = 'println(try { %s } catch (e) { to_string(e).split(":")[1] })\nprintln(checkpoint_list())\n'
    written(tmp_path / "p.harn", tried % 'checkpoint("a", 1)')
    (tmp_path / ".harn").write_text("")
    assert harnpy("run", "p.harn").stdout == " checkpoint mkdir error\n[]\n"
    (tmp_path / ".harn").unlink()
    (tmp_path / ".harn/checkpoints/p.json").mkdir(parents=True)
    assert harnpy("run", "p.harn").stdout == " checkpoint write error\n[]\n"
    written(tmp_path / "p.harn", tried % "checkpoint_clear()")
    assert harnpy("run", "p.harn").stdout == " checkpoint clear error\n[]\n"


def test_a_killed_writer_leaves_what_it_wrote_before(tmp_path: Path) -> None:
    """The value is long, so that most of the time is spent in the middle of writing it."""
    program = 'var n = 0\nwhile true { n = n + 1\n checkpoint("v", {n: n, text: "x".repeat(400000)}) }\n'
    written(tmp_path / "p.harn", program)
    kept = tmp_path / ".harn/checkpoints/p.json"
    for pause in (0.0, 0.003, 0.01, 0.02, 0.033):
        with subprocess.Popen(
            [sys.executable, "-m", "harnpy", "run", "p.harn"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        ) as writer:
            before = last_written(kept)
            wait_for_rewrite(kept, before)
            time.sleep(pause)
            writer.send_signal(signal.SIGKILL)
        assert len(json.loads(kept.read_text())["v"]["text"]) == 400_000


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (None, "default"),
        ("<script>", "default"),
        ("<stdin>", "default"),
        ("<repl>", "repl"),
        ("", "default"),
        ("..", "default"),
        ("a/b.c.harn", "b.c"),
        ("/x/flow", "flow"),
    ],
)
def test_checkpoints_are_named_after_the_file(file: str | None, name: str) -> None:
    assert program_name(file) == name


def test_the_repl_has_checkpoints_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Vm().repl().run('checkpoint("a", 1)')
    assert Vm().repl().run('checkpoint_get("a")') == 1
    assert "repl.json" in os.listdir(tmp_path / ".harn/checkpoints")
