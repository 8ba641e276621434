"""Which builtin takes which options: one table for its calls, its help and its checks.

Spec: 07 §1.2, 09 §4.5.
"""

from __future__ import annotations

from functools import partial

from harnpy.agent import loop_options as agents
from harnpy.builtins.language import arguments as tasks
from harnpy.eventlog import waitpoints as eventlog
from harnpy.faults import OptionError
from harnpy.formats.display import display, type_name
from harnpy.llm import call_options as models
from harnpy.net import egress_policies
from harnpy.net import http_options as http
from harnpy.net import http_options as transports
from harnpy.net import server_options as servers
from harnpy.net.server_options import ServerFault
from harnpy.workflow import workflow_options as workflows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from harnpy.formats.options import OptionTable
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

_NETWORK: Mapping[str, OptionTable] = {
    "http_server": servers.SERVER,
    "http_server_route": servers.ROUTE,
    "http_server_request": servers.REQUEST,
    "http_server_test": servers.REQUEST,
    "http_server_listen": servers.LISTEN,
    "http_server_serve": servers.LISTEN,
    "sse_event": servers.EVENT,
    "sse_server_response": servers.STREAM,
    "sse_server_send": servers.EVENT,
    "http_server_tls_edge": servers.EDGE,
    "http_response_text": servers.RESPONSE,
    "http_response_json": servers.RESPONSE,
    "http_response_bytes": servers.RESPONSE,
    "egress_policy": egress_policies.TABLE,
    **http.HTTP_TABLES,
    **transports.TRANSPORT_TABLES,
}

_AGENTS: Mapping[str, OptionTable] = {
    **tasks.TABLES,
    "agent_loop": agents.LOOP,
    "sub_agent_run": agents.SUB_AGENT,
    "spawn_agent": agents.worker_table(workflows.RUN),
    "daemon_spawn": agents.DAEMON,
    "tool_synthesize": agents.SYNTHESIS,
    "register_tool_hook": agents.HOOK,
    "ask_user": agents.QUESTION,
    "request_approval": agents.APPROVAL,
    "waitpoint_create": eventlog.CREATE_OPTIONS,
    "waitpoint_complete": eventlog.COMPLETE_OPTIONS,
    "waitpoint_cancel": eventlog.CANCEL_OPTIONS,
    "waitpoint_wait": eventlog.WAIT_OPTIONS,
    "llm_call": models.CALL,
    "llm_call_safe": models.CALL,
    "llm_call_structured": models.STRUCTURED,
    "llm_call_structured_safe": models.STRUCTURED,
    "llm_call_structured_result": models.STRUCTURED_RESULT,
    "llm_completion": models.CALL,
    "llm_stream": models.CALL,
    "llm_mock": models.MOCK,
    "llm_rate_limit": models.RATE_LIMIT,
    "with_rate_limit": models.WITH_RATE_LIMIT,
    "llm_pick_model": models.PICK,
    "llm_healthcheck": models.HEALTH,
    "workflow_execute": workflows.RUN,
    "assemble_context": workflows.ASSEMBLE,
    "workflow.update": workflows.UPDATE,
    "eval_pack_run": workflows.EVALUATE,
    "transcript_fork": workflows.FORK,
    "transcript_summarize": workflows.SUMMARIZE,
    "transcript_compact": workflows.COMPACT,
    "transcript_auto_compact": workflows.AUTO_COMPACT,
}

TABLES: Mapping[str, OptionTable] = {**_AGENTS, **_NETWORK}


def others_than(builtin: str) -> Mapping[str, OptionTable]:
    """Return the tables of its kin: an unknown option may be one of theirs."""
    group = _NETWORK if builtin in _NETWORK else _AGENTS
    return {name: table for name, table in group.items() if name != builtin}


def check_options(vm: Vm, builtin: str, given: Value) -> None:
    """Raise `OptionError` for an option that ``builtin`` doesn't take. What is no dict passes."""
    if type(given) is dict:
        TABLES[builtin].check(builtin, given, partial(known_providers, vm), partial(others_than, builtin))


def checked_system(vm: Vm, builtin: str, system: Value, given: Value) -> str | None:
    """Check the options of a model call, and that they don't stand where the system prompt belongs.

    Return that prompt as a text. Spec: 07 §1.1.
    """
    if type(system) is dict:
        raise OptionError(f"{builtin}: `system` must be a string or nil, got dict (options come after it)")
    if given is not None and type(given) is not dict:
        raise OptionError(f"{builtin}: `options` must be a dict or nil, got {type_name(given)}")
    check_options(vm, builtin, given)
    return None if system is None else display(system)


def known_providers(vm: Vm) -> list[str]:
    from harnpy.builtins.live_models import models_of  # the catalog's help needs no models

    found = models_of(vm)
    return [*found.config.known_providers.names(), *found.provided]


def server_options(vm: Vm, builtin: str, options: Value) -> dict[str, Any]:
    """Return the options of ``builtin``. Raises ServerFault for no dict, OptionError for an unknown one."""
    if options is None:
        return {}
    if type(options) is not dict:
        raise ServerFault(f"options must be a dict, got {type_name(options)}")
    check_options(vm, builtin, options)
    return options
