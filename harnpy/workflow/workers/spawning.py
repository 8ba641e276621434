"""Starting a worker from a config. Spec: 07 §11.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.commands.policy import (
    command_policy_among,
    given_command_policy,
    without_command_policy,
)
from harnpy.agent.workers.carry import carried_policies, read_carry
from harnpy.agent.workers.requested import read_execution, read_request, requested_policies
from harnpy.agent.workers.worker import STAGE, WORKFLOW
from harnpy.faults import MisuseError
from harnpy.session.transcripts import is_transcript
from harnpy.workflow.artifacts.artifact import read_artifacts
from harnpy.workflow.graph.normalise import normalise_graph
from harnpy.workflow.stages.stage import read_stage_node

if TYPE_CHECKING:
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.workers.worker import Worker
    from harnpy.agent.workers.workers import Workers
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.graph.graph_types import Node


CALLER = "spawn_agent"
NODE = "stage"


def spawn_agent(runtime: Runtime, workers: Workers, config: Any) -> Worker:
    """Start the worker that a config describes. Raise `MisuseError` and `OptionError`."""
    if not isinstance(config, dict):
        raise MisuseError(f"{CALLER}: config must be a dict")
    options = runtime.models.options(config)
    task = options.string("task") or ""
    if not task.strip():
        raise MisuseError(f"{CALLER}: config.task is required")
    carry = read_carry(options.value("carry"), CALLER)
    given_command_policy(config, CALLER)
    mode, work, system, asked = _work(runtime, config)
    policies = requested_policies(without_command_policy(config.get("policy")), config.get("tools"), CALLER)
    policies += carried_policies(config.get("carry"), CALLER)
    transcript = config.get("transcript")
    if transcript is not None and not is_transcript(transcript):
        raise MisuseError(f"{CALLER}: transcript must be a transcript or nil")
    artifacts = read_artifacts(config.get("artifacts"), runtime.sessions.world)
    return workers.spawn(
        mode,
        task,
        name=options.string("name") or "worker",
        config={**work, "artifacts": artifacts, "transcript": transcript},
        request=read_request(task, system, asked),
        carry=carry,
        policies=policies,
        execution=read_execution(options.value("execution"), CALLER),
        audit=options.value("audit"),
        caller=CALLER,
    )


def _work(runtime: Runtime, config: Dict) -> tuple[str, Dict, str | None, Dict]:
    """Return the worker's mode and its work, then the system prompt and the metadata of its request."""
    if config.get("graph") is not None:
        graph = normalise_graph(config["graph"], runtime.sessions.world)
        nodes = {id: _with_rules(node, config) for id, node in graph["nodes"].items()}
        options = config.get("options")
        if options is not None and not isinstance(options, dict):
            raise MisuseError(f"{CALLER}: options must be a dict")
        work = {"graph": {**graph, "nodes": nodes}, "options": options or {}}
        return WORKFLOW, work, None, graph["metadata"]
    if config.get("node") is None:
        raise MisuseError(f"{CALLER}: config requires either graph or node")
    node = read_stage_node(config["node"], NODE)
    return STAGE, {"node": _with_rules(node, config)}, node["system"], node["metadata"]


def _with_rules(node: Node, config: Dict) -> Node:
    """Return the node with the config's permissions and command policy, beside which its own ones hold."""
    policy, permissions = node["model_policy"], config.get("permissions")
    inner = policy.get("permissions")
    if isinstance(inner, dict) and isinstance(permissions, dict):
        permissions = {**inner, **permissions}
    commands = None if command_policy_among(policy) is not None else command_policy_among(config)
    added = {"permissions": permissions, "command_policy": commands}
    given: Any = {key: value for key, value in added.items() if value is not None}
    return {**node, "model_policy": {**policy, **given}} if given else node
