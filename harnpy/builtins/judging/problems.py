"""All that a builtin would refuse in its arguments: options, their values, providers, tiers.

Spec: 03 §16, 07 §1.2, §1.14.
"""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.callables import callables_within
from harnpy.builtins.judging.known_arguments import known, refusals, without_rest
from harnpy.builtins.option_places import places_of
from harnpy.builtins.options import TABLES, known_providers, others_than
from harnpy.check.agents import REST
from harnpy.check.knowledge import OPTION_TYPE, UNKNOWN_OPTION, UNKNOWN_PROVIDER, UNKNOWN_TIER, Problem
from harnpy.formats.dicts import Options
from harnpy.formats.suggestions import nearest, nearest_at_run_time
from harnpy.llm.call_options import CALL
from harnpy.net import http_options as http

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from harnpy.builtins.judging.known_arguments import Dict, Reader
    from harnpy.vm.vm import Vm

# Who reads which options at run time. Each is asked with the options that it is given here and no others.
#
# What a reader accepts leniently it accepts here too: then nothing is said.


_LOOPS = ("agent_loop", "sub_agent_run", "daemon_spawn")
_MODEL_CALLS = (
    "llm_call", "llm_call_safe", "llm_call_structured", "llm_call_structured_safe",
    "llm_call_structured_result", "llm_completion", "llm_stream",
)  # fmt: skip
_REQUESTS = tuple(name for name, table in http.HTTP_TABLES.items() if table in (http.REQUEST, http.STREAM))
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
    from harnpy.llm.call_options import read_budget, read_output, read_thinking
    from harnpy.llm.experiments import read_experiment
    from harnpy.llm.native_tools import read_tool_search, tool_entries
    from harnpy.llm.routing import read_policy

    yield lambda given: read_policy(given.get("route_policy"))
    yield lambda given: read_thinking(Options(given))
    yield lambda given: read_budget(Options(given))
    yield lambda given: read_output(Options(given))
    yield lambda given: read_experiment(given.get("structural_experiment"))
    yield lambda given: read_tool_search(Options(given))
    yield lambda given: tool_entries(given.get("tools"))


def _of_loops(caller: str) -> Iterator[Reader]:
    from harnpy.agent.active_skills import read_skills
    from harnpy.agent.context import Rules
    from harnpy.agent.loop.loop_settings import profile_of, read_compaction, read_loop_options
    from harnpy.agent.loop.mcp_servers import read_specs

    yield lambda given: profile_of(Options(given), caller)
    yield lambda given: read_loop_options(Options(given), profile_of(Options({}), caller), caller)
    # The ceiling of a child is made of several options.
    if caller != "sub_agent_run":
        yield lambda given: Rules().for_options(Options(given), caller)
    yield lambda given: read_skills(given.get("skills"), caller)
    yield lambda given: read_specs(given.get("mcp_servers") or [], caller)
    if caller != "sub_agent_run":
        yield lambda given: read_compaction(Options(given), None, str)


def _of_workers(caller: str) -> Iterator[Reader]:
    from harnpy.agent.worker import read_carry, read_execution

    if caller == "spawn_agent":
        yield lambda given: read_carry(given.get("carry"), caller)
    yield lambda given: read_execution(given.get("execution"), caller)


def _request_reader(function: str) -> Reader:
    from harnpy.net.http_request import read_request

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
        from harnpy.formats.schemas import canonical

        yield lambda given: None if given.get("schema") is None else canonical(given["schema"])
    if function == "egress_policy":
        from harnpy.net.egress_policies import read_config
        from harnpy.world.egress_rules import STDLIB

        yield lambda given: read_config(function, given, STDLIB)
    if function == "supervisor_start":
        from harnpy.builtins.language.supervisors import Spec

        child = {"task": vm.builtins.bound("println")}
        yield lambda given: Spec(vm, {"children": [child], **given})
    if function == "tool_synthesize":
        from harnpy.agent.tool_registry import read_spec

        yield lambda given: read_spec({"description": function, **given})
    if function == "llm_mock":
        from harnpy.llm.providers.mock import MockProvider

        yield lambda given: MockProvider().add(given)


def _of_transports(function: str) -> Iterator[Reader]:
    if function == "http_mock":
        from harnpy.net.http_replies import read_responses

        yield read_responses
    if function == "sse_connect":
        from harnpy.net.transports import read_events

        yield lambda given: read_events("GET", "http://localhost/", given, _NoDisk(), None, lambda: 0.0)
    if function == "websocket_connect":
        from harnpy.net.transports import read_socket

        yield lambda given: read_socket("ws://localhost/", given, _NoDisk(), None)


def _of_servers(function: str) -> Iterator[Reader]:
    if function in _RESPONSES:
        from harnpy.net.server_messages import TEXT, response_with_options

        yield lambda given: response_with_options("", given, TEXT)
    if function == "http_server":
        from harnpy.net.server import Server

        yield lambda given: Server("", given, NotImplemented)
    if function == "http_server_route":
        from harnpy.net.server import route

        yield lambda given: route("GET", "/", str, given)
    if function == "http_server_tls_edge":
        from harnpy.net.server_tls import edge

        yield edge
    if function == "sse_server_response":
        from harnpy.net.server_events import EventStream

        yield lambda given: EventStream("", given)


