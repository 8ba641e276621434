"""`tool_surface_validate`. Spec: 07 §4.7."""

from __future__ import annotations

from harnpy.agent.tools.surface import errors, prompt_texts, validate
from harnpy.builtins.agents.tools.binding import bound_registry
from harnpy.llm.native_tools import is_registry
from harnpy.vm.declare.builtin import builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("tool_surface_validate(surface?: dict, options?: dict) -> dict", family="tools")
def tool_surface_validate(vm: Vm, surface: Value, options: Value) -> dict[str, Any]:
    """Find problems that a model would have with its tools: `{valid, diagnostics}`.

    `surface`: `{tools, native_tools?, policy?, approval_policy?, tool_search?, system?, prompt?, prompts?}`
    or a registry, by default the bound one. `options` supplies missing keys.
    Spec: 07 §4.7.

    Example:
        tool_surface_validate(tool_registry()).valid  // true
    """
    given = options if type(options) is dict else {}
    own = surface if type(surface) is dict and not is_registry(surface) else {"tools": surface}
    if own.get("tools") is None:
        own = {key: value for key, value in own.items() if key != "tools"}
    merged = {**given, **own, "system": None, "prompt": None}
    merged["prompts"] = prompt_texts(own) + prompt_texts(given)
    if surface is None and "tools" not in merged:
        merged["tools"] = bound_registry(vm)
    diagnostics = validate(merged)
    return {"valid": not errors(diagnostics), "diagnostics": diagnostics}
