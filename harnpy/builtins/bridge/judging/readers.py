"""Who reads which options at run time. Each is asked with the options that it is given here and no others.

What a reader accepts leniently it accepts here too: then nothing is said.
"""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.callables import callables_within
from harnpy.net.http import option_tables as http
from harnpy.reading.lenient import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.builtins.bridge.judging.known import Dict, Reader
    from harnpy.vm.vm import Vm

_LOOPS = ("agent_loop", "sub_agent_run", "daemon_spawn")
_MODEL_CALLS = (
    "llm_call", "llm_call_safe", "llm_call_structured", "llm_call_structured_safe",
    "llm_call_structured_result", "llm_completion", "llm_stream",
)  # fmt: skip
_REQUESTS = tuple(name for name, table in http.TABLES.items() if table in (http.REQUEST, http.STREAM))
_RESPONSES = ("http_response_text", "http_response_json", "http_response_bytes")


def readers_of(vm: Vm, function: str) -> Iterator[Reader]:
    """Return those who read the options of the builtin ``function``."""
    if function in (*_MODEL_CALLS, *_LOOPS):
        yield from (partial(_with_functions, vm, reader) for reader in _of_models())
    if function in _LOOPS:
        yield from (partial(_with_functions, vm, reader) for reader in _of_loops(function))
    if function in ("sub_agent_run", "spawn_agent"):
        yield from _of_workers(function)
    if function == "workflow_execute":
        from harnpy.workflow.execution.run_options import read_options

        yield lambda given: read_options(Options(callables_within(vm, given)))
    if function in _REQUESTS:
        yield _request_reader(function)
    yield from _others(vm, function)


def _with_functions(vm: Vm, reader: Reader, given: Dict) -> None:
    reader(callables_within(vm, given))


def _of_models() -> Iterator[Reader]:
    from harnpy.llm.budget import read_budget
    from harnpy.llm.experiments import read_experiment
    from harnpy.llm.native_tools import tool_entries
    from harnpy.llm.route_policy import read_policy
    from harnpy.llm.structured.output_format import read_output
    from harnpy.llm.thinking import read_thinking
    from harnpy.llm.tool_search import read_tool_search

    yield lambda given: read_policy(given.get("route_policy"))
    yield lambda given: read_thinking(Options(given))
    yield lambda given: read_budget(Options(given))
    yield lambda given: read_output(Options(given))
    yield lambda given: read_experiment(given.get("structural_experiment"))
    yield lambda given: read_tool_search(Options(given))
    yield lambda given: tool_entries(given.get("tools"))


def _of_loops(caller: str) -> Iterator[Reader]:
    from harnpy.agent.context import Rules
    from harnpy.agent.loop.loop_compaction import read_compaction
    from harnpy.agent.loop.options import profile_of, read_loop_options
    from harnpy.agent.skills.active import read_skills
    from harnpy.agent.tools.loop_servers import read_specs

    yield lambda given: profile_of(Options(given), caller)
    yield lambda given: read_loop_options(Options(given), profile_of(Options({}), caller), caller)
    # The ceiling of a child is made of several options.
    if caller != "sub_agent_run":
        yield lambda given: Rules().for_options(Options(given), caller)
    yield lambda given: read_skills(given.get("skills"), caller)
    yield lambda given: read_specs(given.get("mcp_servers") or [], caller)
    if caller != "sub_agent_run":
        yield lambda given: read_compaction(Options(given), "", str)


def _of_workers(caller: str) -> Iterator[Reader]:
    from harnpy.agent.workers.carry import read_carry
    from harnpy.agent.workers.requested import read_execution

    if caller == "spawn_agent":
        yield lambda given: read_carry(given.get("carry"), caller)
    yield lambda given: read_execution(given.get("execution"), caller)


def _request_reader(function: str) -> Reader:
    from harnpy.net.http.request import read_request

    return lambda given: read_request(function, "GET", "http://localhost/", given, _NoDisk(), None)


class _NoDisk:
    """For a request that is not made: files are there, and empty."""

    def readable(self, path: str) -> str:
        return path

    def content(self, path: str) -> bytes:
        return b""


def _others(vm: Vm, function: str) -> Iterator[Reader]:
    yield from _of_transports(function)
    yield from _of_servers(function)
    if function == "ask_user":
        from harnpy.schemas.canonical import canonical

        yield lambda given: None if given.get("schema") is None else canonical(given["schema"])
    if function == "egress_policy":
        from harnpy.net.egress_policies import read_config
        from harnpy.world.net.rules import STDLIB

        yield lambda given: read_config(function, given, STDLIB)
    if function == "supervisor_start":
        from harnpy.builtins.language.tasks.supervisor_specs import Spec

        child = {"task": vm.builtins.bound("println")}
        yield lambda given: Spec(vm, {"children": [child], **given})
    if function == "tool_synthesize":
        from harnpy.agent.tools.synthesis import read_spec

        yield lambda given: read_spec({"description": function, **given})
    if function == "llm_mock":
        from harnpy.llm.providers.mock import MockProvider

        yield lambda given: MockProvider().add(given)


def _of_transports(function: str) -> Iterator[Reader]:
    if function == "http_mock":
        from harnpy.net.http.mocks import read_responses

        yield read_responses
    if function == "sse_connect":
        from harnpy.net.transports.reading import read_events

        yield lambda given: read_events("GET", "http://localhost/", given, _NoDisk(), None, lambda: 0.0)
    if function == "websocket_connect":
        from harnpy.net.transports.reading import read_socket

        yield lambda given: read_socket("ws://localhost/", given, _NoDisk(), None)


def _of_servers(function: str) -> Iterator[Reader]:
    if function in _RESPONSES:
        from harnpy.net.server.responses import TEXT, with_options

        yield lambda given: with_options("", given, TEXT)
    if function == "http_server":
        from harnpy.net.server.server import Server

        yield lambda given: Server("", given, NotImplemented)
    if function == "http_server_route":
        from harnpy.net.server.routes import route

        yield lambda given: route("GET", "/", str, given)
    if function == "http_server_tls_edge":
        from harnpy.net.server.tls import edge

        yield edge
    if function == "sse_server_response":
        from harnpy.net.server.event_streams import EventStream

        yield lambda given: EventStream("", given)
