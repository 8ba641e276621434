"""The capabilities that are there from the beginning (10 §C7.1)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harnpy.session import SessionRuntime
from tests.worlds import world_with

from .agents import HELPER, call, runtime_with, texts


def run(directory: Path, capability: str, *calls: dict[str, Any]) -> SessionRuntime:
    """Run a turn with these calls in a directory."""
    world = world_with(cwd=lambda: str(directory))
    agent = replace(HELPER, capabilities=(capability,))
    runtime = runtime_with(*calls, {"text": "done"}, agent=agent, tools=(), host=world)
    assert runtime.send("s", "go").text == "done"
    return runtime


def shown(runtime: SessionRuntime) -> list[str]:
    """What the tools have shown, in order."""
    return [message["content"] for message in runtime.get("s").messages() if message["role"] == "tool"]


def test_bash(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    runtime = run(
        tmp_path,
        "use_bash",
        call("bash", command="cat a.txt; pwd"),
        call("bash", command="echo no >&2; exit 3"),
        call("bash", command="sleep 60", timeout=0),
        call("bash"),
    )
    missing = "ERROR: Tool 'bash' is missing required parameter(s): command."
    said = shown(runtime)
    assert said[:3] == [f"hello\n{tmp_path}\n", "no\n\n[exit code 3]", "Error: stopped after 0 s\n"]
    assert said[3].startswith(missing)


def test_files(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "secret").write_text("secret")
    (here / "link").symlink_to(tmp_path)
    runtime = run(
        here,
        "use_files",
        call("write_file", path="notes/a.txt", content="one\ntwo\n"),
        call("read_file", path="notes/a.txt", offset=2),
        call("list_directory"),
        call("list_directory", path="notes"),
        call("write_file", path="a.txt/b.txt", content=""),
    )
    assert (here / "notes/a.txt").read_text() == "one\ntwo\n"
    assert shown(runtime)[:4] == ["wrote 8 characters to notes/a.txt", "2\ttwo", "link/\nnotes/", "a.txt"]


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "link/secret", "a\0b"])
@pytest.mark.parametrize("name", ["read_file", "list_directory", "write_file"])
def test_files_outside_the_working_directory(name: str, path: str, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "secret").write_text("secret")
    (here / "link").symlink_to(tmp_path)
    runtime = run(here, "use_files", call(name, path=path, content="gone"))
    assert '"error": "permission_denied"' in shown(runtime)[0]
    assert "is not below the working directory" in shown(runtime)[0]
    assert (tmp_path / "secret").read_text() == "secret"


def test_tasks(tmp_path: Path) -> None:
    doing = [
        {"content": "Write", "status": "in_progress", "activeForm": "Writing"},
        {"content": "Send", "status": "pending"},
    ]
    twice = [{"content": name, "status": "in_progress"} for name in ("a", "b")]
    runtime = run(tmp_path, "use_tasks", call("todo_write", tasks=doing), call("todo_write", tasks=twice))
    assert shown(runtime) == [
        "1. ◐ Writing\n2. ○ Send\nTasks: 0/2 completed, 1 in progress, 1 pending",
        "Error: Only 1 task can be in_progress",
    ]
    assert [task.content for task in runtime.get("s").tasks] == ["Write", "Send"]
    assert texts(runtime)[-1] == "done"
