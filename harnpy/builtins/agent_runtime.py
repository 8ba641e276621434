"""What agents get of a Vm: its models, sessions, files and tasks, and Harn functions as Python ones."""

from __future__ import annotations

import os
from contextlib import contextmanager

from harnpy.agent.errors import ToolFailure
from harnpy.agent.runtime import Attempt, Finished, Runtime, attempt, failed_by_itself
from harnpy.builtins.hooks import hooks_of
from harnpy.builtins.llm import models_of, with_experiment
from harnpy.builtins.places import execution_environment, execution_root, own_directory
from harnpy.builtins.sessions.service import callables_within, with_callables
from harnpy.builtins.sessions.summarizing import prompt_from
from harnpy.builtins.tools.binding import bind, bound_registry
from harnpy.llm.tools import is_registry
from harnpy.session.errors import Interruption
from harnpy.vm.backtrace import describe
from harnpy.vm.errors import CategorizedFault, Interrupted, Thrown, VmError
from harnpy.vm.scheduler import Batch
from harnpy.vm.values import Builtin, Fn, display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from typing import Any

    from harnpy.agent.rules.gate import Ask
    from harnpy.agent.workers.registry import Workers
    from harnpy.vm.machine import Vm
    from harnpy.vm.values import Value

    Dict = dict[str, Any]

#: Options of loops that are functions.
_CALLBACKS = ("compact_callback", "mask_callback", "compress_callback", "post_turn_callback")


class _Slot:
    """Where a Vm keeps its agents' runtime."""

    def __init__(self) -> None:
        self.runtime: Runtime | None = None
        self.warned: set[str] = set()


def runtime_of(vm: Vm) -> Runtime:
    slot = vm.state(_Slot)
    if slot.runtime is None:
        slot.runtime = Runtime(
            models=models_of(vm),
            sessions=vm.sessions,
            files=_Files(vm),
            together=lambda calls: _together(vm, calls),
            as_they_end=lambda calls, limit: _as_they_end(vm, calls, limit),
            hooks=hooks_of(vm),
            host_tool=_host_tool(vm),
            ambient=lambda: vm.session_stack,
            ask=_asker(vm),
            pattern=lambda text: _pattern(vm, text),
            run_program=lambda argv, cwd, env: _run_program(vm, argv, cwd, env),
            workers=lambda: _workers(vm),
            found_skills=getattr(vm, "found_skills", None) or (),
            tools_bound=lambda options: tools_bound(vm, options),
            is_failure=_is_failure,
            when_idle=lambda act: vm.tasks.chores.append(act),
        )
    return slot.runtime


def _is_failure(error: BaseException) -> bool:
    """Whether an error is a program's or one that says what it did wrong, and ends no more than its work."""
    return failed_by_itself(error) or (isinstance(error, VmError) and not isinstance(error, Interrupted))


def _workers(vm: Vm) -> Workers:
    from harnpy.builtins.worker_runtime import workers_of

    return workers_of(vm)


def _host_tool(vm: Vm) -> Callable[[Dict, Dict], Value] | None:
    """Tools that the host runs; None without a host that does."""
    bridge = vm.host.bridge
    if bridge is None:
        return None
    return lambda entry, arguments: vm.tasks.awaited(bridge.call(entry["name"], arguments))


def _asker(vm: Vm) -> Ask | None:
    """Approval of tool calls by the host's person: a function that answers why not; None without one."""
    if vm.host.human is None:
        return None
    from harnpy.agent.hitl import APPROVAL, HitlError
    from harnpy.builtins.hitl_asking import ask

    def approve(tool: str, arguments: Dict) -> str | None:
        payload = {"action": f"call tool {tool}", "args": arguments, "quorum": 1, "reviewers": []}
        try:
            ask(vm, APPROVAL, payload)
        except HitlError as error:
            return str(error)
        return None

    return approve


def _pattern(vm: Vm, text: str) -> Any:
    """A compiled regular expression; raises ValueError."""
    from harnpy.builtins.regexes import compiled_pattern

    return compiled_pattern(vm, text)


def with_python_functions(vm: Vm, options: Value) -> Value:
    """A loop's options for the agents' room: callbacks, tool handlers and prompts as Python callables."""
    if type(options) is not dict:
        return options
    given = with_experiment(vm, with_callables(vm, options, *_CALLBACKS))
    if given.get("summarize_prompt") is not None:
        given["summarize_prompt"] = prompt_from(vm, display(given["summarize_prompt"]))
    for key in ("permissions", "skills"):
        if given.get(key) is not None:
            given[key] = callables_within(vm, given[key])
    if given.get("tools") is not None:
        given["tools"] = _tools(vm, given["tools"])
    return given


@contextmanager
def tools_bound(vm: Vm, options: Value) -> Iterator[None]:
    """Let the registry of a loop's options be the bound one inside the block."""
    registry = options.get("tools") if type(options) is dict else None
    if not is_registry(registry):
        yield
        return
    outer = bound_registry(vm)
    bind(vm, registry)
    try:
        yield
    finally:
        bind(vm, outer)


def with_bound_tools(vm: Vm, options: Value) -> Value:
    """The options with the caller's bound registry, if they name no tools."""
    given = {} if options is None else options
    if type(given) is not dict or given.get("tools") is not None:
        return options
    return {**given, "tools": bound_registry(vm)}


