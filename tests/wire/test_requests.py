"""What a conversation becomes on the wire, by `llm_call` and by the loop of a session. Spec: 07 §1.17, §1.18.

A case is a file of `requests/`: its ``dialect``, the ``messages`` and ``tools`` that are given, and what is
``sent``: keys of the body; or the words with which it is ``refused``. ``capabilities`` are its model's.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harnpy import Vm
from harnpy.vm.errors import VmError
from tests.llm.test_real_calls import WireHost, environment
from tests.llm.wire import Say, Wire
from tests.wire.rules import check_request

DIRECTORY = Path(__file__).parent / "requests"


class Case(NamedTuple):
    name: str
    dialect: str
    given: dict[str, Any]
    sent: dict[str, Any]
    refused: str | None
    capabilities: str


def request_cases() -> list[Case]:
    return [_read(path) for path in sorted(DIRECTORY.glob("*.json"))]


def _read(path: Path) -> Case:
    data = json.loads(path.read_text(encoding="utf-8"))
    given = {"messages": data["messages"], "tools": data.get("tools")}
    more = data.get("sent", {}), data.get("refused"), data.get("capabilities", "")
    return Case(path.stem, data["dialect"], given, *more)


CALL = """llm_call("", nil, given)"""
LOOP = """
let id = agent_session_open("s")
for message in given.messages[0:len(given.messages) - 1] { agent_session_inject(id, message) }
agent_loop(given.messages.last.content, nil, {session_id: id, tool_format: "native", tools: given.tools})
"""
WAYS = pytest.mark.parametrize("source", [CALL, LOOP], ids=["call", "loop"])


@WAYS
@pytest.mark.parametrize("case", request_cases(), ids=lambda case: case.name)
def test_a_conversation(case: Case, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = f'[[capabilities.provider.acme]]\nmodel_match = "*"\nnative_tools = true\n{case.capabilities}\n'
    (tmp_path / "harn.toml").write_text(table, encoding="utf-8")
    (tmp_path / "given.json").write_text(json.dumps(case.given), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with Wire(case.dialect, Say("ok")) as wire:
        host = WireHost(environment(wire, tmp_path))
        program = f'let given = json_parse(read_file("given.json"))\n{source}'
        if case.refused is not None:
            with pytest.raises(VmError, match=re.escape(case.refused)):
                Vm(world=host).run_source(program, directory=str(tmp_path))
            assert not wire.requests
            return
        Vm(world=host).run_source(program, directory=str(tmp_path))
        body = wire.requests[0].body
    assert {key: body.get(key) for key in case.sent} == case.sent
    check_request(case.dialect, body)
