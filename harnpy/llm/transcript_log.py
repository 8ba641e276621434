"""The `llm_transcript.jsonl` sidecar: what went to models and came back, row by row. Spec: 08 §3.1–3.2.

Written when `HARN_LLM_TRANSCRIPT_DIR` names a directory; a row that can't be written is dropped. Each loop
writes its own segment, so that its rows hold its conversation and no other. Secrets are masked.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from harnpy.formats.json import compact_json
from harnpy.world.files import private_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request
    from harnpy.world.files import Files

    Message = dict[str, Any]

VARIABLE = "HARN_LLM_TRANSCRIPT_DIR"
FILE_NAME = "llm_transcript.jsonl"

_MESSAGE_KEYS = ("role", "content", "tool_calls", "tool_call_id", "name")


class Segment:
    """The rows of one loop, or of one call outside any. ``depth`` is 0 for an outermost loop."""

    def __init__(
        self,
        write: Callable[[str], None],
        now: Callable[[], float],
        session_id: str | None = None,
        loop_id: str | None = None,
        depth: int = 0,
        tool_format: str | None = None,
    ) -> None:
        self._write = write
        self._now = now
        self._common = {"span_id": None, "session_id": session_id, "loop_id": loop_id, "loop_depth": depth}
        self._tool_format = tool_format
        self._call_id: str | None = None
        self._system: str | None = None
        self._tools: str | None = None
        self._experiment: Any = None
        self.iteration: int | None = None

    def message(self, message: Message) -> None:
        """Write a message that enters the conversation; before the first turn `iteration` is None."""
        fields = {key: message.get(key) for key in _MESSAGE_KEYS}
        if message.get("tool_use_id") is not None:
            fields["tool_use_id"] = message["tool_use_id"]
        self._row("message", iteration=self.iteration, **fields)

    def request(self, request: Request, call_id: str) -> None:
        """Write a request that is about to be sent, and its system prompt and tools where they are new."""
        self._call_id, self._experiment = call_id, request.experiment_note
        system, tools = request.system or "", compact_json(request.tools or [])
        if system != self._system:
            self._system = system
            self._row("system_prompt", hash=_hash(system), content=system)
        if tools != self._tools and (request.tools or self._tools is not None):
            self._row("tool_schemas", hash=_hash(tools), schemas=request.tools or [])
        self._tools = tools
        route = request.route
        decision = None if route is None else route.decision()
        if decision is not None:
            self._row("routing_decision", iteration=self.iteration, call_id=call_id, **decision)
        self._row(
            "provider_call_request",
            iteration=self.iteration,
            call_id=call_id,
            model=request.model,
            provider=request.provider,
            max_tokens=request.max_tokens,
            temperature=request.sampling.get("temperature"),
            thinking=request.thinking,
            tool_choice=request.tool_choice,
            tool_format=self._tool_format,
            native_tool_count=len(request.tools or ()),
            message_count=len(request.messages),
            structural_experiment=self._experiment,
            route_policy=None if route is None else route.policy,
            fallback_chain=[] if route is None else route.fallback_names(),
            routing_decision=decision,
        )

    def response(self, reply: Reply, ms: int) -> None:
        self._row(
            "provider_call_response",
            iteration=self.iteration,
            call_id=self._call_id,
            provider=reply.provider,
            model=reply.model,
            text=reply.text,
            tool_calls=reply.tool_calls,
            cost_usd=reply.cost,
            cache_hit=reply.cache_read_tokens > 0,
            thinking=reply.thinking,
            thinking_summary=reply.thinking_summary,
            response_ms=ms,
            structural_experiment=self._experiment,
            **reply.usage(),
        )

    def interpreted(self, prose: str, tool_calls: list[Any], errors: list[str]) -> None:
        """Write how the loop read the last response."""
        self._row(
            "interpreted_response",
            iteration=self.iteration,
            call_id=self._call_id,
            tool_format=self._tool_format,
            prose=prose,
            tool_calls=tool_calls,
            tool_parse_errors=errors,
        )

    def _row(self, type: str, **fields: Any) -> None:
        from harnpy.formats.secrets.masking import mask_value  # takes its time to load

        row = {"type": type, "timestamp": f"{self._now():.3f}", **self._common, **mask_value(fields)}
        self._write(compact_json(row) + "\n")


def segment_writer(directory: str, files: Files) -> Callable[[str], None]:
    """A function that adds a line to the sidecar in ``directory``."""
    path, files = os.path.join(directory, FILE_NAME), private_files(files)

    def write(line: str) -> None:
        try:
            files.write_text(path, line, append=True)
        except OSError:
            return  # the run matters more than its record

    return write


def _hash(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
