"""However a Python program with a real model ends, it writes nothing to stderr, with warnings as errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counts import COUNT
from tests.llm.test_real_calls import environment
from tests.llm.wire import ANTHROPIC, OPENAI, Say, Wire

_START = """
import asyncio, os, signal, sys, threading
from harnpy import AgentDef, LoopFactory, runtime
from harnpy.session.aio import AsyncSessionRuntime

desk = runtime("memory:", agents=LoopFactory())
chat = desk.create(AgentDef("a", model="m")).id
desk.send(chat, "Go.")
"""
_ASYNC = """
async def main():
    desk = AsyncSessionRuntime("memory:", agents=LoopFactory())
    chat = (await desk.create(AgentDef("a", model="m"))).id
    await desk.send(chat, "Go.")
{}
asyncio.run(main())
"""
ENDS = {
    "normal": "list(desk.stream(chat, 'Again.'))\nwith desk: desk.send(chat, 'Again.')",
    "unclosed": "list(desk.stream(chat, 'Again.'))",
    "closed": "list(desk.stream(chat, 'Again.'))\ndesk.close()",
    "left in a block": "with desk:\n  for piece in desk.stream(chat, 'Again.'): break",
    "left": "for piece in desk.stream(chat, 'Again.'): break",
    "abandoned": "pieces = desk.stream(chat, 'Again.')\nnext(pieces)",
    "raised": "try:\n  for piece in desk.stream(chat, 'Again.'): raise ValueError\nexcept ValueError: pass",
    "exit": "for piece in desk.stream(chat, 'Again.'): sys.exit()",
    "interrupted": (
        "try:\n  for piece in desk.stream(chat, 'Again.'): os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt: pass"
    ),
    "thread": "threading.Thread(target=desk.send, args=(chat, 'Again.'), daemon=True).start()",
    "async": _ASYNC.format("    async for piece in desk.stream(chat, 'Again.'): pass"),
    "async left": _ASYNC.format("    async for piece in desk.stream(chat, 'Again.'): break"),
    "async abandoned": _ASYNC.format(
        "    pieces = aiter(desk.stream(chat, 'Again.'))\n    await anext(pieces)"
    ),
    "async task": _ASYNC.format("    task = asyncio.create_task(desk.send(chat, 'Again.'))"),
}


@pytest.mark.long
@pytest.mark.parametrize("protocol", [OPENAI, ANTHROPIC])
def test_nothing_is_left(tmp_path: Path, protocol: str) -> None:
    names = list(ENDS) if protocol == OPENAI else ["normal", "abandoned", "async left"]
    with Wire(protocol, Say("Hello there, all of you.", pause=0.002)) as wire:
        env = {**os.environ, **environment(wire, tmp_path)}
        for name in names[COUNT.seed % COUNT.shutdown_share :: COUNT.shutdown_share] * COUNT.shutdowns:
            done = subprocess.run(
                [sys.executable, "-W", "error", "-c", _START + ENDS[name]],
                env=env,
                capture_output=True,
                encoding="utf-8",
                check=False,
            )
            assert (name, done.stderr, done.returncode) == (name, "", 0)
