"""Calls of the host: `host_call` and its built-in operations, mocks, the host's tools.

Spec: 02 §27, 04 §24.
"""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.contexts import context_of, workplace_of
from harnpy.builtins.language import system
from harnpy.builtins.language.system import required
from harnpy.builtins.language.terminal import read_in_time
from harnpy.formats.case import WHITESPACE
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import CategorizedFault, RuntimeFault, Thrown
from harnpy.vm.run.embedders import answer
from harnpy.vm.values import Duration, display
from harnpy.vm.values.equality import equal
from harnpy.world.clock import rfc3339
from harnpy.world.files import plain_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm
    from harnpy.world.processes import Ended

builtin = partial(declare, family="host")

# Mocks of host operations, and the calls that they handled. Spec: 04 §24, 02 §27.


_CONFIG_KEYS = ("result", "error", "params")


class Mock:
    """``params`` are entries that a call must have; None matches any call."""

    def __init__(self, capability: str, operation: str, given: Value, params: Value) -> None:
        self.capability = capability
        self.operation = operation
        config = given if type(given) is dict and any(key in given for key in _CONFIG_KEYS) else None
        self.result = config.get("result") if config else given
        error = config.get("error") if config else None
        self.error = None if error is None else display(error)
        wanted = config.get("params") if config else params
        self.params: Dict | None = wanted if type(wanted) is dict else None

    def matches(self, capability: str, operation: str, params: Dict) -> bool:
        if (self.capability, self.operation) != (capability, operation):
            return False
        wanted = (self.params or {}).items()
        return all(key in params and equal(params[key], value) for key, value in wanted)


class _Scope:
    def __init__(self) -> None:
        self.mocks: list[Mock] = []
        self.calls: list[dict[str, Any]] = []


class HostMocks:
    """The mocks of one run, in scopes that can be set aside."""

    def __init__(self) -> None:
        self._scope = _Scope()
        self._saved: list[_Scope] = []

    @property
    def mocks(self) -> list[Mock]:
        return self._scope.mocks

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls that a mock took, as ``{capability, operation, params}``."""
        return list(self._scope.calls)

    def answer(self, capability: str, operation: str, params: Dict) -> tuple[Value] | None:
        """Return the result of the latest mock that matches, None without one. Throws the mock's error."""
        for mock in reversed(self.mocks):
            if mock.matches(capability, operation, params):
                call = {"capability": capability, "operation": operation, "params": params}
                self._scope.calls.append(call)
                if mock.error:
                    raise Thrown(mock.error)
                return (mock.result,)
        return None

    def clear(self) -> None:
        self._scope = _Scope()
        self._saved.clear()

    def push_scope(self) -> None:
        """Start without mocks and calls until `pop_scope`."""
        self._saved.append(self._scope)
        self._scope = _Scope()

    def pop_scope(self) -> None:
        if not self._saved:
            raise Thrown("host_mock_pop_scope: no scope to pop")
        self._scope = self._saved.pop()


# The built-in operations of `host_call`: processes, templates, a question, the workspace.
#
# Spec: 02 §27, 04 §24. An operation is a function ``(vm, params) -> value``, or a coroutine function.


#: The operation that command policies are about.
EXEC = "process.exec"

_EXEC = f"host_call {EXEC}"


async def _exec(vm: Vm, params: Dict) -> Dict:
    argv, world = _argv(vm, params), vm.world
    started, clock = world.clock.now(), world.clock.monotonic()
    try:
        ended = await world.processes.run(
            argv, _directory(vm, params), _environment(vm, params), _seconds(params)
        )
    except (OSError, ValueError) as error:  # a NUL, or what is no Unicode
        raise RuntimeFault(f"{_EXEC}: {plain_reason(error)}") from None
    ms = int((world.clock.monotonic() - clock) * 1000)
    return {
        "command_id": f"cmd_{world.ids.new()}",
        "started_at": rfc3339(started),
        "ended_at": rfc3339(started + ms / 1000),
        "duration_ms": ms,
        **_outcome(ended),
    }


def _outcome(ended: Ended) -> Dict:
    stdout, stderr = ended.out.decode("utf-8", "replace"), ended.err.decode("utf-8", "replace")
    code = -1 if ended.code is None or ended.code < 0 else ended.code
    return {
        "status": "timed_out" if ended.code is None else "completed",
        "timed_out": ended.code is None,
        "pid": ended.pid,
        "process_group_id": ended.pid,
        "handle_id": None,
        "signal": None,
        "exit_code": code,
        "exit_status": code,
        "legacy_status": code,
        "success": code == 0,
        "stdout": stdout,
        "stderr": stderr,
        "combined": stdout + stderr,
    }


def _argv(vm: Vm, params: Dict) -> list[str]:
    mode = params.get("mode", "shell")
    if mode == "shell":
        call = system.invocation(vm, params, _EXEC, display(required(params, "command")))
        return [call["program"], *map(display, call["args"])]
    if mode != "argv":
        raise RuntimeFault(f'{_EXEC} unsupported mode "{display(mode)}"')
    argv = params.get("argv")
    if type(argv) is not list:
        raise RuntimeFault(f"{_EXEC} missing argv")
    if not argv:
        raise RuntimeFault(f"{_EXEC} argv must not be empty")
    if not display(argv[0]):
        raise RuntimeFault(f"{_EXEC} argv[0] must not be empty")
    return [display(word) for word in argv]


