"""A stage: one node of a workflow, working on a task. Spec: 08 §7.3, §6.1.

A stage with tools, or in the mode `agent`, runs an agent loop, any other a single call. The loop's session
holds the conversation, so a stage that runs again continues it.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.loop.make_loop import loop_of
from harnpy.agent.loop.transcript_entries import assistant_message, record_reply
from harnpy.llm.call_result import result_dict
from harnpy.llm.native_tools import native_style, tool_entries
from harnpy.llm.request_messages import request_message
from harnpy.session.loop_conversation import SessionConversation
from harnpy.session.turns.artifacts import recorded
from harnpy.session.turns.conversation import Conversation
from harnpy.session.turns.prompt_cache import Prompt
from harnpy.session.turns.request_parts import CONTRACT, DEFINITION, PERSISTENCE, SKILLS, TOOLS
from harnpy.workflow.graph.normalise import normalise_node
from harnpy.workflow.stages.briefing import brief, result_artifact
from harnpy.workflow.stages.loop_options import call_options, loop_settings, tool_format
from harnpy.workflow.stages.result_checks import verified
from harnpy.workflow.stages.visible_transcript import visible
from harnpy.workflow.stages.work import Ended

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from harnpy.agent.runtime import Runtime
    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.workflow.graph.graph_types import Node
    from harnpy.workflow.stages.stage_session import StageSession
    from harnpy.workflow.stages.work import Work


SUCCESS, FAILED = "success", "failed"
_SUCCEEDED = ("done", "completed")


def run_stage(work: Work) -> Ended:
    """Run a node of the kind `stage`, or of a kind without a module of its own."""
    stage = Stage(work.runtime, work.node, work.session, work.contracts)
    made = stage.run(work.task, work.artifacts)
    outcome, branch = (SUCCESS, SUCCESS) if made.succeeded else (made.result["status"], FAILED)
    verification = verified(work.node, made.result)
    return Ended(made.result, outcome, branch, [made.artifact], made.transcript, verification)


class StageResult(NamedTuple):
    """``result`` is the loop's or call's, with the briefing; ``transcript`` is what others may see of it."""

    result: Dict
    artifact: Artifact
    transcript: Dict

    @property
    def succeeded(self) -> bool:
        return self.result["status"] in _SUCCEEDED


@dataclass(slots=True)
class Stage:
    """``node`` holds Python callables for functions; ``contracts`` are those that the prompt shows."""

    runtime: Runtime
    node: Node
    session: StageSession
    contracts: Sequence[Dict] = ()

    def run(self, task: str, artifacts: Sequence[Artifact]) -> StageResult:
        """Work on ``task``. Raise `MisuseError` and `OptionError` for an unsuitable node, `CallError`."""
        runtime, node = self.runtime, self.node
        briefing = brief(runtime, node, self.session.id, task, artifacts, self.contracts)
        answer = self._loop(briefing.prompt) if self._is_agent() else self._call(briefing.prompt)
        result = {**answer, **briefing.as_dict()}
        transcript = visible(result["transcript"], node["output_visibility"])
        made = result_artifact(runtime, node, result, briefing)
        runtime.record(self.session.id, recorded([made], self.session.id))
        return StageResult(result, made, transcript)

    def _is_agent(self) -> bool:
        return self.node["mode"] == "agent" or bool(tool_entries(self.node["tools"]))

    def _loop(self, prompt: str) -> Dict:
        """Run a loop. Its trace covers this stage alone, whatever the program did before."""
        loop = loop_of(self.runtime, loop_settings(self.runtime, self.node, self.session.id, prompt))
        trace = self.runtime.models.trace
        before = trace.summary()
        result = loop.run()
        return {**result, "trace": trace.summary_since(before)}

    def _call(self, prompt: str) -> Dict:
        """Make one call, after the messages of the session if that was given."""
        models = self.runtime.models
        options = models.options(call_options(self.node))
        request = models.request(prompt, self.node["system"], options)
        conversation = self._conversation()
        with self._entered():
            try:
                conversation.begin(request.system, request.tool_format)
                conversation.add({"role": "user", "content": prompt})
                self._begin_step(conversation, request)
                with self.runtime.context().as_caller():
                    reply = models.ask(request)
            except BaseException as error:
                conversation.fail(error)
                raise
            self._record(conversation, reply, native_style(request.provider, request.model))
            conversation.store()
            transcript = conversation.transcript("active")
            conversation.end("completed", steps=1)
        result = result_dict(reply, request.tools)
        tools = {"mode": tool_format(self.runtime, self.node)}
        return {**result, "status": "done", "tools": tools, "transcript": transcript}

    def _begin_step(self, conversation: Conversation, request: Request) -> None:
        """Give the request the conversation, and record that it is about to be sent."""
        request.system = (request.system or "").strip() or None
        parts = {DEFINITION: None, SKILLS: None, CONTRACT: None, PERSISTENCE: None, TOOLS: request.tools}
        prompt = Prompt(request.system, request.tools, parts)
        begun = False
        while not begun:
            conversation.replaced()
            conversation.arrivals()
            request.messages = [*conversation.sent(request_message), *conversation.tail()]
            begun = conversation.step_started(request.provider, request.model, 0, prompt)

    def _conversation(self) -> Conversation:
        sessions = self.runtime.sessions
        if self.session.given:
            return SessionConversation(self.session.id, sessions)
        return Conversation(self.session.id, sessions.world)

    def _entered(self) -> AbstractContextManager[Any]:
        return self.runtime.sessions.enter(self.session.id) if self.session.given else nullcontext()

    def _record(self, conversation: Conversation, reply: Reply, style: str) -> None:
        record_reply(conversation, reply, 0)
        conversation.add(assistant_message(reply, style))


def read_stage_node(given: Any, id: str) -> Node:
    """Return the node with every key; its id is ``id`` unless it has one. Raise `MisuseError`."""
    named = given.get("id") if isinstance(given, dict) else None
    return normalise_node(given, named if isinstance(named, str) and named else id)
