"""The functions of a compiled unit that Python cannot express: they are walked."""

from __future__ import annotations

from harnpy.vm.walk.functions import body_with
from harnpy.vm.walk.program import main_of
from harnpy.vm.walk.tables import EVALUATORS
from harnpy.vm.walk.walker import Walker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.modules.linker import Linker
    from harnpy.vm.resolve.resolved import Resolved
    from harnpy.vm.unit import Unit
    from harnpy.vm.values.objects import Fn
    from harnpy.vm.vm import Vm
    from harnpy.vm.walk.functions import Body

    Value = Any


def walking_helpers(
    vm: Vm,
    unit: Unit,
    tree: Resolved,
    impls: dict[str, dict[str, Fn]],
    linker: Linker | None,
    table: dict[str, Value],
) -> dict[str, Any]:
    """What generated code calls for the functions of its unit that Python cannot express."""
    walker = Walker(vm, unit, tree, EVALUATORS, impls, linker, table)
    functions = list(tree.resolution.functions.values())

    def walked(index: int, shown: str, captured: tuple[Value, ...]) -> Body:
        function = functions[index]
        params = getattr(function.node, "params", ())
        own = dict(zip(function.captures.values(), captured, strict=True))
        return body_with(walker, function, shown, params, own)

    return {"walked": walked, "walked_main": main_of(walker)}