def _directory(vm: Vm, params: Dict) -> str:
    import os.path

    given = params.get("cwd")
    return (
        workplace_of(vm).directory()
        if given is None
        else os.path.join(workplace_of(vm).directory(), display(given))
    )


def _environment(vm: Vm, params: Dict) -> Mapping[str, str] | None:
    given = params.get("env")
    if given is None:
        return workplace_of(vm).environment()
    if type(given) is not dict:
        raise RuntimeFault(f"{_EXEC} env must be a dict")
    for name, value in given.items():
        if type(value) is not str:
            raise RuntimeFault(f'{_EXEC} env value for "{name}" must be a string')
    replaces = params.get("env_mode", "replace") == "replace"
    return given if replaces else {**(workplace_of(vm).environment() or vm.world.environment.all()), **given}


def _seconds(params: Dict) -> float | None:
    given = params.get("timeout")
    if given is None:
        given = params.get("timeout_ms")
    ms = given.ms if type(given) is Duration else given
    if type(ms) is not int and type(ms) is not float:
        return None
    return ms / 1000 if ms > 0 else None


def _list_shells(vm: Vm, params: Dict) -> Dict:
    default = system.default_shell(vm)
    return {"shells": list(system.shells(vm).values()), "default_shell_id": default and default["id"]}


def _default_shell(vm: Vm, params: Dict) -> Dict | None:
    return system.default_shell(vm)


def _shell_invocation(vm: Vm, params: Dict) -> Dict:
    command = params.get("command")
    text = "{command}" if command is None else display(command)
    return system.invocation(vm, params, "process.shell_invocation", text)


def _render(vm: Vm, params: Dict) -> str:
    from harnpy.builtins.language.templates import render

    return render(vm, display(required(params, "path")), params.get("bindings"))


def _ask(vm: Vm, params: Dict) -> str:
    vm.write(display(required(params, "question")))
    return (read_in_time(vm, vm.world.streams.read_line) or "").rstrip(WHITESPACE)


def _task(vm: Vm, params: Dict) -> str:
    return vm.unguarded.environment.get("HARN_TASK") or ""


def _set_result(vm: Vm, params: Dict) -> None:
    """Only an embedder does anything with it."""


def _project_root(vm: Vm, params: Dict) -> str:
    return vm.unguarded.environment.get("HARN_PROJECT_ROOT") or vm.world.files.cwd()


def _cwd(vm: Vm, params: Dict) -> str:
    return workplace_of(vm).directory()


OPERATIONS: Mapping[str, Callable[[Vm, Dict], Any]] = {
    EXEC: _exec,
    "process.list_shells": _list_shells,
    "process.get_default_shell": _default_shell,
    "process.set_default_shell": system.set_default_shell,
    "process.shell_invocation": _shell_invocation,
    "template.render": _render,
    "interaction.ask": _ask,
    "runtime.task": _task,
    "runtime.set_result": _set_result,
    "workspace.project_root": _project_root,
    "workspace.cwd": _cwd,
}

CAPABILITIES = {
    "process": "Run commands.",
    "template": "Render prompt templates.",
    "interaction": "Ask the person at the terminal.",
}

#: What the manifest lists, by capability; the other operations are for the runtime itself.
DESCRIPTIONS = {
    "process": {
        "exec": "Run a command and answer its output and status.",
        "list_shells": "The shells of this machine.",
        "get_default_shell": "The shell that commands go to.",
        "set_default_shell": "Choose the shell that commands go to.",
        "shell_invocation": "How a shell is started for a command.",
    },
    "template": {"render": "Render a template file with bindings."},
    "interaction": {"ask": "Ask a question and read one line."},
}


@builtin("host_call(name: string, params?: dict) -> any")
def host_call(vm: Vm, name: str, params: Value) -> Value:
    """Call `"capability.operation"` on the latest matching mock, or else on the host.

    Example:
        host_mock("project", "read", {ok: true})
        host_call("project.read", {name: "a"})  // {ok: true}
    """
    capability, dot, operation = name.partition(".")
    if not (capability and dot and operation):
        raise Thrown(f"host_call: unsupported operation name '{name}'")
    given = params if type(params) is dict else {}
    mocked = vm.state(HostMocks).answer(capability, operation, given)
    if mocked:
        return mocked[0]
    context = context_of(vm)
    reason = context.refuses_host_call(capability, operation)
    if reason is not None:
        raise CategorizedFault("tool_rejected", reason)
    perform, policy = _performed(vm, name), context.rules.commands.policy
    if policy is not None and name == EXEC:
        from harnpy.builtins.bridge.commands import governed  # most programs have no such policy

        perform = governed(vm, policy, perform, "host_call")
    return perform(given)


