"""The evaluator that defines the language: it walks the tree, one small function a node.

Read it to learn what a construct does. Everything that isn't the tree is shared with the compiler (`emit`):
resolved names, values, operators, calls, tasks, builtins. `program` lists which function evaluates which
node; `activation` is one run of a Harn function, which each of them gets first. Here are units that are
walked, the counterpart of `harnpy.vm.compile`, function by function. May use `syntax`, `resolve`, `values`
and `run`; nothing in this package is optimised, and nothing should be.
"""

from __future__ import annotations

from harnpy.vm.front_end import EarlierInputs, resolved_input, resolved_module, resolved_program, warnings_of
from harnpy.vm.unit import LANGUAGE, Unit
from harnpy.vm.walk.activation import Walker
from harnpy.vm.walk.program import EVALUATORS, main_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.declare import BuiltinTable
    from harnpy.vm.front_end import Resolved
    from harnpy.vm.imports import Imports
    from harnpy.vm.modules import Linker
    from harnpy.vm.resolve import Declared
    from harnpy.vm.values import Fn
    from harnpy.vm.vm import Vm

    Value = Any


class WalkedUnit(Unit):
    """A resolved tree."""

    __slots__ = ("tree",)

    def __init__(self, file: str, source: str, tree: Resolved) -> None:
        super().__init__(file, source)
        self.tree = tree

    def main(
        self, vm: Vm, impls: dict[str, dict[str, Fn]], linker: Linker | None, table: dict[str, Value]
    ) -> Callable[[int], Value]:
        return main_of(Walker(vm, self, self.tree, EVALUATORS, impls, linker, table))


def program_unit(
    source: str,
    file: str,
    entry: str | None,
    table: BuiltinTable,
    checks: str = LANGUAGE,
    imports: Imports | None = None,
) -> WalkedUnit:
    unit = WalkedUnit(file, source, resolved_program(source, file, entry, table, imports))
    if checks:
        unit.warnings = warnings_of(unit.tree, source, file, table, imports, checks)
    return unit


def module_unit(source: str, file: str, table: BuiltinTable, imports: Imports) -> WalkedUnit:
    return WalkedUnit(file, source, resolved_module(source, file, table, imports))


def input_unit(
    source: str, file: str, declared: Declared, table: BuiltinTable, imports: Imports | None = None
) -> WalkedUnit:
    earlier = EarlierInputs(declared, imports)
    unit = WalkedUnit(file, source, resolved_input(source, file, declared, table, imports))
    unit.warnings = warnings_of(unit.tree, source, file, table, earlier, LANGUAGE)
    return unit
