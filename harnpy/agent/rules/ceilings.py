"""Which builtins a policy restricts, and what each of them needs. Spec: 07 §8.1.

They are declared ``guarded``; others never consult the policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


#: What builtins need: the name of the ceiling in messages, the side-effect level, and the capability, if any.
_NEEDS: Mapping[tuple[str, str, str | None], str] = {
    ("workspace.read_text", "read_only", "workspace.read_text"): (
        "read_file read_file_bytes read_file_result read_lines agent_session_seed_from_jsonl"
    ),
    ("workspace.list", "read_only", "workspace.list"): "list_dir walk_dir glob",
    ("workspace.exists", "read_only", "workspace.exists"): "file_exists stat",
    ("workspace write", "workspace_write", "workspace.write_text"): (
        "write_file write_file_bytes append_file copy_file move_file mkdir"
    ),
    ("workspace write", "workspace_write", "workspace.delete"): "delete_file",
    ("workspace write", "workspace_write", "workspace.apply_edit"): "artifact_apply_intent",
    ("process.exec", "process_exec", "process.exec"): "exec exec_at shell shell_at mcp_connect",
    ("network", "network", None): (
        "http_get http_post http_put http_patch http_delete http_request http_download http_session "
        "http_session_request http_stream_open sse_connect websocket_connect websocket_server "
        "llm_healthcheck"
    ),
    ("LLM/network", "network", "llm.call"): (
        "llm_call llm_call_safe llm_call_structured llm_call_structured_safe "
        "llm_call_structured_result llm_completion llm_stream agent_loop sub_agent_run spawn_agent "
        "daemon_spawn self_review"
    ),
    ("connector.call", "network", "connector.call"): "connector_call",
    ("vision.ocr", "read_only", "vision.ocr"): "vision_ocr",
    ("agent_state.access", "read_only", "agent_state.access"): (
        "__agent_state_resume __agent_state_read __agent_state_list"
    ),
    ("agent_state.access", "workspace_write", "agent_state.access"): (
        "__agent_state_init __agent_state_write __agent_state_delete __agent_state_handoff"
    ),
    ("host.tool_call", "none", "host.tool_call"): "host_tool_call",
}

#: For each restricted builtin the ceiling's name, the level and the capability.
CEILINGS: Mapping[str, tuple[str, str, str | None]] = {
    name: needs for needs, names in _NEEDS.items() for name in names.split()
}
