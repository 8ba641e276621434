"""A stage: one node of a workflow, at work on a task. Spec: 08 §7.3, §6.1.

With tools, or in the mode `agent`, it is an agent loop, else a single call. Either way its session holds
the conversation, so a stage that is entered again goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.making import make_loop
from harnpy.agent.record import assistant_message, reply_events
from harnpy.llm.errors import MisuseError
from harnpy.llm.messages import request_message
from harnpy.llm.result import result_dict
from harnpy.llm.tools import native_style, tool_entries
from harnpy.session.binding import AGENT, Binding
from harnpy.session.events import STEP_COMPLETED
from harnpy.session.transcript import message_event
from harnpy.workflow.artifacts.artifact import KIND, normalised
from harnpy.workflow.artifacts.selection import read_context_policy, render, select_adaptive
from harnpy.workflow.fields import read_fields
from harnpy.workflow.stages import prompts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.agent.runtime import Runtime
    from harnpy.llm.options import Options
    from harnpy.llm.reply import Reply

    Dict = dict[str, Any]

FORMAT_VARIABLE = "HARN_AGENT_TOOL_FORMAT"

_NODE = {
    "id": "string", "kind": "string", "mode": "string", "system": "string", "task_label": "string",
    "done_sentinel": "string", "tools": "any", "model_policy": "dict", "auto_compact": "dict",
    "output_visibility": "string", "context_policy": "dict", "capability_policy": "dict",
    "approval_policy": "dict", "input_contract": "dict", "output_contract": "dict",
    "exit_when_verified": "bool", "metadata": "dict",
}  # fmt: skip
_INPUT = {
    "input_kinds": "list of strings", "min_inputs": "int", "max_inputs": "int", "require_transcript": "bool"
}  # fmt: skip
_OUTPUT = {"output_kinds": "list of strings"}

_CALL_OPTIONS = ("provider", "model", "model_tier", "temperature", "max_tokens")
_LOOP_OPTIONS = (
    "nudge", "tool_examples", "stop_after_successful_tools", "require_successful_tools", "turn_policy",
    "native_tool_fallback", "skills", "skill_match", "permissions", "command_policy", "post_turn_callback",
    "task_ledger",
)  # fmt: skip
_MAX_ITERATIONS, _MAX_NUDGES = 16, 3

#: The loop's names for the keys of `auto_compact`, the preferred ones last.
_COMPACTION = {
    "hard_limit_tokens": "hard_limit_tokens",
    "hard_limit_strategy": "hard_limit_strategy",
    "summarize_prompt": "summarize_prompt",
    "compress_callback": "compress_callback",
    "mask_callback": "mask_callback",
    "custom_compactor": "compact_callback",
    "compact_strategy": "compact_strategy",
    "keep_last": "compact_keep_last",
    "compact_keep_last": "compact_keep_last",
    "compact_threshold": "compact_threshold",
    "token_threshold": "compact_threshold",
}


class StageResult(NamedTuple):
    """``result`` is the loop's or call's with what the stage was shown, ``transcript`` as others see it."""

    result: Dict
    artifact: Dict
    transcript: Dict

    @property
    def succeeded(self) -> bool:
        return self.result["status"] in ("done", "completed")


@dataclass(slots=True)
class Stage:
    """``node`` has callables for functions. ``contracts`` is the rendered verification, if there is one."""

    runtime: Runtime
    node: Dict
    session_id: str
    contracts: str = ""

    def run(self, task: str, artifacts: Sequence[Dict]) -> StageResult:
        """Work on ``task``. Raises `MisuseError` and `OptionError` for a node that can't, `CallError`."""
        selected, context = self._context(artifacts)
        self._check_inputs(len(selected))
        prompt = prompts.stage(task, self.node["task_label"], context, self.contracts)
        shown = {
            "prompt": prompt,
            "system_prompt": self.node["system"],
            "rendered_context": context,
            "verification_contracts": [],
            "rendered_verification_context": self.contracts,
            "selected_artifact_ids": [artifact["id"] for artifact in selected],
            "selected_artifact_titles": [artifact["title"] for artifact in selected],
        }
        result = {**(self._loop(prompt) if self._is_agent() else self._call(prompt)), **shown}
        transcript = visible(result["transcript"], self.node["output_visibility"], self.runtime)
        return StageResult(result, self._artifact(result, shown["selected_artifact_ids"]), transcript)

    # What goes in.

    def _context(self, artifacts: Sequence[Dict]) -> tuple[list[Dict], str]:
        policy = read_context_policy(self.node["context_policy"])
        if not policy["include_kinds"]:
            policy["include_kinds"] = self._input_contract()["input_kinds"]
        selected = select_adaptive(artifacts, policy)
        return selected, render(selected, policy["render"], self.runtime.sessions.effects.to_json)

    def _input_contract(self) -> Dict:
        path = f"nodes.{self.node['id']}.input_contract"
        return read_fields(self.node["input_contract"] or {}, _INPUT, path)

    def _check_inputs(self, count: int) -> None:
        contract, stage = self._input_contract(), f"workflow stage {self.node['id']}"
        least, most = contract["min_inputs"], contract["max_inputs"]
        if contract["require_transcript"] and not self.runtime.sessions.exists(self.session_id):
            raise MisuseError(
                f"{stage} requires an existing session (call agent_session_open and feed session_id through "
                "model_policy before entering this stage)"
            )
        if least is not None and count < least:
            raise MisuseError(f"{stage} requires at least {least} input artifacts")
        if most is not None and count > most:
            raise MisuseError(f"{stage} accepts at most {most} input artifacts")

    # The work.

    def _is_agent(self) -> bool:
        return self.node["mode"] == "agent" or bool(tool_entries(self.node["tools"]))

    def _loop(self, prompt: str) -> Dict:
        options = self._call_options() | self._loop_options() | self._compaction()
        return make_loop(self.runtime, prompt, self.node["system"], options).run()

    def _call_options(self) -> Dict:
        policy = self._model_policy()
        return {key: policy[key] for key in _CALL_OPTIONS if policy.get(key) is not None}

    def _loop_options(self) -> Dict:
        node, policy = self.node, self._model_policy()
        options = {key: policy[key] for key in _LOOP_OPTIONS if policy.get(key) is not None}
        for key, default in (("max_iterations", _MAX_ITERATIONS), ("max_nudges", _MAX_NUDGES)):
            options[key] = default if policy.get(key) is None else policy[key]
        return {
            **options,
            "persistent": True,
            "session_id": self.session_id,
            "tools": node["tools"],
            "tool_format": self._tool_format(),
            "done_sentinel": node["done_sentinel"],
            "exit_when_verified": node["exit_when_verified"],
            "policy": node["capability_policy"],
            "approval_policy": node["approval_policy"],
        }

    def _compaction(self) -> Dict:
        given = self.node["auto_compact"] or {}
        enabled = given.get("auto_compact") if given.get("enabled") is None else given["enabled"]
        options = {"auto_compact": bool(enabled)}
        if given.get("tool_output_max_chars") is not None:
            options["tool_output_max_chars"] = given["tool_output_max_chars"]
        if enabled:
            options |= {_COMPACTION[key]: given[key] for key in _COMPACTION if given.get(key) is not None}
        return options

    def _tool_format(self) -> str:
        """The node's, else the environment's, else the model's."""
        given = self._model_policy().get("tool_format") or self.runtime.sessions.effects.env(FORMAT_VARIABLE)
        if given:
            return str(given)
        models = self.runtime.models
        provider, model = models.router.route(self._options()).first
        return models.config.catalogue.tool_format(model, provider)

    def _call(self, prompt: str) -> Dict:
        """One call, with the session's messages before it."""
        models, sessions = self.runtime.models, self.runtime.sessions
        request = models.request(prompt, self.node["system"], self._options())
        conversation = Binding(self.session_id, sessions)
        with sessions.enter(self.session_id):
            try:
                conversation.begin(request.system, request.tool_format)
                conversation.add({"role": "user", "content": prompt})
                request.messages = conversation.converted(request_message)
                conversation.store()
                reply = models.ask(request)
            except BaseException as error:
                conversation.fail(str(error))
                raise
            self._record(conversation, reply, native_style(request.provider, request.model))
            conversation.end("completed", steps=1)
        result = result_dict(reply, request.tools)
        transcript, tools = conversation.transcript("active"), {"mode": self._tool_format()}
        return {**result, "status": "done", "tools": tools, "transcript": transcript}

    def _record(self, conversation: Binding, reply: Reply, style: str) -> None:
        for event in reply_events(reply):
            conversation.note(event)
        usage = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
        usage["total_tokens"] = reply.input_tokens + reply.output_tokens
        conversation.fact(STEP_COMPLETED, {"agent_id": AGENT, "usage": usage})
        conversation.add(assistant_message(reply, style))

    def _options(self) -> Options:
        return self.runtime.models.options(self._call_options())

    def _model_policy(self) -> Dict:
        return self.node["model_policy"] or {}

    # What comes out.

    def _artifact(self, result: Dict, selected_ids: list[str]) -> Dict:
        id = self.node["id"]
        contract = read_fields(self.node["output_contract"] or {}, _OUTPUT, f"nodes.{id}.output_contract")
        metadata: Dict = {"input_artifact_ids": selected_ids, "node_kind": self.node["kind"]}
        approval = self.runtime.ambient().rules.for_options(self._governed(), "agent_loop").approval
        if approval is not None and approval.write_path_allowlist:
            metadata["changed_paths"] = list(approval.write_path_allowlist)
        return normalised(
            {
                "kind": (contract["output_kinds"] or [KIND])[0],
                "title": f"stage {id} output",
                "text": result["text"],
                "data": result,
                "source": id,
                "stage": id,
                "freshness": "fresh",
                "relevance": 1.0,
                "lineage": selected_ids,
                "metadata": metadata,
            },
            self.runtime.sessions.effects,
        )

    def _governed(self) -> Options:
        return self.runtime.models.options({"approval_policy": self.node["approval_policy"]})


def read_stage_node(given: Any, id: str) -> Dict:
    """A node with every field that a stage reads; ``id`` unless it has one. Raises `MisuseError`."""
    path = f"nodes.{given['id']}" if isinstance(given, dict) and given.get("id") else f"nodes.{id}"
    node = read_fields(given, _NODE, path)
    return {**node, "id": node["id"] or id, "kind": node["kind"] or "stage"}


def visible(transcript: Dict, visibility: str | None, runtime: Runtime) -> Dict:
    """The transcript with only the messages and events of a visibility; all of it without one."""
    if not visibility:
        return transcript
    effects = runtime.sessions.effects

    def is_visible(message: Dict) -> bool:
        return bool(message_event(message, "", effects.show)["visibility"] == visibility)

    events = [event for event in transcript["events"] if event["visibility"] == visibility]
    return {**transcript, "messages": list(filter(is_visible, transcript["messages"])), "events": events}
