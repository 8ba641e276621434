"""What a conversation becomes on the wire, by `llm_call` and by the loop of a session. Spec: 07 §1.17, §1.18.

A case is a file of `requests/`: its ``dialect``, the ``messages`` that are given, and what is ``sent``: keys
of the body. Its ``model`` has the capabilities that the ``capabilities`` say, none by default.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harnpy import Vm
from tests.llm.test_real_calls import WireHost, environment
from tests.llm.wire import Say, Wire
from tests.wire.rules import check_request

DIRECTORY = Path(__file__).parent / "requests"


class Case(NamedTuple):
    name: str
    dialect: str
    messages: list[Any]
    sent: dict[str, Any]
    capabilities: str


def request_cases() -> list[Case]:
    return [_read(path) for path in sorted(DIRECTORY.glob("*.json"))]


def _read(path: Path) -> Case:
    data = json.loads(path.read_text(encoding="utf-8"))
    return Case(path.stem, data["dialect"], data["messages"], data["sent"], data.get("capabilities", ""))


CALL = """llm_call("", nil, {messages: messages})"""
LOOP = """
let id = agent_session_open("s")
for message in messages[0:len(messages) - 1] { agent_session_inject(id, message) }
agent_loop(messages.last.content, nil, {session_id: id, tool_format: "native"})
"""
WAYS = pytest.mark.parametrize("source", [CALL, LOOP], ids=["call", "loop"])


@WAYS
@pytest.mark.parametrize("case", request_cases(), ids=lambda case: case.name)
def test_a_conversation(case: Case, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = f'[[capabilities.provider.acme]]\nmodel_match = "*"\nnative_tools = true\n{case.capabilities}\n'
    (tmp_path / "harn.toml").write_text(table, encoding="utf-8")
    (tmp_path / "messages.json").write_text(json.dumps(case.messages), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with Wire(case.dialect, Say("ok")) as wire:
        host = WireHost(environment(wire, tmp_path))
        program = f'let messages = json_parse(read_file("messages.json"))\n{source}'
        Vm(world=host).run_source(program, directory=str(tmp_path))
        body = wire.requests[0].body
    assert {key: body.get(key) for key in case.sent} == case.sent
    check_request(case.dialect, body)
