"""A stage: one node of a workflow, working on a task, as an agent loop or a single call. Spec: 08 §7.3, §6.1.

A stage with tools, or in the mode `agent`, runs an agent loop, any other a single call. The loop's session
holds the conversation, so a stage that runs again continues it.
"""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.active_skills import read_matching, read_skills
from harnpy.agent.loop.ledger import read_ledger
from harnpy.agent.loop.loop import loop_of
from harnpy.agent.loop.loop_settings import (
    LLM_BACKOFF_MS,
    PROFILES,
    LoopOptions,
    LoopSettings,
    callable_or_none,
    checked_tools,
    compaction_of,
    inherited_skills,
    opening,
    read_loop_options,
)
from harnpy.agent.loop.transcript_entries import assistant_message, record_reply, recorded_answer
from harnpy.formats.dicts import Options, not_negative
from harnpy.formats.json import pretty_json
from harnpy.llm.call_result import result_dict
from harnpy.llm.native_tools import tool_entries
from harnpy.llm.request_messages import request_message
from harnpy.session.artifacts import recorded
from harnpy.session.compaction import CompactPolicy
from harnpy.session.conversation import Conversation, SessionConversation
from harnpy.session.events import EventDraft
from harnpy.session.prompt import CONTRACT, DEFINITION, PERSISTENCE, SKILLS, TOOLS, Prompt
from harnpy.session.transcript import message_event
from harnpy.workflow.execution.stage_work import Ended, StageSession, brief_stage, result_artifact
from harnpy.workflow.execution.verification import verified
from harnpy.workflow.graph import given_policy, normalise_node

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from harnpy.agent.loop.loop_settings import LoopCompaction
    from harnpy.agent.runtime import Runtime
    from harnpy.formats.dicts import Dict
    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request
    from harnpy.session.agent_turn import Turn
    from harnpy.workflow.artifacts import Artifact
    from harnpy.workflow.execution.stage_work import Briefing, Work
    from harnpy.workflow.graph_shapes import Node


def visible(transcript: Dict, visibility: str | None) -> Dict:
    """Return the transcript with only the messages and events of a visibility; all of it without one."""
    if not visibility:
        return transcript

    def is_visible(message: Dict) -> bool:
        return bool(message_event(message, "")["visibility"] == visibility)

    events = [event for event in transcript["events"] if event["visibility"] == visibility]
    return {**transcript, "messages": list(filter(is_visible, transcript["messages"])), "events": events}


# From a node to its loop or call, option by option. Spec: 08 §6.1, §7.3 step 4.


FORMAT_VARIABLE = "HARN_AGENT_TOOL_FORMAT"
_CALLER = "agent_loop"
_PROFILE = PROFILES["tool_using"]

_CALL = ("provider", "model", "model_tier", "temperature", "max_tokens")


def call_options(node: Node) -> Dict:
    """Return the options of a single call, from the node's model policy."""
    policy: Any = node["model_policy"]
    return {key: policy[key] for key in _CALL if policy[key] is not None}


def tool_format(runtime: Runtime, node: Node, of_model: str | None = None) -> str:
    """Return the node's tool format, else the environment's, else the model's, which may be known."""
    given = node["model_policy"]["tool_format"] or runtime.sessions.world.unguarded.environment.get(
        FORMAT_VARIABLE
    )
    if given:
        return given
    if of_model is not None:
        return of_model
    models = runtime.models
    return models.tool_format(*models.router.route(models.options(call_options(node))).first)


