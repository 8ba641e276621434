"""Programs that use MCP servers, run in this process."""

from __future__ import annotations

import sys
from pathlib import Path

from harnpy import Vm
from tests.worlds import OwnWorld

SERVERS = Path(__file__).parent / "servers"
RAW = f"""["{sys.executable}", "{SERVERS / "raw.py"}"]"""

#: What programs may begin with: `CONNECTED`, `called(tool, arguments)`, `answered(text)`, `loop(options)`.
PRELUDE = f"""
let RAW = {{name: "raw", command: {RAW}}}
fn connected(words = []) {{ return mcp_connect(RAW.command[0], [RAW.command[1], ...words]) }}
fn calls(names) {{ llm_mock({{tool_calls: names.map({{ n -> {{id: "c", name: n[0], arguments: n[1]}} }})}}) }}
fn loop(options) {{
  llm_mock({{text: "end"}})
  let given = {{provider: "mock", tool_format: "native", mcp_servers: [RAW]}} + options
  let result = agent_loop("go", nil, given)
  for m in result.transcript.messages.filter({{ m -> m.role == "tool" }}) {{ println(m.content) }}
  return result
}}
fn caught(act) {{ return try {{ act() }} catch (e) {{ "${{e}}" }} }}
"""


def output(source: str, vm: Vm | None = None) -> list[str]:
    """The lines that a program prints; ``vm`` prints somewhere else."""
    written: list[str] = []
    machine = vm or Vm(OwnWorld(written.append, written.append))
    machine.run_source(PRELUDE + source, file="test.harn")
    return "".join(written).splitlines()
