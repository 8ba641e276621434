"""The evaluator that defines the language: it walks the tree, one small function a node.

Read it to learn what a construct does. Everything that isn't the tree is shared with the compiler (`emit`):
resolved names, values, operators, calls, tasks, builtins. `program` lists which function evaluates which
node; `activation` is one run of a Harn function, which each of them gets first. Here are units that are
walked, the counterpart of `harnpy.vm.compile`, function by function. May use `syntax`, `resolve`, `values`
and `run`; nothing in this package is optimised, and nothing should be.
"""

from __future__ import annotations

from functools import partial

from harnpy.vm import front_end
from harnpy.vm.unit import Unit
from harnpy.vm.walk.activation import Walker
from harnpy.vm.walk.program import EVALUATORS, main_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.declare import BuiltinTable
    from harnpy.vm.front_end import Resolved
    from harnpy.vm.modules import Linker
    from harnpy.vm.values import Fn, Value
    from harnpy.vm.vm import Vm


class WalkedUnit(Unit):
    """A resolved tree."""

    __slots__ = ("tree",)

    def __init__(self, tree: Resolved, table: BuiltinTable, source: str, file: str) -> None:
        super().__init__(file, source)
        self.tree = tree

    def main(
        self, vm: Vm, impls: dict[str, dict[str, Fn]], linker: Linker | None, table: dict[str, Value]
    ) -> Callable[[int], Value]:
        return main_of(Walker(vm, self, self.tree, EVALUATORS, impls, linker, table))


program_unit = partial(front_end.program_unit, WalkedUnit)
module_unit = partial(front_end.module_unit, WalkedUnit)
input_unit = partial(front_end.input_unit, WalkedUnit)
