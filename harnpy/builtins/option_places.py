"""Which arguments hold options, by the builtin's name. Asked of every call of a program: it loads nothing.

`option_tables` says what those options may be. Spec: 07 §1.2, 03 §16.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

#: Which argument holds the options, counted from 0.
_PLACES: Mapping[int, str] = {
    0: "shared_cell shared_map mailbox_open supervisor_start spawn_agent daemon_spawn tool_synthesize "
    "llm_healthcheck register_tool_hook waitpoint_create llm_mock assemble_context http_server sse_event "
    "sse_server_response http_server_tls_edge egress_policy http_session http_mock_calls",
    1: "shared_scope_id sub_agent_run ask_user request_approval waitpoint_cancel waitpoint_wait "
    "llm_rate_limit llm_pick_model llm_healthcheck transcript_fork transcript_summarize transcript_compact "
    "transcript_auto_compact http_server_request http_server_test http_server_listen http_server_serve "
    "sse_server_send http_response_text http_response_json http_response_bytes http_get http_delete "
    "http_stream_open websocket_connect eval_pack_run",
    2: "agent_loop waitpoint_complete llm_call llm_call_safe llm_call_structured llm_call_structured_safe "
    "llm_call_structured_result llm_stream with_rate_limit http_post http_put http_patch http_request "
    "http_download http_mock sse_connect websocket_send",
    3: "llm_completion workflow_execute workflow.update http_session_request",
    4: "http_server_route",
}
_BY_BUILTIN: dict[str, list[int]] = {}
for _place, _names in _PLACES.items():
    for _name in _names.split():
        _BY_BUILTIN.setdefault(_name, []).append(_place)


def places_of(builtin: str) -> Sequence[int]:
    """Return which arguments of a builtin may hold its options, counted from 0; none without a table."""
    return _BY_BUILTIN.get(builtin, ())


def may_take_keys(builtin: str) -> bool:
    """Return whether a builtin may take a dict of known keys: options, a graph, a tool."""
    is_about_more = builtin.startswith(("workflow_", "__session_"))
    return is_about_more or builtin == "tool_define" or builtin in _BY_BUILTIN


def may_be_judged(builtin: str, arguments: Sequence[Any]) -> bool:
    """Return whether there is something to judge in the arguments of a builtin: options, a graph, a tool."""
    if builtin == "tool_define":
        return True
    if builtin.startswith(("workflow_", "__session_")):
        return any(type(argument) is dict for argument in arguments)
    given = (arguments[place] for place in places_of(builtin) if place < len(arguments))
    return any(type(argument) is dict for argument in given)
