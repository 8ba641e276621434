"""Which names of the files at hand others of them import: those are in use, whoever declares them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harnpy import Vm
from harnpy.syntax import ast
from harnpy.syntax.errors import SyntaxFault
from harnpy.syntax.parser import parse_cached
from harnpy.vm.modules.program_modules import Modules


def consumed_names(vm: Vm, programs: Mapping[Path, str]) -> dict[Path, set[str]]:
    """By the real paths of modules, the names that the ``programs``, texts by file, import one by one."""
    consumed: dict[Path, set[str]] = {}
    for file, source in programs.items():
        try:
            items = parse_cached(source).items
        except SyntaxFault:
            continue
        for node in items:
            if isinstance(node, ast.Import) and node.names is not None:
                module = vm.state(Modules).look(vm, node.path, str(file.absolute().parent))
                if module is not None:
                    consumed.setdefault(Path(module.name), set()).update(node.names)
    return consumed
