"""Agents in the background: workers, and daemons with their state in a directory.

Spec: 07 §11, §12, 08 §13.1.
"""

from __future__ import annotations

from functools import partial

from harnpy.agent.daemons import Daemons
from harnpy.builtins.agents.agent_functions import (
    graph_with_python_functions,
    node_with_python_functions,
    with_python_functions,
)
from harnpy.builtins.agents.agent_runtime import runtime_of, with_bound_tools
from harnpy.builtins.bridge.agent_tasks import BackgroundTasks
from harnpy.builtins.bridge.callables import callables_within
from harnpy.builtins.options import check_options
from harnpy.formats.json import to_json
from harnpy.vm.declare import ABSENT, require
from harnpy.vm.declare import builtin as declare
from harnpy.vm.values import display
from harnpy.workflow.worker_jobs import spawn_agent as spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="agents", counted=True)

# Workers: agents that run in the background of the program, task after task. Spec: 07 §11, 08 §13.1.


@builtin("spawn_agent(config: dict) -> dict", guarded=True)
def spawn_agent(vm: Vm, config: Value = ABSENT) -> Dict:
    """Start a worker on `{task, node or graph, name?, tools?, policy?, carry?, …}` and return its handle.

    Returns at once; with `wait: true`, when the work is done. Spec: 07 §11.2.

    Example:
        let worker = spawn_agent({task: "Count", node: {kind: "stage", model_policy: {provider: "mock"}}})
        wait_agent(worker).status  // "completed"
    """
    require("spawn_agent: missing config", config)
    check_options(vm, "spawn_agent", config)
    workers = runtime_of(vm).workers()
    worker = spawn(runtime_of(vm), workers, _with_python_functions(vm, config))
    if config.get("wait"):
        workers.wait(worker, cycle=True)
    return worker.handle()


@builtin("wait_agent(handle: any) -> dict | list")
def wait_agent(vm: Vm, handle: Value = ABSENT) -> Value:
    """Wait until a worker, or each of a list, is done; return the outcome. Throws the error of its run.

    Example:
        let work = {kind: "stage", model_policy: {provider: "mock"}}
        let workers = ["Count", "Sort"].map({ text -> spawn_agent({task: text, node: work}) })
        wait_agent(workers).map({ ended -> ended.status })  // ["completed", "completed"]
    """
    require("wait_agent: missing worker handle", handle)
    if type(handle) is list:
        return [_waited(vm, each) for each in handle]
    return _waited(vm, handle)


@builtin("send_input(handle: any, text: string) -> dict")
def send_input(vm: Vm, handle: Value = ABSENT, text: Value = ABSENT) -> Dict:
    """Give an idle worker another task; `carry` decides how its conversation continues.

    Example:
        let worker = spawn_agent({task: "Count", wait: true, node: {model_policy: {provider: "mock"}}})
        send_input(worker, "Count again").status  // "running"
    """
    require("send_input: requires worker handle and task text", handle, text)
    worker = runtime_of(vm).workers().find(handle)
    runtime_of(vm).workers().send(worker, display(text))
    return worker.handle()


@builtin("worker_trigger(handle: any, payload: any) -> dict")
def worker_trigger(vm: Vm, handle: Value = ABSENT, payload: Value = ABSENT) -> Dict:
    """Start a retriggerable worker's next cycle with `payload` as its task, as JSON unless it is a string.

    Example:
        let worker = spawn_agent({task: "Count", node: {kind: "stage", model_policy: {provider: "mock"}}})
        wait_agent(worker)
        try { worker_trigger(worker, {n: 2}) } catch (e) { "not retriggerable" }  // "not retriggerable"
    """
    require("worker_trigger: requires worker handle and payload", handle, payload)
    worker = runtime_of(vm).workers().find(handle)
    runtime_of(vm).workers().trigger(worker, payload if type(payload) is str else to_json(payload))
    return worker.handle()


@builtin("resume_agent(id_or_path: string) -> dict")
def resume_agent(vm: Vm, id_or_path: Value = ABSENT) -> Dict:
    """Restore a worker from its snapshot, given an id or the path of the file. It rests until `send_input`.

    Example: try { resume_agent("no such worker") } catch (e) { "unknown" }  // "unknown"
    """
    require("resume_agent: missing worker id or snapshot path", id_or_path)
    name = id_or_path.get("id") if type(id_or_path) is dict else id_or_path
    return runtime_of(vm).workers().resume(display(name)).handle()


