"""A session made from a recorded conversation. Spec: 08 §3.4."""

from __future__ import annotations

from harnpy.builtins.agents.sessions import builtin
from harnpy.builtins.bridge.live_sessions import sessions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.vm import Vm


@builtin("agent_session_seed_from_jsonl(jsonl_path: string, opts?: dict) -> dict", guarded=True)
def agent_session_seed_from_jsonl(vm: Vm, jsonl_path: str, opts: Dict | None) -> Dict:
    """Create a session from the messages in an `llm_transcript.jsonl`: `{ok, session_id?, …, error?}`.

    `opts`: `truncate_to_last`, `drop_tool_calls`, `rename_session`, `validate`, `provider`, `model`.
    A problem with the file is returned as `error`, not thrown. Spec: 08 §3.4.

    Example:
        agent_session_seed_from_jsonl("no such file.jsonl").ok  // false
    """
    return sessions_of(vm).seed_from_jsonl(jsonl_path, opts)
