"""Doing the imports of one file while it runs, and running the modules that they ask for. Spec: 06 §4-§7."""

from __future__ import annotations

from harnpy.syntax.errors import CompileFault, LexFault, SourceFault
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.modules.program_modules import LOADED, LOADING, NEW, Modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Never

    from harnpy.vm.modules.offers import Imports
    from harnpy.vm.modules.program_modules import Module, Names
    from harnpy.vm.unit import Unit
    from harnpy.vm.values.objects import Fn
    from harnpy.vm.vm import Vm

    Value = Any
    #: Of each name that a file expects of an import: the parameters, and whether the last takes the rest.
    Wanted = dict[str, tuple[tuple[str, ...], bool]]


class Linker:
    """The imports of one file while it runs: what they bind and, in a module, what it offers itself.

    ``bound`` holds the names that imports have bound in the file.
    """

    def __init__(self, vm: Vm, unit: Unit, bound: set[str], module: Module | None = None) -> None:
        self.vm = vm
        self.unit = unit
        self.bound = bound
        self.module = module
        self._passed_on: dict[str, Module] = {}

    def helpers(self) -> dict[str, Any]:
        """What generated code calls, by the names it uses."""
        return {
            "bound": self.bound,
            "bring": self.bring,
            "bring_again": self.bring_again,
            "publish": self.publish,
            "pass_on": self.pass_on,
        }

    def bring(self, path: str, names: Names, wanted: Wanted) -> list[Fn]:
        """Do ``import path``; return the functions ``wanted``. Raises RuntimeFault."""
        module, given = self._taken(path, names)
        for name in given:
            if name in self.bound:
                _collide(name, module)
        self.bound.update(given)
        self._passed_on[path] = module
        return self._in_order(given, wanted)

    def bring_again(self, path: str, names: Names, wanted: Wanted) -> list[Fn]:
        """The same for an import in a block, whose names go when the block does."""
        return self._in_order(self._taken(path, names)[1], wanted)

    def _taken(self, path: str, names: Names) -> tuple[Module, dict[str, Fn]]:
        modules = self.vm.state(Modules)
        module = modules.open(self.vm, path, self.unit.directory or self.vm.unguarded.files.cwd())
        spans = self.vm.spans
        if spans is None or not spans.on or module.stage != NEW:
            return module, self._given(module, names) if load(self.vm, module) else {}
        span = spans.begin("import", path)
        try:
            load(self.vm, module)
        finally:
            spans.end(span)
        return module, self._given(module, names)

    def _in_order(self, given: dict[str, Fn], wanted: Wanted) -> list[Fn]:
        """The functions ``wanted``; one that an import circle left out fails when it is called."""
        shell = self.vm.calls.shell
        return [given.get(name) or shell(name, *params) for name, params in wanted.items()]

    def _given(self, module: Module, names: Names) -> dict[str, Fn]:
        if names is None:
            return module.exports
        given = {}
        for name in names:
            function = module.functions.get(name) or module.exports.get(name)
            if function is None:
                raise RuntimeFault(f"Import error: '{name}' is not defined in {module.name}")
            if name in given:
                _collide(name, module)
            given[name] = function
        return given

    def publish(self, functions: dict[str, Fn], tools: dict[str, Value] | None = None) -> None:
        """Set the functions, tools and exports of the module that runs."""
        assert self.module
        self.module.tools = tools or {}
        surface = self.module.surface
        self.module.functions = functions
        exported = functions if surface.is_open else surface.public
        self.module.exports = {name: functions[name] for name in exported}

    def pass_on(self, path: str, names: Names) -> None:
        """Do the `pub` of a `pub import`. Raises RuntimeFault."""
        source = self._passed_on[path]
        assert self.module
        if not source.is_loaded:
            return
        for name in source.exports if names is None else names:
            if name not in source.exports:
                raise RuntimeFault(f"Re-export error: '{name}' is not exported by '{path}'")
            if name in self.module.functions:
                where = f"is defined here and also re-exported from '{path}'"
                raise RuntimeFault(f"Re-export collision: '{name}' {where}")
            self.module.exports[name] = source.exports[name]


def _collide(name: str, module: Module) -> Never:
    hint = f'Use selective imports to disambiguate: import {{ {name} }} from "..."'
    raise RuntimeFault(f"Import collision: '{name}' is already defined when importing {module.name}. {hint}")


# --- running a module -----------------------------------------------------------------------------------


def load(vm: Vm, module: Module) -> bool:
    """Run a module, unless it was; False while it is being loaded: the import is part of a circle."""
    if module.stage == NEW:
        module.stage = LOADING
        modules = vm.state(Modules)
        try:
            _run(vm, module, modules.brought(vm, module.surface.requests, module.place.directory))
        except BaseException:
            # A REPL goes on: its next import is to see the file as it is then.
            modules.forget(module)
            raise
        module.stage = LOADED
    return module.is_loaded


def _run(vm: Vm, module: Module, brought: Imports) -> None:
    unit = _compiled(vm, module, brought)
    unit.directory = None if module.place.bundled else module.place.directory
    unit.module = module.name
    traceable = vm.traceable
    # Functions of bundled modules are to programs what builtins are: no spans of their own (04 §25).
    vm.traceable = traceable and not module.place.bundled
    try:
        unit.main(vm, {}, Linker(vm, unit, set(), module), {})(1)
    finally:
        vm.traceable = vm.traceable or traceable


def _compiled(vm: Vm, module: Module, brought: Imports) -> Unit:
    try:
        unit: Unit = vm.units.module_unit(module.source, module.name, vm.builtins, brought)
        return unit
    except SourceFault as fault:
        where = f" in {module.name}" if module.place.bundled else ""
        raise RuntimeFault(f"Import {_stage(fault)} error{where}: {fault.message}") from None


def _stage(fault: SourceFault) -> str:
    """Which stage of compiling a module failed, in the words of 06 §6."""
    if not isinstance(fault, CompileFault):
        return "lex" if isinstance(fault, LexFault) else "parse"
    return "init compile" if _in_initialiser(fault) else "compile"


def _in_initialiser(fault: CompileFault) -> bool:
    from harnpy.syntax import ast
    from harnpy.syntax.parser import parse_cached
    from harnpy.syntax.span import Lines

    lines = Lines(fault.source)
    lets = [item for item in parse_cached(fault.source).items if isinstance(item, ast.Let)]
    return any(lines.line(let.start) <= fault.line <= lines.line(let.end) for let in lets)
