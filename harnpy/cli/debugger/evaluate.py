"""Harn code in a call of a stopped program: it sees what the call sees. Spec: 09 §15.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.cli.show import error_text
from harnpy.syntax.errors import SourceFault
from harnpy.vm.errors import FAILURES, Leaving, VmError
from harnpy.vm.resolve.scopes import Declared, Variable
from harnpy.vm.run.backtrace import finish

if TYPE_CHECKING:
    from harnpy.cli.debugger.names import Names
    from harnpy.vm.walk.activation import Activation

    Value = Any

_FILE = "<expression>"


class EvaluationError(Exception):
    """The code could not be evaluated; the message says why."""


def evaluate(a: Activation, names: Names, source: str) -> Value:
    """The value of ``source`` where ``a`` is; what it assigns to variables, they keep.

    Raises EvaluationError.
    """
    try:
        return _evaluated(a, names, source)
    except FAILURES as error:
        found = error if isinstance(error, VmError) else finish(error)
        raise EvaluationError(error_text.text(found)) from None
    except SourceFault as fault:
        raise EvaluationError(error_text.text(fault)) from None
    except Leaving:
        raise EvaluationError("the expression would end the program") from None


def _evaluated(a: Activation, names: Names, source: str) -> Value:
    vm, walker = a.walker.vm, a.walker
    imports = vm.imports_of(source, a.unit.directory)
    unit = vm.units.input_unit(source, _FILE, _declared(a, names), vm.builtins, imports)
    unit.module, unit.directory = a.unit.module, a.unit.directory
    before = {name: binding.value for name, binding in names.items()}
    table = dict(before)
    observer, vm.observer = vm.observer, None
    try:
        main = unit.main(vm, walker.impls, vm.linker(unit, set()), table)
    finally:
        vm.observer = observer
    try:
        return main(a.depth + 1)
    finally:
        for name, binding in names.items():
            if table[name] is not before[name]:
                binding.assign(table[name])


def _declared(a: Activation, names: Names) -> Declared:
    """The names and types that the code sees, as if inputs of a REPL had declared them."""
    resolution, declared = a.walker.resolution, Declared()
    declared.structs, declared.enums = dict(resolution.structs), dict(resolution.enums)
    declared.interfaces, declared.aliases = set(resolution.interfaces), dict(resolution.aliases)
    for name, binding in names.items():
        variable = declared.names[name] = Variable(name, 0, binding.variable.mutable, "let")
        variable.keep_in_table()
        variable.opaque = True
        variable.struct = binding.variable.struct
    return declared
