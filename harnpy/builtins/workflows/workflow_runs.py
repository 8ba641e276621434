"""Running a workflow, and messages to and from it (the ``workflow`` namespace). Spec: 08 §7, §10."""

from __future__ import annotations

import os.path
from functools import partial

from harnpy.builtins.agents.agent_functions import graph_with_python_functions
from harnpy.builtins.agents.agent_runtime import runtime_of
from harnpy.builtins.agents.waitpoints import Patience
from harnpy.builtins.bridge.callables import callables_within
from harnpy.builtins.bridge.contexts import runtime_root
from harnpy.builtins.options import check_options
from harnpy.builtins.workflows.graphs import MadeGraphs
from harnpy.formats.dicts import Options
from harnpy.formats.json import parse_json, stored_json
from harnpy.formats.manifest import require_inside
from harnpy.project import STATE_VARIABLE, project_root, state_directory
from harnpy.vm.declare import builtin
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values import display
from harnpy.workflow.execution.execute import execute
from harnpy.workflow.execution.run_progress import COMPLETED, FAILED
from harnpy.workflow.mailbox import Mailbox, read_target
from harnpy.world.effects import STATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# Running a workflow. Spec: 08 §7.


@builtin(
    "workflow_execute(task: string, graph: dict, artifacts?: list, options?: dict) -> dict",
    family="workflows",
    counted=True,
)
def workflow_execute(
    vm: Vm, task: Value = None, graph: Value = None, artifacts: Value = None, options: Value = None
) -> Dict:
    """Run a graph's nodes, along its edges: `{status, error, run, artifacts, transcript, path}`.

    The status is `completed`, `failed` if a stage failed and no edge on its branch says what happens then
    (`error` says why), or `paused` if `max_steps` were not enough; `resume_path` continues such a run.
    A stage that fails follows the edges of its branch; it doesn't end the run.

    Example:
        llm_mock({text: "Forks are cheap now."})
        let flow = workflow_graph({entry: "draft", nodes: {draft: {system: "Be brief."}}})
        workflow_execute("Announce it", flow, nil, {provider: "mock"}).status  // "completed"
    """
    check_options(vm, "workflow_execute", options)
    runtime = runtime_of(vm)
    durable_run = vm.service(Patience, lambda vm: Patience()).run_id
    if durable_run is not None and runtime.context().workflow is None:
        options = {"parent_run_id": durable_run, **(options if type(options) is dict else {})}
    given = runtime.models.options(callables_within(vm, options))
    text = "" if task is None else display(task)
    known = vm.state(MadeGraphs).find(graph)
    flow = graph_with_python_functions(vm, graph) if known is None else known
    result = execute(runtime, text, flow, artifacts, given)
    if runtime.context().workflow is None:  # else its own workflow decides what that means
        _keep_failure(vm, result)
    return result


def _keep_failure(vm: Vm, result: Dict) -> None:
    """Keep why a workflow failed for the exit status, until the same one is completed. Spec: 09 §2.3."""
    run = result["run"]
    name = run["workflow_name"] or run["workflow_id"]
    if result["status"] == FAILED:
        vm.failures[name] = f"workflow '{name}' failed: {result['error']}"
    elif result["status"] == COMPLETED:
        vm.failures.pop(name, None)


# The ``workflow`` namespace: messages to and from workflows. Spec: 08 §10.


_UPDATE_MS = 30_000

message_builtin = partial(declare, family="workflows", counted=True)


@message_builtin("workflow.signal(target: any, name: string, payload?: any) -> dict")
def signal(vm: Vm, target: Value = None, name: Value = None, payload: Value = None) -> Dict:
    """Put a message into a workflow's mailbox: `{workflow_id, message, status}`.

    Example: workflow.signal("letters", "arrived", {id: 1}).status.pending_count  // 1
    """
    return _mailbox(vm, "signal", target).signal(_name("signal", name), _data(payload))


@message_builtin("workflow.query(target: any, name: string) -> any")
def query(vm: Vm, target: Value = None, name: Value = None) -> Value:
    """Return the value that a workflow last published under a name, or nil.

    Example: workflow.query("orders", "never published")  // nil
    """
    return _mailbox(vm, "query", target).query(_name("query", name))


@message_builtin("workflow.publish_query(target: any, name: string, value?: any) -> dict")
def publish_query(vm: Vm, target: Value = None, name: Value = None, value: Value = None) -> Dict:
    """Publish a value for `workflow.query` under a name; return the mailbox's status.

    Example:
        workflow.publish_query("orders", "open", 3)
        workflow.query("orders", "open")  // 3
    """
    return _mailbox(vm, "publish_query", target).publish_query(_name("publish_query", name), _data(value))