def _performed(vm: Vm, name: str) -> Callable[[Dict], Value]:
    """Return the operation as the host performs it, else the built-in one."""
    perform = vm.world.host.operations.get(name)
    if perform:
        return lambda params: answer(vm, name, perform, params)
    found = OPERATIONS.get(name)
    if found is None:
        raise Thrown(f"host_call: unsupported operation {name}")
    return lambda params: vm.tasks.awaited(found(vm, params))


@builtin("host_mock(capability: string, operation: string, result?: any, params?: dict) -> nil")
def host_mock(vm: Vm, capability: str, operation: str, result: Value, params: Value) -> None:
    """Make `host_call` return `result`, or follow `{result?, error?, params?}`.

    With `params` only calls that have these entries match.

    Example:
        host_mock("mail", "send", {error: "offline"})
        try { host_call("mail.send") } catch (e) { "failed" }  // "failed"
    """
    if not capability or not operation:
        raise Thrown("host_mock: capability and operation are required")
    vm.state(HostMocks).mocks.append(Mock(capability, operation, result, params))


@builtin("host_mock_calls() -> list")
def host_mock_calls(vm: Vm) -> list[dict[str, Any]]:
    """Return the calls that mocks handled, as `{capability, operation, params}`.

    Example:
        host_mock_clear()
        host_mock("mail", "send", true)
        host_call("mail.send", {to: "ada"})
        host_mock_calls()[0].params.to  // "ada"
    """
    return vm.state(HostMocks).calls


@builtin("host_mock_clear() -> nil")
def host_mock_clear(vm: Vm) -> None:
    """Forget mocks, calls and saved scopes.

    Example:
        host_mock("mail", "send")
        host_mock_clear()
        host_has("mail")  // false
    """
    vm.state(HostMocks).clear()


@builtin("host_mock_push_scope() -> nil")
def host_mock_push_scope(vm: Vm) -> None:
    """Save mocks and calls, and start without any.

    Example:
        host_mock_push_scope()
        host_mock("mail", "send", true)
        let sent = host_call("mail.send")
        host_mock_pop_scope()
        sent  // true
    """
    vm.state(HostMocks).push_scope()


@builtin("host_mock_pop_scope() -> nil")
def host_mock_pop_scope(vm: Vm) -> None:
    """Restore what `host_mock_push_scope` saved.

    Example:
        host_mock("mail", "send")
        host_mock_push_scope()
        let during = host_has("mail")
        host_mock_pop_scope()
        [during, host_has("mail")]  // [false, true]
    """
    vm.state(HostMocks).pop_scope()


@builtin("host_capabilities() -> dict")
def host_capabilities(vm: Vm) -> dict[str, Any]:
    """Return the available operations: `{capability: {description, ops, operations}}`, mocks included.

    Example:
        host_mock("project", "read")
        host_capabilities().project.ops  // ["read"]
    """
    return _manifest(vm)


@builtin("host_has(capability: string, operation?: string) -> bool")
def host_has(vm: Vm, capability: str, operation: str | None) -> bool:
    """Return true if the host has a capability, with that operation if one is named.

    Example:
        host_mock("project", "read")
        [host_has("project", "read"), host_has("project", "burn")]  // [true, false]
    """
    found = _manifest(vm).get(capability)
    return found is not None and (operation is None or operation in found["operations"])


@builtin("host_tool_list() -> list")
def host_tool_list(vm: Vm) -> list[dict[str, Any]]:
    """Return the host's tools; none without a host.

    Example: host_tool_list()  // []
    """
    bridge = vm.world.host.bridge
    return answer(vm, "host_tool_list", bridge.list) if bridge else []


@builtin("host_tool_call(name: string, args?: dict) -> any", guarded=True)
def host_tool_call(vm: Vm, name: str, args: Value) -> Value:
    """Run one of the host's tools.

    Example: try { host_tool_call("search", {query: "harn"}) } catch (e) { "no host" }  // "no host"
    """
    if not name:
        raise Thrown("host_tool_call: tool name is required")
    if vm.world.host.bridge is None:
        raise Thrown("host_tool_call: no host bridge is attached")
    call = vm.world.host.bridge.call
    return answer(vm, name, call, name, args if type(args) is dict else {})


def _manifest(vm: Vm) -> dict[str, Any]:
    described = {name: dict(operations) for name, operations in DESCRIPTIONS.items()}
    for name, perform in vm.world.host.operations.items():
        capability, _, operation = name.partition(".")
        text = (perform.__doc__ or "").strip().partition("\n")[0]
        described.setdefault(capability, {})[operation] = text or "Answered by the host."
    for mock in vm.state(HostMocks).mocks:
        described.setdefault(mock.capability, {}).setdefault(mock.operation, "Answered by a mock.")
    return {name: _capability(name, operations) for name, operations in described.items()}


def _capability(name: str, operations: dict[str, str]) -> dict[str, Any]:
    return {
        "description": CAPABILITIES.get(name, f"Operations of {name}."),
        "ops": list(operations),
        "operations": {operation: {"description": text} for operation, text in operations.items()},
    }
