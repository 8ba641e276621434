"""Calling the host: `host_call`, its mocks, the host's tools. Spec: 04 §24, 02 §27."""

from __future__ import annotations

from harnpy.builtins.bridge.contexts import context_of
from harnpy.builtins.language.host import host_operations
from harnpy.builtins.language.host.host_mocks import HostMocks, Mock
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import CategorizedFault, Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("host_call(name: string, params?: dict) -> any", family="host")
def host_call(vm: Vm, name: str, params: Value) -> Value:
    """Call `"capability.operation"`: handled by the latest matching mock, else by the host.

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
    if policy is not None and name == host_operations.EXEC:
        from harnpy.builtins.bridge.commands import governed  # most programs have no such policy

        perform = governed(vm, policy, perform, "host_call")
    return perform(given)


def _performed(vm: Vm, name: str) -> Callable[[Dict], Value]:
    """Return the operation as the host performs it, else the built-in one."""
    perform = vm.world.host.operations.get(name)
    if perform:
        return lambda params: vm.tasks.awaited(perform(params))
    found = host_operations.OPERATIONS.get(name)
    if found is None:
        raise Thrown(f"host_call: unsupported operation {name}")
    return lambda params: vm.tasks.awaited(found(vm, params))


@builtin(
    "host_mock(capability: string, operation: string, result?: any, params?: dict) -> nil", family="host"
)
def host_mock(vm: Vm, capability: str, operation: str, result: Value, params: Value) -> None:
    """Make `host_call` return `result`, or do as `{result?, error?, params?}` says.

    With `params` only calls that have these entries match.

    Example:
        host_mock("mail", "send", {error: "offline"})
        try { host_call("mail.send") } catch (e) { "failed" }  // "failed"
    """
    if not capability or not operation:
        raise Thrown("host_mock: capability and operation are required")
    vm.state(HostMocks).mocks.append(Mock(capability, operation, result, params))


@builtin("host_mock_calls() -> list", family="host")
def host_mock_calls(vm: Vm) -> list[dict[str, Any]]:
    """The calls that mocks handled, as `{capability, operation, params}`.

    Example:
        host_mock_clear()
        host_mock("mail", "send", true)
        host_call("mail.send", {to: "ada"})
        host_mock_calls()[0].params.to  // "ada"
    """
    return vm.state(HostMocks).calls


@builtin("host_mock_clear() -> nil", family="host")
def host_mock_clear(vm: Vm) -> None:
    """Forget mocks, calls and saved scopes.

    Example:
        host_mock("mail", "send")
        host_mock_clear()
        host_has("mail")  // false
    """
    vm.state(HostMocks).clear()


@builtin("host_mock_push_scope() -> nil", family="host")
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


@builtin("host_mock_pop_scope() -> nil", family="host")
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


@builtin("host_capabilities() -> dict", family="host")
def host_capabilities(vm: Vm) -> dict[str, Any]:
    """The available operations: `{capability: {description, ops, operations}}`, mocks included.

    Example:
        host_mock("project", "read")
        host_capabilities().project.ops  // ["read"]
    """
    return _manifest(vm)


@builtin("host_has(capability: string, operation?: string) -> bool", family="host")
def host_has(vm: Vm, capability: str, operation: str | None) -> bool:
    """Whether there is such a capability, with that operation if one is named.

    Example:
        host_mock("project", "read")
        [host_has("project", "read"), host_has("project", "burn")]  // [true, false]
    """
    found = _manifest(vm).get(capability)
    return found is not None and (operation is None or operation in found["operations"])


@builtin("host_tool_list() -> list", family="host")
def host_tool_list(vm: Vm) -> list[dict[str, Any]]:
    """The host's tools; none without a host.

    Example:
        host_tool_list()  // []
    """
    return vm.world.host.bridge.list() if vm.world.host.bridge else []


@builtin("host_tool_call(name: string, args?: dict) -> any", family="host", guarded=True)
def host_tool_call(vm: Vm, name: str, args: Value) -> Value:
    """Run one of the host's tools.

    Example:
        try { host_tool_call("search", {query: "harn"}) } catch (e) { "no host" }  // "no host"
    """
    if not name:
        raise Thrown("host_tool_call: tool name is required")
    if vm.world.host.bridge is None:
        raise Thrown("host_tool_call: no host bridge is attached")
    return vm.tasks.awaited(vm.world.host.bridge.call(name, args if type(args) is dict else {}))


def _manifest(vm: Vm) -> dict[str, Any]:
    described = {name: dict(operations) for name, operations in host_operations.DESCRIPTIONS.items()}
    for name, perform in vm.world.host.operations.items():
        capability, _, operation = name.partition(".")
        text = (perform.__doc__ or "").strip().partition("\n")[0]
        described.setdefault(capability, {})[operation] = text or "Answered by the host."
    for mock in vm.state(HostMocks).mocks:
        described.setdefault(mock.capability, {}).setdefault(mock.operation, "Answered by a mock.")
    return {name: _capability(name, operations) for name, operations in described.items()}


def _capability(name: str, operations: dict[str, str]) -> dict[str, Any]:
    return {
        "description": host_operations.CAPABILITIES.get(name, f"Operations of {name}."),
        "ops": list(operations),
        "operations": {operation: {"description": text} for operation, text in operations.items()},
    }