@builtin("close_agent(handle: any) -> dict")
def close_agent(vm: Vm, handle: Value = ABSENT) -> Dict:
    """End a worker, whatever it is doing; its status becomes `cancelled`.

    Example:
        let worker = spawn_agent({task: "Count", node: {kind: "stage", model_policy: {provider: "mock"}}})
        close_agent(worker).status  // "cancelled"
    """
    require("close_agent: missing worker handle", handle)
    worker = runtime_of(vm).workers().find(handle)
    runtime_of(vm).workers().close(worker)
    return worker.handle()


@builtin("list_agents() -> list", counted=False)
def list_agents(vm: Vm) -> list[Dict]:
    """Return all workers of this run, oldest first.

    Example: list_agents().every({ worker -> worker.status != "" })  // true
    """
    return [worker.handle() for worker in runtime_of(vm).workers().all()]


def _waited(vm: Vm, handle: Value) -> Dict:
    workers = runtime_of(vm).workers()
    worker = workers.find(handle)
    workers.wait(worker)
    return worker.handle()


def _with_python_functions(vm: Vm, config: Value) -> Value:
    if type(config) is not dict:
        return config
    work = {
        "node": node_with_python_functions(vm, config.get("node")),
        "graph": graph_with_python_functions(vm, config.get("graph")),
    }
    return {**callables_within(vm, {key: config[key] for key in config if key not in work}), **work}


# Daemons: loops that rest and wake in the background, with their state in a directory. Spec: 07 §12.


def daemons_of(vm: Vm) -> Daemons:
    return vm.state(Daemons, lambda: Daemons(runtime_of(vm), BackgroundTasks(vm.tasks, "daemon")))


@builtin("daemon_spawn(config: dict) -> dict", guarded=True)
def daemon_spawn(vm: Vm, config: Value = ABSENT) -> Dict:
    """Start a daemon with `{task, persist_path, name?, system?, …}` and options of `agent_loop`.

    It runs in the background, keeps its state in the directory `persist_path` and wakes when triggered.
    Returns its handle.

    Example:
        let d = daemon_spawn({task: "Watch", persist_path: "desk", provider: "mock"})
        daemon_stop(d)
        file_exists("desk")  // true
    """
    require("daemon_spawn: missing config", config)
    check_options(vm, "daemon_spawn", config)
    given = config if type(config) is not dict else with_bound_tools(vm, config)
    return daemons_of(vm).spawn(with_python_functions(vm, given)).handle()


@builtin("daemon_trigger(handle: any, event: any) -> dict")
def daemon_trigger(vm: Vm, handle: Value = ABSENT, event: Value = ABSENT) -> Dict:
    """Queue an event for a daemon to read when it rests: a string as it is, otherwise as JSON.

    Example:
        let d = daemon_spawn({task: "Watch", persist_path: "bell", provider: "mock"})
        daemon_trigger(d, {ring: 1})
        daemon_stop(d).status  // "stopped"
    """
    require("daemon_trigger: requires daemon handle and event", handle, event)
    daemon = daemons_of(vm).find(handle)
    daemons_of(vm).trigger(daemon, event)
    return daemon.handle()


@builtin("daemon_snapshot(handle: any) -> dict")
def daemon_snapshot(vm: Vm, handle: Value = ABSENT) -> Dict:
    """Return the daemon's state when it last rested, with its `pending_events` and the `inflight_event`.

    Example:
        let d = daemon_spawn({task: "Watch", persist_path: "guard", provider: "mock"})
        let pending = daemon_snapshot(d).pending_events
        daemon_stop(d)
        pending  // []
    """
    require("daemon_snapshot: missing daemon handle", handle)
    return daemons_of(vm).snapshot(daemons_of(vm).find(handle))


@builtin("daemon_stop(handle: any) -> dict")
def daemon_stop(vm: Vm, handle: Value = ABSENT) -> Dict:
    """Stop a daemon at once; its directory keeps what `daemon_resume` needs.

    Example:
        let d = daemon_spawn({task: "Watch", persist_path: "porter", provider: "mock"})
        daemon_stop(d).status  // "stopped"
    """
    require("daemon_stop: missing daemon handle", handle)
    daemon = daemons_of(vm).find(handle)
    daemons_of(vm).stop(daemon)
    return daemon.handle()


@builtin("daemon_resume(path: string) -> dict", guarded=True)
def daemon_resume(vm: Vm, path: Value = ABSENT) -> Dict:
    """Restart the daemon in a directory, with its conversation, iterations and events.

    Example:
        let d = daemon_spawn({task: "Watch", persist_path: "watcher", provider: "mock"})
        daemon_stop(d)
        let again = daemon_resume("watcher")
        daemon_stop(again).status  // "stopped"
    """
    require("daemon_resume: missing path", path)
    return daemons_of(vm).resume(display(path)).handle()
