"""A world for workflows whose files are a dict."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from harnpy.agent.runtime import Runtime
from harnpy.agent.worker import DELEGATED_STAGE
from harnpy.agent.workers import Workers
from harnpy.agent.workplace import Worktrees
from harnpy.session import SessionStore
from harnpy.workflow.execution.execute import execute
from harnpy.workflow.worker_jobs import StageJob
from tests.worlds import models_with, world_with

Dict = dict[str, Any]


class AtOnce:
    """Where runs that go on beside their starter have ended when he hears of them."""

    ended = True

    def start(self, body: Any, context: Any) -> AtOnce:
        body()
        return self

    def bell(self) -> AtOnce:
        return self

    def ring(self) -> None: ...

    def collect(self) -> None: ...

    def abort(self) -> None: ...

    def wait(self, outside: Any = None, seconds: float | None = None) -> None:
        raise AssertionError("nothing is under way")


class Bench:
    """``files`` are what was written, by path."""

    def __init__(self, cwd: str = "/", **env: str) -> None:
        self.files: dict[str, str] = {}
        world = world_with(
            cwd=lambda: cwd,
            get=env.get,
            read_text=self.files.__getitem__,
            write_text=lambda path, text, **how: self.files.__setitem__(path, text),
            write_bytes=self._add,
            status=self._status,
            make_directory=lambda path: None,
            replace_text=lambda path, text, *how, **named: self.files.__setitem__(path, text),
        )
        self.models = models_with({"HARN_LLM_PROVIDER": "mock"})
        self.runtime = Runtime(self.models, SessionStore(world=world))
        jobs = {DELEGATED_STAGE: lambda worker: StageJob(self.runtime, worker)}
        runtime = self.runtime
        trees = Worktrees(runtime.sessions.world, runtime.workplace.run)
        workers = Workers(
            runtime.sessions, runtime.hooks, runtime.context, trees, AtOnce(), jobs, runtime.record_child
        )
        self.runtime.workers = lambda: workers

    def _add(self, path: str, data: bytes, append: bool = False, durable: bool = False) -> None:
        self.files[path] = (self.files.get(path, "") if append else "") + data.decode()

    def _status(self, path: str) -> Any:
        if path not in self.files:
            raise FileNotFoundError(path)
        return SimpleNamespace(st_ino=1, st_size=len(self.files[path].encode()))

    def mock(self, *replies: Dict) -> None:
        """What the model answers, in order."""
        for reply in replies:
            self.models.mock.add(reply)

    def execute(self, graph: Dict, **options: Any) -> Dict:
        return execute(self.runtime, "task", graph, [], self.models.options(options))
