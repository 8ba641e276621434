"""Units: what can run, and the globals that generated code runs with.

A compiled unit knows which helpers its code calls by name, and only their modules are loaded: a program that
adds no strings and spawns no tasks starts without either. Modules of builtins are loaded by the first call.
"""

from __future__ import annotations

import os.path
import sys
from _imp import _fix_co_filename  # type: ignore[attr-defined]  # what imports of .pyc files use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType
    from typing import Any

    from harnpy.check.findings import Finding
    from harnpy.syntax.diagnostic import Lines
    from harnpy.vm.modules import Linker
    from harnpy.vm.values import Fn, Value
    from harnpy.vm.vm import Vm


#: Which static checks a program must pass before it runs: those of the language, or harnpy's own as well
#: (03 §16). "" stands for none.
LANGUAGE, ALL = "language", "all"

#: As `types` has it, which a warm start does without.
_FunctionType: Any = type(lambda: None)
#: Python's own that generated code uses most: found faster among the globals than behind them.
_OF_PYTHON = {each.__name__: each for each in (type, int, str, list, dict, float, bool, len, range)}

#: Modules whose helpers have the scheduler as their first parameter.
_OF_TASKS = ("run.tasks", "run.locks", "run.channels")


class Unit:
    """A program, module or input that can run.

    ``directory`` is where the source file lies, None when there is none; ``module`` names the unit when it
    was imported. ``warnings`` are what the static checks say of a program.
    """

    __slots__ = ("_lines", "directory", "file", "module", "source", "warnings")

    def __init__(self, file: str, source: str) -> None:
        self.file = file
        self.source = source
        self.directory: str | None = None
        self.module: str | None = None
        self.warnings: Sequence[Finding] = ()
        self._lines: Lines | None = None

    @property
    def lines(self) -> Lines:
        if self._lines is None:
            from harnpy.syntax.diagnostic import Lines

            self._lines = Lines(self.source)
        return self._lines

    @property
    def path(self) -> str:
        """The full path of the source file; a name like ``<stdin>`` as it is."""
        if self.directory is None or self.file.startswith("<"):
            return self.file
        return os.path.join(self.directory, os.path.basename(self.file))

    def get_source(self, name: str) -> str:
        """The source text: to Python's `linecache`, which asks for it, the unit is a loader."""
        return self.source

    def main(
        self, vm: Vm, impls: dict[str, dict[str, Fn]], linker: Linker | None, table: dict[str, Value]
    ) -> Callable[[int], Value]:
        """Return what runs the unit, called with the depth of calls.

        ``impls`` collects its `impl` methods, ``linker`` does its imports, ``table`` holds the variables that
        its functions share with one another or with other inputs.
        """
        raise NotImplementedError


class CompiledUnit(Unit):
    """Generated code and what belongs to it.

    ``codes`` are its functions, by name, with the positions of the Harn source
    (`harnpy.vm.emit.source_map`). ``called`` and ``valued``
    (builtins, with the modules that declare them), ``globals``, ``methods``, ``helpers``: what the code
    refers to outside itself, each after the Python name that it has there. ``walked`` returns the helpers for
    functions that are walked, when there are any; such a unit isn't cached.
    """

    __slots__ = ("called", "codes", "globals", "helpers", "methods", "valued", "walked")

    def __init__(
        self,
        file: str,
        source: str,
        codes: dict[str, CodeType],
        called: list[tuple[str, str, str]],
        valued: list[tuple[str, str, str]],
        globals: list[tuple[str, str]],
        methods: list[tuple[str, str, int]],
        helpers: list[tuple[str, str]],
    ) -> None:
        super().__init__(file, source)
        self.codes = codes
        self.called = called
        self.valued = valued
        self.globals = globals
        self.methods = methods
        self.helpers = helpers
        self.walked: Callable[..., dict[str, Any]] | None = None

    def main(
        self, vm: Vm, impls: dict[str, dict[str, Fn]], linker: Linker | None, table: dict[str, Value]
    ) -> Callable[[int], Value]:
        space = _namespace(vm, self, impls, linker)
        space["m"] = table
        if self.walked is not None:
            space.update(self.walked(vm, self, impls, linker, table))
        for name, code in self.codes.items():
            # The same text may have been compiled, and kept, under another name.
            _fix_co_filename(code, self.path)
            space[name] = _FunctionType(code, space)
        main: Callable[[int], Value] = space.get("main") or space["walked_main"]
        return main


def _namespace(
    vm: Vm, unit: CompiledUnit, impls: dict[str, dict[str, Fn]], linker: Linker | None = None
) -> dict[str, Any]:
    """The globals for one unit; ``impls`` collects its `impl` methods, ``linker`` does its imports."""
    space: dict[str, Any] = {"vm": vm, "UNIT": unit, "getrefcount": sys.getrefcount, **_OF_PYTHON}
    # Where Python's tools find the source text of what is no file, or no longer.
    space["__name__"], space["__loader__"] = unit.file, unit
    for python, place in unit.helpers:
        space[python] = _helper(vm, python, place)
    for python, name, module in unit.called:
        _bind_when_called(vm, space, python, name, module)
    for python, name, module in unit.valued:
        space[python] = vm.builtins.bound(name, module)
    for python, name in unit.globals:
        space[python] = vm.global_value(name)
    if unit.methods:
        space.update(_method_tables(unit, impls))
    if linker:
        space.update(linker.helpers())
    space["impls"] = impls
    space["implement"] = lambda struct, name, fn: impls.setdefault(struct, {}).update({name: fn})
    space["call_method"] = _spread_method_call(vm, impls)
    return space


def _bind_when_called(vm: Vm, space: dict[str, Any], python: str, name: str, module: str) -> None:
    """Load a builtin's module at its first call: a library names more builtins than a run needs."""

    def first(vm: Vm, *args: Any) -> Any:
        function = space[python] = vm.builtins.direct(name, module)
        return function(vm, *args)

    space[python] = first


def _helper(vm: Vm, name: str, place: str) -> Any:
    """The helper ``name``; `harnpy.vm.emit` lists the places."""
    if place == "vm" or place.startswith("vm."):
        owner: Any = vm
        for part in place.split(".")[1:]:
            owner = getattr(owner, part)
        return getattr(owner, name)
    module = f"harnpy.vm.{place}"
    __import__(module)
    helper = getattr(sys.modules[module], name)
    return helper.__get__(vm.tasks) if place in _OF_TASKS else helper


def _method_tables(unit: CompiledUnit, impls: dict[str, dict[str, Fn]]) -> dict[str, Any]:
    from harnpy.vm.run.methods import MethodTable

    return {python: MethodTable(name, count, impls) for python, name, count in unit.methods}


def _spread_method_call(vm: Vm, impls: dict[str, dict[str, Fn]]) -> Callable[..., Any]:
    def call(depth: int, receiver: Any, name: str, args: list[Any]) -> Any:
        from harnpy.vm.run.methods import call_method

        return call_method(vm, impls, depth, receiver, name, args)

    return call