@message_builtin("workflow.update(target: any, name: string, payload?: any, options?: dict) -> any")
def update(
    vm: Vm, target: Value = None, name: Value = None, payload: Value = None, options: Value = None
) -> Value:
    """Put a request into a workflow's mailbox and wait for the response, at most `{timeout_ms = 30000}`.

    Example:
        let clerk = spawn {
          while workflow.status("desk").pending_count == 0 { sleep(1ms) }
          let asked = workflow.receive("desk")
          workflow.respond_update("desk", asked.request_id, asked.payload * 2)
        }
        workflow.update("desk", "double", 21)  // 42
    """
    check_options(vm, "workflow.update", options)
    timeout = Options(options).count("timeout_ms", _UPDATE_MS)
    return _mailbox(vm, "update", target).update(_name("update", name), _data(payload), timeout / 1000)


@message_builtin("workflow.receive(target: any) -> dict | nil")
def receive(vm: Vm, target: Value = None) -> Dict | None:
    """Remove the oldest message from a mailbox: `{workflow_id, seq, kind, name, request_id, payload, …}`.

    Example:
        workflow.signal("parcels", "arrived", {id: 1})
        workflow.receive("parcels").payload  // {id: 1}
    """
    return _mailbox(vm, "receive", target).receive()


@message_builtin(
    "workflow.respond_update(target: any, request_id: string, value: any, name?: string) -> dict"
)
def respond_update(
    vm: Vm, target: Value = None, request_id: Value = None, value: Value = None, name: Value = None
) -> Dict:
    """Respond to the request of a `workflow.update`; return the mailbox's status.

    Example: workflow.respond_update("orders", "request_1", "done").response_count  // 1
    """
    mailbox = _mailbox(vm, "respond_update", target)
    if request_id is None or request_id == "":
        raise RuntimeFault("workflow.respond_update: missing request id")
    return mailbox.respond(display(request_id), _data(value), None if name is None else display(name))


@message_builtin("workflow.pause(target: any) -> dict")
def pause(vm: Vm, target: Value = None) -> Dict:
    """Ask a workflow to pause; return the mailbox's status.

    Example: workflow.pause("orders").paused  // true
    """
    return _mailbox(vm, "pause", target).pause(True)


@message_builtin("workflow.resume(target: any) -> dict")
def resume(vm: Vm, target: Value = None) -> Dict:
    """Ask a workflow to resume; return the mailbox's status.

    Example:
        workflow.pause("shop")
        workflow.resume("shop").paused  // false
    """
    return _mailbox(vm, "resume", target).pause(False)


@message_builtin("workflow.status(target: any) -> dict")
def status(vm: Vm, target: Value = None) -> Dict:
    """Return the status of a mailbox: `{generation, paused, pending_count, query_count, response_count, …}`.

    Example: workflow.status("nobody home").pending_count  // 0
    """
    return _mailbox(vm, "status", target).status()


@message_builtin("workflow.continue_as_new(target: any) -> dict")
@message_builtin("continue_as_new(target: any) -> dict", family="workflows", counted=True)
def continue_as_new(vm: Vm, target: Value = None) -> Dict:
    """Start a workflow's next generation, without responses but with messages and queries; return the status.

    Example: continue_as_new("orders").generation > 0  // true
    """
    return _mailbox(vm, "continue_as_new", target).continue_as_new()


def _mailbox(vm: Vm, verb: str, given: Value) -> Mailbox:
    world, projects = vm.world, partial(project_root, files=vm.unguarded.files)
    target = read_target(given, f"workflow.{verb}", runtime_root(vm), world.files.cwd(), projects)
    state = state_directory(target.base_dir, world.unguarded.environment.get(STATE_VARIABLE))
    directory = os.path.join(state, "workflows", target.workflow_id)
    world.require_place(STATE, directory)  # before anything is looked at there
    require_inside(world.unguarded, target.base_dir, directory)
    return Mailbox(target, directory, world, vm.tasks.sleep)


def _data(value: Value) -> Any:
    """Return the value as it will be read from the file."""
    return parse_json(stored_json(value))


def _name(verb: str, given: Value) -> str:
    if given is None or given == "":
        raise RuntimeFault(f"workflow.{verb}: missing name")
    return display(given)
