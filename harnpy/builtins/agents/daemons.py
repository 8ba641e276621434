"""Daemons: loops that rest and wake in the background, with their state in a directory. Spec: 07 §12."""

from __future__ import annotations

from harnpy.agent.daemon.daemons import Daemons
from harnpy.builtins.bridge.agent_functions import with_python_functions
from harnpy.builtins.bridge.agent_runtime import runtime_of, with_bound_tools
from harnpy.builtins.bridge.background_tasks import BackgroundTasks
from harnpy.builtins.bridge.option_tables import check_options
from harnpy.vm.declare.builtin import ABSENT, builtin, require
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


def daemons_of(vm: Vm) -> Daemons:
    return vm.state(Daemons, lambda: Daemons(runtime_of(vm), BackgroundTasks(vm.tasks, "daemon")))


@builtin("daemon_spawn(config: dict) -> dict", family="agents", counted=True, guarded=True)
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


@builtin("daemon_trigger(handle: any, event: any) -> dict", family="agents", counted=True)
def daemon_trigger(vm: Vm, handle: Value = ABSENT, event: Value = ABSENT) -> Dict:
    """Queue an event for a daemon, which it reads when it rests: a string as it is, else as JSON.

    Example:
        let d = daemon_spawn({task: "Watch", persist_path: "bell", provider: "mock"})
        daemon_trigger(d, {ring: 1})
        daemon_stop(d).status  // "stopped"
    """
    require("daemon_trigger: requires daemon handle and event", handle, event)
    daemon = daemons_of(vm).find(handle)
    daemons_of(vm).trigger(daemon, event)
    return daemon.handle()


@builtin("daemon_snapshot(handle: any) -> dict", family="agents", counted=True)
def daemon_snapshot(vm: Vm, handle: Value = ABSENT) -> Dict:
    """The daemon's state as it last rested, with its `pending_events` and the `inflight_event`.

    Example:
        let d = daemon_spawn({task: "Watch", persist_path: "guard", provider: "mock"})
        let pending = daemon_snapshot(d).pending_events
        daemon_stop(d)
        pending  // []
    """
    require("daemon_snapshot: missing daemon handle", handle)
    return daemons_of(vm).snapshot(daemons_of(vm).find(handle))


@builtin("daemon_stop(handle: any) -> dict", family="agents", counted=True)
def daemon_stop(vm: Vm, handle: Value = ABSENT) -> Dict:
    """Stop a daemon at once; its directory keeps what `daemon_resume` continues from.

    Example:
        let d = daemon_spawn({task: "Watch", persist_path: "porter", provider: "mock"})
        daemon_stop(d).status  // "stopped"
    """
    require("daemon_stop: missing daemon handle", handle)
    daemon = daemons_of(vm).find(handle)
    daemons_of(vm).stop(daemon)
    return daemon.handle()


@builtin("daemon_resume(path: string) -> dict", family="agents", counted=True, guarded=True)
def daemon_resume(vm: Vm, path: Value = ABSENT) -> Dict:
    """Restart the daemon of a directory, with its conversation, its iterations and its events.

    Example:
        let d = daemon_spawn({task: "Watch", persist_path: "watcher", provider: "mock"})
        daemon_stop(d)
        let again = daemon_resume("watcher")
        daemon_stop(again).status  // "stopped"
    """
    require("daemon_resume: missing path", path)
    return daemons_of(vm).resume(display(path)).handle()
