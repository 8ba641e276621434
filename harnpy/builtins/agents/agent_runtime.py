"""The runtime that a Vm gives to agents: its models, sessions, tasks, hooks and people."""

from __future__ import annotations

from contextlib import contextmanager

from harnpy.agent.context import NOTHING
from harnpy.agent.runtime import Runtime, category_of_fault, failed_by_itself
from harnpy.builtins import settings_of
from harnpy.builtins.agents.tool_runtime import bind, bound_registry, hooks_of
from harnpy.builtins.bridge.agent_tasks import AgentTasks
from harnpy.builtins.bridge.contexts import context_of
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.builtins.live_models import models_of
from harnpy.llm.native_tools import is_registry
from harnpy.vm.errors import Interrupted, Thrown, VmError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from harnpy.agent.rules.gate import Ask
    from harnpy.agent.rules.hooks import Hooks
    from harnpy.agent.workers import Workers
    from harnpy.formats.dicts import Dict
    from harnpy.mcp.servers import Servers
    from harnpy.session.registry import SessionRegistry
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm


def runtime_of(vm: Vm) -> Runtime:
    return vm.state(Runtime, lambda: _new_runtime(vm))


def _new_runtime(vm: Vm) -> Runtime:
    return runtime_on(vm, sessions_of(vm), hooks_of(vm))


def runtime_on(vm: Vm, sessions: SessionRegistry, hooks: Hooks) -> Runtime:
    """Return what agents get whose loops run on these sessions, with these hooks."""
    return Runtime(
        models_of(vm),
        sessions,
        AgentTasks(vm),
        hooks=hooks,
        context=lambda: context_of(vm),
        home=lambda: vm.source_dir,
        ask=_asker(vm),
        found_skills=settings_of(vm).found_skills or (),
        tools_bound=lambda options: tools_bound(vm, options),
        is_failure=_is_failure,
        category=_category,
        workers=lambda: _workers(vm),
        servers=lambda: _servers(vm),
        calling=settings_of(vm).calling,
    )


def _is_failure(error: BaseException) -> bool:
    """Return true for an error of a program, or one that says what it did wrong."""
    return failed_by_itself(error) or (isinstance(error, VmError) and not isinstance(error, Interrupted))


def _category(error: BaseException) -> str:
    """Return the category of an error as `catch` would see it."""
    from harnpy.builtins.language.errors import category_of

    return category_of(error.value) if isinstance(error, Thrown) else category_of_fault(error)


def _workers(vm: Vm) -> Workers:
    from harnpy.builtins.agents.worker_runtime import workers_of  # workflows come with it

    return workers_of(vm, runtime_of(vm))


def _servers(vm: Vm) -> Servers:
    from harnpy.builtins.net.mcp import servers_of  # asyncio comes with it

    return servers_of(vm)


def _asker(vm: Vm) -> Ask | None:
    """Approval of tool calls by the host's person: a function that answers why not; None without one."""
    if vm.world.people.ask is None:
        return None
    from harnpy.agent.people import APPROVAL, HitlError
    from harnpy.builtins.agents.hitl_requests import ask

    def approve(tool: str, arguments: Dict) -> str | None:
        payload = {"action": f"call tool {tool}", "args": arguments, "quorum": 1, "reviewers": []}
        try:
            ask(vm, runtime_of(vm), APPROVAL, payload, tool=tool)
        except HitlError as error:
            return str(error)
        return None

    return approve


def tools_bound(vm: Vm, options: Value) -> AbstractContextManager[None]:
    """Let the registry of a loop's options, if they have one, be the bound one inside the block."""
    registry = options.get("tools") if type(options) is dict else None
    return _bound(vm, registry) if is_registry(registry) else NOTHING


@contextmanager
def _bound(vm: Vm, registry: Value) -> Iterator[None]:
    outer = bound_registry(vm)
    bind(vm, registry)
    try:
        yield
    finally:
        bind(vm, outer)


def with_bound_tools(vm: Vm, options: Value) -> Value:
    """Return the options with the caller's bound registry, if they name no tools."""
    given = {} if options is None else options
    if type(given) is not dict or given.get("tools") is not None:
        return options
    return {**given, "tools": bound_registry(vm)}