# Options: keys that a builtin doesn't take, and values that its reader refuses. Spec: 03 §16, 07 §1.2.


#: What these would throw they return.
RETURN_ERRORS = frozenset(["llm_call_safe", "llm_call_structured_safe", "llm_call_structured_result"])
#: They take a handle in the place of options; it has this key.
_OPENING = frozenset(["shared_cell", "shared_map", "mailbox_open"])
_HANDLE = "_type"


def option_problems(vm: Vm, function: str, arguments: Sequence[Any]) -> Iterator[Problem]:
    """Yield what the builtin refuses in its options."""
    for place in places_of(function):
        given = arguments[place] if place < len(arguments) else None
        if type(given) is not dict or (function in _OPENING and (_HANDLE in given or REST in given)):
            continue
        for problem in list(_unknown(vm, function, given)) or _refused(vm, function, given):
            problem.path = (place, *problem.path)
            yield problem


def _unknown(vm: Vm, function: str, given: dict[str, Any]) -> Iterator[Problem]:
    faults = TABLES[function].faults(
        function, without_rest(given), partial(known_providers, vm), partial(others_than, function)
    )
    for fault in faults:
        yield Problem(UNKNOWN_OPTION, fault.message, fault.path, of_key=True, near=fault.near)


def _refused(vm: Vm, function: str, given: dict[str, Any]) -> Iterator[Problem]:

    whole = known(given, TABLES[function].own)
    for reader in readers_of(vm, function):
        for path, message in refusals(function, reader, whole):
            yield Problem(OPTION_TYPE, message, path)


# Providers and tiers that nobody knows, where they are written out. Spec: 07 §1.2, §1.14.


#: What takes the options of a model call, and perhaps more.
CALLS = frozenset(name for name, table in TABLES.items() if CALL.own.keys() <= table.own.keys())

#: What the provider may be called beside its name. Spec: 07 §1.2.
_AUTO = "auto"


def model_problems(vm: Vm, function: str, arguments: Sequence[Any]) -> Iterator[Problem]:
    """Yield what a model call would say of its `provider`, `fallback_chain` and `model_tier`."""
    if function not in CALLS:
        return
    for place in places_of(function):
        given = arguments[place] if place < len(arguments) else None
        if type(given) is dict:
            yield from _providers(vm, given, place)
            yield from _tier(vm, given, place)


def _providers(vm: Vm, given: dict[str, Any], place: int) -> Iterator[Problem]:
    named = given.get("provider")
    chain = given.get("fallback_chain")
    names = [(named, "provider")] if type(named) is str and named.lower() != _AUTO else []
    from harnpy.formats.dicts import Options
    from harnpy.llm.routing import read_chain

    if type(chain) is str or (type(chain) is list and all(type(name) is str for name in chain)):
        names += [(name, "fallback_chain") for name in read_chain(Options({"fallback_chain": chain}))]
    known = known_providers(vm) if names else []
    for name, key in names:
        if name and name not in known:
            from harnpy.llm.configuration.known_providers import unknown_provider

            # A mock may stand for it, a program may register it: nothing is certain.
            yield Problem(
                UNKNOWN_PROVIDER,
                unknown_provider(name, known),
                (place, key),
                near=nearest_at_run_time(name, known),
                severity="warning",
            )


def _tier(vm: Vm, given: dict[str, Any], place: int) -> Iterator[Problem]:
    """Yield a tier that is nearly one: a model's id may stand there as well, so nothing refuses it."""
    tier = given.get("model_tier")
    if type(tier) is not str:
        return
    from harnpy.builtins.live_models import models_of
    from harnpy.llm.configuration.known_models import TIERS

    known = [*TIERS, *models_of(vm).config.known_models.alias_names()]
    near = nearest(tier, known, limit=1 if len(tier) <= 5 else 2) if tier not in known else None
    if near is not None:
        yield Problem(
            UNKNOWN_TIER,
            f"model_tier: '{tier}' is no tier and no alias, but a model's id (did you mean '{near}'?)",
            (place, "model_tier"),
            near=near,
            severity="warning",
        )


def problems(vm: Vm, function: str, arguments: Sequence[Any]) -> Iterator[Problem]:
    """Yield what the builtin ``function`` refuses; arguments as in `check.knowledge.Knowledge.problems`."""
    if function not in RETURN_ERRORS:
        yield from option_problems(vm, function, arguments)
        yield from model_problems(vm, function, arguments)
    if function.startswith("workflow_"):
        from harnpy.builtins.judging import graph_arguments

        yield from graph_arguments.problems(function, arguments)
    if function.startswith("__session_"):
        from harnpy.builtins.judging import session_arguments

        yield from session_arguments.problems(vm, function, arguments)
    from harnpy.builtins.judging import tool_arguments

    if function == "tool_define":
        yield from tool_arguments.defined(arguments)
    elif function in CALLS:
        yield from tool_arguments.listed(function, arguments)
