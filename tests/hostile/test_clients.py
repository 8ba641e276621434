"""Clients of a served program get no further than it lets them. Spec: 09 §11.4."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from harnpy import Vm, VmError
from harnpy.builtins import catalog
from harnpy.builtins.options import TABLES
from harnpy.serve.functions import CLIENT_VERBS, Function, session_verbs
from harnpy.serve.mcp_tools import CallFailed, Tool
from tests.serve.mcp.serving import converse, text_of
from tests.worlds import OwnWorld

PREFIX = "agent_session_"
#: What other programs of this kind let their clients name.
OTHERS = "store path file dir url command env callback persist export import snapshot worktree artifacts"
#: Verbs that are the program's own: they name paths of this machine, or the loop that is running.
NOT_OFFERED = {
    f"{PREFIX}{verb}"
    for verb in ("add_root", "current_id", "remove_root", "seed_from_jsonl", "set_workspace_anchor",
                 "set_workspace_policy")
}  # fmt: skip

# A client opens any store.


def taken(vm: Vm, verb: Function) -> set[str]:
    """Return the options that a verb takes from a program, as its own message lists them."""
    if "opts" not in verb.parameters:
        return set()
    given = {"id": "s", "client_id": "c", "content": "x", "request": {}, "scratchpad": {}, "opts": {"?": 1}}
    with pytest.raises(VmError) as refused:
        vm.call(verb.call, *verb.positional(given))
    listed = re.search(r"expected one of: ([^)]+)", str(refused.value))
    assert listed, refused.value
    return set(listed[1].split(", "))


def refusal(tool: Tool, arguments: dict[str, Any]) -> str:
    """Return what a client reads of a call that comes to nothing."""

    async def called(function: Any, arguments: Sequence[Any]) -> Any:
        raise AssertionError(f"called with {arguments}")

    with pytest.raises(CallFailed) as failed:
        asyncio.run(tool.run(arguments, called))
    return str(failed.value)


def test_every_option_that_is_not_declared_safe_is_refused_by_its_name() -> None:
    vm = Vm(OwnWorld())
    vm.run_source('agent_session_attach(agent_session_open("s"), "c", {mode: "controller"})')
    offered = session_verbs(vm)
    own = {verb.name: taken(vm, verb) for verb in offered.values()}
    elsewhere = {option.name for table in TABLES.values() for option in table.own.values()}
    options = set().union(elsewhere, OTHERS.split(), *own.values())
    for name, verb in offered.items():
        tool, declared = Tool(verb), set(CLIENT_VERBS[name.removeprefix(PREFIX)].split())
        assert declared <= own[name]
        arguments: dict[str, Any] = dict.fromkeys(options - verb.parameters.keys(), 1)
        refused = re.findall(r"at root: unexpected key '([^']+)'", refusal(tool, arguments))
        assert refused == sorted(arguments)
        if "opts" in verb.parameters:
            refused = re.findall(
                r"at opts: unexpected key '([^']+)'", refusal(tool, {"opts": dict.fromkeys(options)})
            )
            assert refused == sorted(options - declared)


def test_a_verb_that_is_not_declared_is_not_offered() -> None:
    verbs = {name for name in catalog.names() if name.startswith(PREFIX)}
    assert verbs - session_verbs(Vm(OwnWorld())).keys() == NOT_OFFERED


def test_a_client_opens_no_store(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        before = {path.name for path in tmp_path.iterdir()}
        for options in (
            {"store": f"sqlite:{tmp_path}/other.db"},
            {"store": "postgresql://ada:secret@127.0.0.1:1/db"},
            {"store": True},
            {"workspace_anchor": "."},
        ):
            answer = text_of(await client.call_tool("agent_session_open", {"id": "mine", "opts": options}))
            key = next(iter(options))
            assert answer == f"ERROR agent_session_open: wrong arguments: at opts: unexpected key '{key}'"
        for name in sorted(NOT_OFFERED):
            with pytest.raises(MCPError, match=f"Unknown tool: {name}"):
                await client.call_tool(name, {})
        assert text_of(await client.call_tool("agent_session_exists", {"id": "mine"})) == "false"
        assert {path.name for path in tmp_path.iterdir()} == before

    converse(tmp_path / "empty.harn", "", session, with_sessions=True)
