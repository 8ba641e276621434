"""Units that are walked: the counterpart of `harnpy.vm.compile`, function by function."""

from __future__ import annotations

from harnpy.vm.resolve.resolved import resolved_input, resolved_module, resolved_program
from harnpy.vm.unit import LANGUAGE, Unit
from harnpy.vm.verdict import EarlierInputs, warnings_of
from harnpy.vm.walk.program import main_of
from harnpy.vm.walk.tables import EVALUATORS
from harnpy.vm.walk.walker import Walker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.declare.table import BuiltinTable
    from harnpy.vm.modules.linker import Linker
    from harnpy.vm.modules.offers import Imports
    from harnpy.vm.resolve.resolved import Resolved
    from harnpy.vm.resolve.scopes import Declared
    from harnpy.vm.values.objects import Fn
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
