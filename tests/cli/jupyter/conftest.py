"""The kernel: installed, and running behind a client of Jupyter's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from harnpy.cli.main import main
from tests.support import PATIENCE, ROOT


class Notebook:
    """A running kernel, and a client of it. ``prompts`` are the questions that it has asked."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager = manager
        self.client = client
        self.prompts: list[str] = []

    async def run(
        self, code: str, *answers: str | None, interrupt_at: str | None = None
    ) -> list[dict[str, Any]]:
        """Run a cell and return what it shows, in order.

        ``answers`` are what the person writes when asked; None interrupts the question. The cell is
        interrupted when it has printed ``interrupt_at``.
        """
        request = self.client.execute(code, allow_stdin=bool(answers))
        for answer in answers:
            asked = await self.client.get_stdin_msg(timeout=PATIENCE)
            self.prompts.append(asked["content"]["prompt"])
            if answer is None:
                await self.manager.interrupt_kernel()
            else:
                self.client.input(answer)
        shown = []
        while True:
            message = await self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind in ("stream", "execute_result", "error"):
                shown.append({"kind": kind, **content})
            if kind == "stream" and interrupt_at is not None and interrupt_at in content["text"]:
                await self.manager.interrupt_kernel()
        await self.reply(request)
        return shown

    async def reply(self, request: str) -> dict[str, Any]:
        """Return the reply to a request."""
        while True:
            message = await self.client.get_shell_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") == request:
                return dict(message["content"])


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Notebook]:
    """Start a kernel for a notebook in a folder."""
    from jupyter_client.manager import AsyncKernelManager

    manager = AsyncKernelManager(kernel_name="harn")
    await manager.start_kernel(cwd=str(folder))
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=PATIENCE)
        yield Notebook(manager, client)
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the kernel where Jupyter looks; return that folder."""
    pytest.importorskip("ipykernel", reason="the extra `jupyter` is not installed")
    place = tmp_path / "jupyter" / "share" / "jupyter"
    with redirect_stdout(StringIO()) as said:
        assert main(["jupyter", "install", "--prefix", str(tmp_path / "jupyter")]) == 0
    assert said.getvalue() == f"installed the kernel `harn` in {place / 'kernels' / 'harn'}\n"
    monkeypatch.setenv("JUPYTER_PATH", str(place))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("HOME", str(tmp_path))
    return place
