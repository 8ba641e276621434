"""The inputs of a REPL: each is a program that sees what the ones before it bound. Spec: 09 §5."""

from __future__ import annotations

from harnpy.vm.resolve.scopes import Declared, Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values.objects import Fn
    from harnpy.vm.vm import Vm

    Value = Any


class ReplSession:
    """Inputs that build on each other: each runs once, and what it binds stays (09 §5)."""

    def __init__(self, vm: Vm) -> None:
        self.vm = vm
        vm.file = "<repl>"
        # Functions of earlier inputs are to be seen when a later one asks for spans (04 §25).
        vm.traceable = True
        self.known = Declared()
        self.values: dict[str, Value] = {}
        self.impls: dict[str, dict[str, Fn]] = {}
        self.imported: set[str] = set()
        self.inputs = 0
        vm.start(lambda: None)

    def run(self, source: str, file: str | None = None) -> Value:
        """Run one input; the value of its last expression, else nil. A failed input binds nothing new."""
        self.inputs += 1
        known = self.known.copy()
        imports = self.vm.imports_of(source, None)
        name = file or f"<repl:{self.inputs}>"
        unit = self.vm.units.input_unit(source, name, known, self.vm.builtins, imports)
        if unit.warnings and self.vm.on_warnings is not None:
            self.vm.on_warnings(unit)
        bound = set(self.imported)
        linker = self.vm.linker(unit, bound) if imports else None
        # Functions of earlier inputs look names up in these very dicts: on failure they are put back.
        values = dict(self.values)
        impls = {struct: dict(methods) for struct, methods in self.impls.items()}
        try:
            main = unit.main(self.vm, self.impls, linker, self.values)
            value = self.vm.run(lambda: main(1))
        except BaseException:
            _restore(self.values, values)
            _restore(self.impls, impls)
            raise
        self.known = known
        self.imported = bound
        return value

    def bind(self, name: str, value: Value) -> None:
        """Bind ``name`` from outside, as a `let` would."""
        variable = self.known.names[name] = Variable(name, 0, False, "let")
        variable.keep_in_table()
        variable.opaque = True
        self.values[name] = value

    def names(self) -> list[str]:
        """The names bound so far."""
        return sorted(self.known.names)


def _restore(target: dict[str, Any], content: dict[str, Any]) -> None:
    target.clear()
    target.update(content)
