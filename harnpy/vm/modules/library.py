"""A file as a library: its functions and tools are for the embedder to call. Spec: 06 §4, 09 §11.4.

It is loaded like a module, so that its variables are shared by all calls, and checked like a program.
"""

from __future__ import annotations

from harnpy.vm.modules.linker import Linker
from harnpy.vm.modules.offers import Imports
from harnpy.vm.modules.paths import Place
from harnpy.vm.modules.program_modules import LOADED, Module
from harnpy.vm.modules.surface import surface_of
from harnpy.vm.unit import LANGUAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax import ast
    from harnpy.vm.vm import Vm


class Library:
    """The text of one file, before and after it is loaded. ``file`` is what messages call it."""

    def __init__(self, vm: Vm, source: str, file: str, path: str) -> None:
        """Raises SourceFault for what a run of the file would be refused for."""
        self._vm = vm
        self.module = Module(Place(file, path), source, surface_of(source))
        vm.file, vm.source_dir = file, self.module.place.directory
        vm.notice(source)
        self.imports = vm.imports_of(source, vm.source_dir) or Imports()
        vm.units.program_unit(source, file, None, vm.builtins, LANGUAGE, self.imports)
        self._unit = vm.units.module_unit(source, file, vm.builtins, self.imports)
        self._unit.directory = vm.source_dir

    def load(self) -> Module:
        """Do its imports, make its variables and functions. Raises VmError; to be called in a run."""
        linker = Linker(self._vm, self._unit, set(), self.module)
        self._unit.main(self._vm, {}, linker, {})(1)
        self.module.stage = LOADED
        return self.module

    def types(self) -> dict[str, ast.Node]:
        """The types that names stand for in the file, its own and imported ones."""
        from harnpy.vm.resolve.resolved import resolved_module

        file, table = self._unit.file, self._vm.builtins
        tree = resolved_module(self.module.source, file, table, self.imports)
        return dict(tree.resolution.aliases)
