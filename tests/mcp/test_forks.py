"""A program that goes on in a process that was forked off: with connections of its own. Spec: 09 §16.2."""

from __future__ import annotations

import os
import warnings

from harnpy import Vm
from tests.mcp.programs import PRELUDE
from tests.net.http.server import serving

SOURCE = """
let client = connected()
let session = http_session({{}})
fn use() {{
  let status = http_session_request(session, "GET", "{url}/ok").status
  return [mcp_call(client, "add", {{a: 20, b: 22}}), status]
}}
let before = use()
let pid = fork()
let after = use()
if pid == 0 {{ leave(before == after) }}
return [pid, after, use()]
"""


def fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns where there are threads
        return os.fork()


def test_both_processes_go_on() -> None:
    vm = Vm()
    vm.register("fork() -> int", fork)
    vm.register("leave(well: bool) -> nil", lambda well: os._exit(0 if well else 1))
    with serving() as server:
        before = server.opened
        pid, *results = vm.run_source(PRELUDE + SOURCE.format(url=server.url))
        _, status = os.waitpid(pid, 0)
        assert status == 0
        assert results == [["42", 200]] * 2
        assert server.opened == before + 2
