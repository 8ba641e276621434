"""Hooks around the tools of agents. Spec: 07 §8.4."""

from __future__ import annotations

from harnpy.agent.rules.hooks import Hooks
from harnpy.builtins import settings_of
from harnpy.builtins.bridge.option_tables import check_options
from harnpy.reading.lenient import Options
from harnpy.vm.declare.builtin import builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


def hooks_of(vm: Vm) -> Hooks:
    """Return the program's hooks; the embedder's come first."""
    return vm.state(Hooks, lambda: Hooks(settings_of(vm).hooks))


@builtin("register_tool_hook(config: dict) -> nil", family="workflows")
def register_tool_hook(vm: Vm, config: Value) -> None:
    """Deny tools, or shorten their results: `{pattern = "*", deny?: string, max_output?: int}`.

    `deny` is the reason why agents may not call the tools that match. Spec: 07 §8.4.

    Example:
        register_tool_hook({pattern: "delete_*", deny: "nothing is deleted here"})  // nil
    """
    check_options(vm, "register_tool_hook", config)
    options = Options(config)
    hooks_of(vm).add_tool_rule(
        options.string("pattern") or "*", options.string("deny"), options.integer("max_output")
    )


@builtin("clear_tool_hooks() -> nil", family="workflows")
def clear_tool_hooks(vm: Vm) -> None:
    """Remove the hooks of the program and its manifest that run before or after tools.

    Example:
        clear_tool_hooks()  // nil
    """
    hooks_of(vm).clear_tool_hooks()