def loop_settings(runtime: Runtime, node: Node, session_id: str, prompt: str) -> LoopSettings:
    """Return the settings of the node's agent loop in a session.

    Raise `OptionError`, `MisuseError`, `PolicyError` and `ResizeError`.
    """
    models, policy, system = runtime.models, node["model_policy"], node["system"]
    format = tool_format(runtime, node)
    call = models.options({**call_options(node), "tools": node["tools"], "tool_format": format})
    request = models.request(
        prompt,
        system,
        call,
        once=False,
        retries=_PROFILE.llm_retries,
        backoff_ms=LLM_BACKOFF_MS,
        schema_retries=_PROFILE.schema_retries,
    )
    capability, approval = given_policy(node["capability_policy"]), given_policy(node["approval_policy"])
    permissions = policy.get("permissions")
    outer = runtime.context().rules
    rules = outer.for_policies(capability, approval, permissions, _CALLER).placed(runtime.workplace.real_root)
    surface = {
        "tools": node["tools"], "policy": capability, "approval_policy": approval, "tool_search": None
    }  # fmt: skip
    tools = checked_tools(runtime, surface, rules, system, prompt, _CALLER, format == "native")
    skills, matching = inherited_skills(runtime, policy.get("skills"), policy.get("skill_match"))
    window = runtime.models.config.known_models.context_window(request.model, request.provider)
    return LoopSettings(
        request=request,
        options=_loop_options(node, session_id, format),
        tools=tools,
        rules=rules,
        skills=read_skills(skills, _CALLER),
        matching=read_matching(Options(matching)),
        ledger=read_ledger(Options(policy.get("task_ledger"))),
        compaction=_compaction(node, window),
        opening=opening(prompt),
    )


def _loop_options(node: Node, session_id: str, format: str) -> LoopOptions:
    compact = node["auto_compact"]
    given = {
        **node["model_policy"],
        "persistent": True,
        "done_sentinel": node["done_sentinel"],
        "exit_when_verified": node["exit_when_verified"],
        "tool_format": format,
        "tool_output_max_chars": compact["tool_output_max_chars"],
        "compress_callback": compact.get("compress_callback") if compact["enabled"] else None,
        "session_id": session_id,
    }
    return read_loop_options(Options(given), _PROFILE, _CALLER)


def _compaction(node: Node, window: int | None) -> LoopCompaction | None:
    """Return how the loop compacts its conversation, None for not at all."""
    given = node["auto_compact"]
    if not given["enabled"]:
        return None
    hard_limit = not_negative(given["hard_limit_tokens"], "hard_limit_tokens", _CALLER)
    threshold = not_negative(given["token_threshold"], "compact_threshold", _CALLER)
    kept = given.get("compact_keep_last", given.get("keep_last"))
    most = not_negative(given["tool_output_max_chars"], "tool_output_max_chars", _CALLER)
    policy = CompactPolicy.of(
        keep_last=not_negative(kept, "compact_keep_last", _CALLER),
        strategy=given["compact_strategy"] or None,
        hard_limit_tokens=hard_limit,
        hard_limit_strategy=given["hard_limit_strategy"] or None,
        tool_output_max_chars=most,
        custom_compactor=given.get("custom_compactor"),
        mask_callback=callable_or_none(given.get("mask_callback")),
        compress_callback=callable_or_none(given.get("compress_callback")),
        prompt=callable_or_none(given.get("summarize_prompt")),
        pretty=pretty_json,
    )
    return compaction_of(policy.strategy, policy, threshold, window)


SUCCESS, FAILED = "success", "failed"
_SUCCEEDED = ("done", "completed")


def run_stage(work: Work) -> Ended:
    """Run a node of the kind `stage`, or of a kind without a module of its own."""
    stage = Stage(work.runtime, work.node, work.session, work.contracts, work.turn_key)
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


#: The end of a turn's key: the number of the stage in its run, and of its attempt.
_VISIT = re.compile(r":(\d+)(?::attempt:(\d+))?(?::map_\d+)?\Z")


