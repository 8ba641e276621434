"""All that a builtin would say of its arguments."""

from __future__ import annotations

from harnpy.builtins.bridge.judging import models, options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from harnpy.check.knowledge import Problem
    from harnpy.vm.vm import Vm


def problems(vm: Vm, function: str, arguments: Sequence[Any]) -> Iterator[Problem]:
    """What the builtin ``function`` refuses; arguments as in `harnpy.check.knowledge.Knowledge.problems`."""
    if function not in options.RETURN_ERRORS:
        yield from options.problems(vm, function, arguments)
        yield from models.problems(vm, function, arguments)
    if function.startswith("workflow_"):
        from harnpy.builtins.bridge.judging import graphs

        yield from graphs.problems(function, arguments)
    if function.startswith("__session_"):
        from harnpy.builtins.bridge.judging import durable

        yield from durable.problems(vm, function, arguments)
    from harnpy.builtins.bridge.judging import tools

    if function == "tool_define":
        yield from tools.defined(arguments)
    elif function in models.CALLS:
        yield from tools.listed(function, arguments)
