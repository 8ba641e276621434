"""What effects and builtins need of a policy. Spec: 07 §8.1, §8.5.

The builtins listed here are declared ``guarded``; others never consult the policy, but what they have the
world do does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.world import effects

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Need(NamedTuple):
    """``ceiling`` is the name in messages, ``effect`` the one that a builtin is there for, if any."""

    ceiling: str
    level: str
    capability: str | None
    effect: str | None


_READ = Need("workspace.read_text", "read_only", "workspace.read_text", effects.READ)
_LIST = Need("workspace.list", "read_only", "workspace.list", effects.LIST)
_WRITE = Need("workspace write", "workspace_write", "workspace.write_text", effects.WRITE)
_DELETE = Need("workspace write", "workspace_write", "workspace.delete", effects.DELETE)
_PROCESS = Need("process.exec", "process_exec", "process.exec", effects.PROCESS)
_NETWORK = Need("network", "network", None, effects.NETWORK)
_MODEL = Need("LLM/network", "network", "llm.call", effects.MODEL)

#: What each effect needs; the others need nothing of a policy.
EFFECT_NEEDS: Mapping[str, Need] = {
    **{str(need.effect): need for need in (_READ, _LIST, _WRITE, _DELETE, _PROCESS, _NETWORK, _MODEL)},
    effects.ENVIRONMENT: Need("environment", "read_only", None, effects.ENVIRONMENT),
}

_BUILTINS: Mapping[Need, str] = {
    _READ: "read_file read_file_bytes read_file_result read_lines agent_session_seed_from_jsonl",
    _LIST: "list_dir walk_dir glob",
    Need("workspace.exists", "read_only", "workspace.exists", effects.LIST): "file_exists stat",
    _WRITE: "write_file write_file_bytes append_file copy_file move_file mkdir",
    _DELETE: "delete_file",
    Need("workspace write", "workspace_write", "workspace.apply_edit", effects.WRITE): (
        "artifact_apply_intent"
    ),
    _PROCESS: "exec exec_at shell shell_at mcp_connect",
    _NETWORK: (
        "http_get http_post http_put http_patch http_delete http_request http_download http_session "
        "http_session_request http_server_listen http_server_serve http_stream_open sse_connect "
        "websocket_connect websocket_send websocket_server llm_healthcheck"
    ),
    _MODEL: (
        "llm_call llm_call_safe llm_call_structured llm_call_structured_safe "
        "llm_call_structured_result llm_completion llm_stream"
    ),
    _MODEL._replace(effect=None): (
        "agent_loop sub_agent_run spawn_agent daemon_spawn daemon_resume self_review"
    ),
    Need("connector.call", "network", "connector.call", effects.NETWORK): "connector_call",
    Need("vision.ocr", "read_only", "vision.ocr", None): "vision_ocr",
    Need("agent_state.access", "read_only", "agent_state.access", effects.STATE): (
        "__agent_state_resume __agent_state_read __agent_state_list"
    ),
    Need("agent_state.access", "workspace_write", "agent_state.access", effects.STATE): (
        "__agent_state_init __agent_state_write __agent_state_delete __agent_state_handoff"
    ),
    Need("host.tool_call", "none", "host.tool_call", None): "host_tool_call",
}

#: What each restricted builtin needs.
BUILTIN_NEEDS: Mapping[str, Need] = {
    name: need for need, names in _BUILTINS.items() for name in names.split()
}


def effects_of(builtins: Iterable[str]) -> frozenset[str]:
    """Return the effects that the named builtins are there for."""
    needs = (BUILTIN_NEEDS.get(name) for name in builtins)
    return frozenset(need.effect for need in needs if need is not None and need.effect is not None)
