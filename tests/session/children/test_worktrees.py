"""Children that work in a copy of a repository (10 §A1.15)."""

from __future__ import annotations

import asyncio
import logging
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harnpy.session import ChildError, ChildSpec, SessionRuntime, Turn, Worktree, child_runs, current_metadata
from harnpy.session.aio import AsyncSessionRuntime


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "file").write_text("committed")
    for command in (
        "init -q",
        "add file",
        "-c user.name=a -c user.email=a@b commit -q --no-gpg-sign -m first",
    ):
        subprocess.run(["git", *command.split()], cwd=repo, check=True)
    (repo / "file").write_text("changed")
    return repo


def here() -> Path:
    return Path(current_metadata()["workspace_path"])


def test_a_child_works_in_a_worktree_of_its_own(repo: Path, tmp_path: Path) -> None:
    def agent(messages: Any, turn: Turn) -> str:
        return (here() / "file").read_text()

    with SessionRuntime("memory:") as runtime:
        parent = runtime.create(id="p")
        spec = ChildSpec(agent=agent, child_id="c", metadata={"n": 1}, worktree=Worktree(str(repo)))
        assert runtime.run_child("p", spec).summary == "committed"
        (run,) = child_runs(parent)
        path = repo / ".harn/worktrees/c"
        assert run.metadata == {"n": 1, "workspace_path": str(path), "workspace_repo": str(repo)}
        assert all(event.metadata["workspace_path"] == str(path) for event in runtime.get("c").events())
        assert not path.exists()
        kept = Worktree(str(repo), path=str(tmp_path / "kept"), keep=True)
        runtime.run_child("p", ChildSpec(agent=agent, worktree=kept))
        assert (tmp_path / "kept/file").read_text() == "committed"


def test_what_is_not_committed_stays(repo: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def writer(messages: Any) -> None:
        (here() / "new").write_text("mine")
        raise ZeroDivisionError

    async def run() -> str:
        async with AsyncSessionRuntime("memory:") as face:
            await face.create(id="p")
            spec = ChildSpec(agent=writer, child_id="c", worktree=Worktree(str(repo)))
            return (await face.run_child("p", spec)).status

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(run()) == "failed"
    assert (repo / ".harn/worktrees/c/new").read_text() == "mine"
    assert "stays: fatal:" in caplog.text


def test_git_may_refuse(repo: Path, tmp_path: Path) -> None:
    with SessionRuntime("memory:") as runtime:
        parent = runtime.create(id="p")
        for where, ref in ((repo, "nowhere"), (tmp_path / "none", "HEAD")):
            spec = ChildSpec(agent=str, child_id="c", worktree=Worktree(str(where), ref))
            with pytest.raises(ChildError, match=f"^spawn child: no worktree of '{where}' at '{ref}': "):
                runtime.spawn("p", spec)
        assert child_runs(parent) == []
        assert not runtime.exists("c")