@dataclass(slots=True)
class Stage:
    """``node`` holds Python callables for functions; ``contracts`` are those that the prompt shows. With a
    ``turn_key`` the work is a turn of a stored session, for that key only once."""

    runtime: Runtime
    node: Node
    session: StageSession
    contracts: Sequence[Dict] = ()
    turn_key: str | None = None
    #: That of the turn that the work is.
    conversation: Conversation | None = None

    def run(self, task: str, artifacts: Sequence[Artifact]) -> StageResult:
        """Work on ``task``. Raise `MisuseError` and `OptionError` for an unsuitable node, `CallError`."""
        runtime, node = self.runtime, self.node
        briefing = brief_stage(runtime, node, self.session.id, task, artifacts, self.contracts)
        if self.turn_key is not None and runtime.stages is not None:
            act, id = partial(self._in_turn, briefing), self._turn_session(self.turn_key)
            done: StageResult = runtime.stages.turn(id, self.turn_key, act)
            return done
        made = self._made(briefing)
        if runtime.keeps(self.session.id):
            runtime.record(self.session.id, recorded([made.artifact], self.session.id))
        return made

    def _made(self, briefing: Briefing) -> StageResult:
        """Ask the model, in a loop or once, and return what it came to."""
        runtime, node = self.runtime, self.node
        answer = self._loop(briefing.prompt) if self._is_agent() else self._call(briefing.prompt)
        result = {**answer, **briefing.as_dict()}
        transcript = visible(result["transcript"], node["output_visibility"])
        return StageResult(result, result_artifact(runtime, node, result, briefing), transcript)

    def _in_turn(
        self, briefing: Briefing, runtime: Runtime, turn: Turn, conversation: Conversation
    ) -> StageResult:
        """Do the work as a turn; its last event but the end is the artifact's, which keeps its id."""
        id = conversation.id
        inside = replace(
            self,
            runtime=runtime,
            session=StageSession(id, given=True),
            turn_key=None,
            conversation=conversation,
        )
        made = inside._made(briefing)
        [(type, payload)] = recorded([made.artifact], id)
        turn.write(EventDraft(type, payload))
        made.artifact["id"] = turn.events[-1].body["artifact"]["id"]
        return made

    def _turn_session(self, key: str) -> str:
        """Return the session of the turn. Single calls see no others before them, so each gets one, unless
        the program has chosen the session."""
        if self._is_agent() or self.session.given:
            return self.session.id
        found = _VISIT.search(key)
        visit = [] if found is None else [number for number in found.groups() if number is not None]
        return "_".join([self.session.id, *visit])

    def _is_agent(self) -> bool:
        return self.node["mode"] == "agent" or bool(tool_entries(self.node["tools"]))

    def _loop(self, prompt: str) -> Dict:
        """Run a loop. Its trace covers this stage alone, whatever the program did before."""
        loop = loop_of(
            self.runtime, loop_settings(self.runtime, self.node, self.session.id, prompt), self.conversation
        )
        trace = self.runtime.models.trace
        before, tokens = trace.summary(), (trace.input_tokens, trace.output_tokens)
        result = loop.run()
        used = {
            "input_tokens": trace.input_tokens - tokens[0],
            "output_tokens": trace.output_tokens - tokens[1],
        }
        return {**result, "llm": {**result["llm"], **used}, "trace": trace.summary_since(before)}

    def _call(self, prompt: str) -> Dict:
        """Make one call, after the messages of the session if that was given."""
        models = self.runtime.models
        options = models.options(call_options(self.node))
        request = models.request(prompt, self.node["system"], options)
        conversation = self.conversation or self._conversation()
        with self._entered():
            try:
                conversation.begin(request.system, request.tool_format)
                conversation.add({"role": "user", "content": prompt})
                self._begin_step(conversation, request)
                with self.runtime.context().as_caller():
                    reply = models.ask(request, answer=recorded_answer(conversation))
            except BaseException as error:
                conversation.fail(error)
                raise
            self._record(conversation, reply, request.style)
            conversation.end("completed", steps=1)
            transcript = conversation.transcript("active")
        result = result_dict(reply, request.tools)
        tools = {"mode": tool_format(self.runtime, self.node, request.tool_format)}
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
        record_reply(conversation, reply, 0, reply.cost or 0.0)
        conversation.add(assistant_message(reply, style))


def read_stage_node(given: Any, id: str) -> Node:
    """Return the node with every key; its id is ``id`` unless it has one. Raise `MisuseError`."""
    named = given.get("id") if isinstance(given, dict) else None
    return normalise_node(given, named if isinstance(named, str) and named else id)