def node_with_python_functions(vm: Vm, node: Value) -> Value:
    """The same for a node of a workflow."""
    if type(node) is not dict:
        return node
    given = callables_within(vm, {key: value for key, value in node.items() if key != "tools"})
    compaction = given.get("auto_compact")
    if type(compaction) is dict and compaction.get("summarize_prompt") is not None:
        prompt = prompt_from(vm, display(compaction["summarize_prompt"]))
        given["auto_compact"] = {**compaction, "summarize_prompt": prompt}
    return {**given, "tools": _tools(vm, node["tools"])} if "tools" in node else given


def graph_with_python_functions(vm: Vm, graph: Value) -> Value:
    """The same for a whole workflow, its shorthand nodes included."""
    if type(graph) is not dict:
        return graph
    given = {key: node_with_python_functions(vm, value) for key, value in graph.items()}
    nodes = given.get("nodes")
    if type(nodes) is dict:
        given["nodes"] = {id: node_with_python_functions(vm, node) for id, node in graph["nodes"].items()}
    return given


def _tools(vm: Vm, tools: Value) -> Value:
    """A registry or a list of entries, with handlers that Python can call."""
    if type(tools) is dict and type(tools.get("tools")) is list:
        return {**tools, "tools": _tools(vm, tools["tools"])}
    if type(tools) is not list:
        return tools
    return [_entry(vm, entry) for entry in tools]


def _entry(vm: Vm, entry: Value) -> Value:
    if type(entry) is not dict or type(entry.get("handler")) not in (Fn, Builtin):
        return entry
    handler = entry["handler"]
    if type(handler) is Fn and len(handler.params) > 1:
        _warn_of_parameters(vm, display(entry.get("name")), handler)
    return {**entry, "handler": _handler(vm, handler)}


def _warn_of_parameters(vm: Vm, name: str, handler: Fn) -> None:
    """Say, once for each tool, that its function will not get its arguments one by one (07 §4.3)."""
    warned = vm.state(_Slot).warned
    if name not in warned:
        warned.add(name)
        vm.sessions.effects.warn(
            "agent.tools",
            f"tool '{name}' takes ({', '.join(handler.params)}), but a loop calls it with one dict of its "
            "arguments: let it be { args -> … }",
        )


def _handler(vm: Vm, function: Value) -> Callable[[Dict], Value]:
    """A tool's function: what it raises is a `ToolFailure`, in the words that a model gets to read."""

    def call(arguments: Dict) -> Value:
        try:
            return vm.call(function, arguments)
        except Interrupted as error:
            raise Interruption(str(error)) from error
        except Thrown as error:
            raise ToolFailure(error.text, _category(error.value)) from error
        except CategorizedFault as error:
            raise ToolFailure(error.text, error.category) from error
        except VmError as error:
            raise ToolFailure(describe(error, 0)) from error

    return call


def _category(thrown: Value) -> str | None:
    return display(thrown["category"]) if type(thrown) is dict and "category" in thrown else None


def _together(vm: Vm, calls: Sequence[Callable[[], Value]]) -> list[Value]:
    """The results of the calls, which run as tasks at the same time."""
    if len(calls) < 2:
        return [call() for call in calls]
    tasks = vm.tasks
    bodies = [lambda depth, call=call: call() for call in calls]
    ended = sorted(Batch(tasks, "tools", bodies, len(bodies)), key=lambda task: task.index)
    return tasks.gathered(ended)


def _as_they_end(vm: Vm, calls: Sequence[Callable[[], Value]], limit: int) -> Generator[Attempt, None, None]:
    """What came of the calls, which run as tasks."""
    bodies = [lambda depth, at=index, call=call: attempt(at, call) for index, call in enumerate(calls)]
    batch = Batch(vm.tasks, "branches", bodies, limit)
    try:
        for task in batch:
            vm.tasks.take_output(task)
            yield task.result
    finally:
        batch.stop()


def _run_program(vm: Vm, argv: Sequence[str], cwd: str | None, env: Mapping[str, str]) -> Finished:
    directory = execution_root(vm) if cwd is None else os.path.join(vm.host.cwd(), cwd)
    inherited = execution_environment(vm) or vm.host.environment()
    ended = vm.tasks.await_coroutine(vm.host.run_process(argv, directory, {**inherited, **env}))
    out, err = (output.decode("utf-8", "replace") for output in (ended.out, ended.err))
    return Finished(out, err, max(ended.code, -1))


class _Files:
    """Files as tools see them: relative to the program's directory."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm

    def read_text(self, path: str) -> str:
        return self._vm.host.read_text(self.absolute(path))

    def is_dir(self, path: str) -> bool:
        return self._vm.host.is_dir(self.absolute(path))

    def list_dir(self, path: str) -> list[str]:
        return self._vm.host.list_dir(self.absolute(path))

    def modified(self, path: str) -> int | None:
        return self._vm.host.modified(self.absolute(path))

    def replace_text(self, path: str, text: str) -> None:
        self._vm.host.replace_text(self.absolute(path), text)

    def absolute(self, path: str) -> str:
        vm = self._vm
        return os.path.join(own_directory(vm) or vm.source_dir or vm.host.cwd(), path)
