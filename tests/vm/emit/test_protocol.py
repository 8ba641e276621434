"""The names that generated text may use, and what a unit gets to run with, are the same."""

from __future__ import annotations

import ast
import re
import symtable
from pathlib import Path
from symtable import SymbolTable

import pytest

from harnpy import Vm
from harnpy.vm import emit
from harnpy.vm.compile import program_unit
from harnpy.vm.front_end import resolved_program
from harnpy.vm.modules import Linker
from harnpy.vm.unit import CompiledUnit
from harnpy.vm.walk.program import walking_helpers

EMIT = Path(emit.__file__).parent
GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.py"))
#: What Python's tools look for, and what running the text adds.
OF_PYTHON = {"__name__", "__loader__", "__builtins__", "main"}


def globals_of(source: str) -> dict[str, object]:
    vm = Vm()
    unit = program_unit(source, "x", None, vm.builtins)
    assert isinstance(unit, CompiledUnit)
    return unit.main(vm, {}, Linker(vm, unit, set()), {}).__globals__


def test_a_unit_runs_with_what_the_protocol_says() -> None:
    assert set(globals_of("nil")) - OF_PYTHON - emit.OF_PYTHON == emit.GIVEN | emit.OF_IMPORTS


def test_every_helper_is_where_the_protocol_says() -> None:
    vm = Vm()
    unit = program_unit("nil", "x", None, vm.builtins)
    assert isinstance(unit, CompiledUnit)
    unit.helpers = sorted(emit.HELPERS.items())
    given = unit.main(vm, {}, None, {}).__globals__
    assert emit.HELPERS.keys() <= given.keys()


def test_functions_that_are_walked_have_their_helpers() -> None:
    vm = Vm()
    unit = program_unit("nil", "x", None, vm.builtins)
    assert isinstance(unit, CompiledUnit)
    tree = resolved_program("nil", "x", None, vm.builtins, None)
    assert walking_helpers(tree, vm, unit, {}, None, {}).keys() == emit.OF_THE_WALKER


def global_names(table: SymbolTable) -> set[str]:
    """The names that a text reads and doesn't bind."""
    found = {s.get_name() for s in table.get_symbols() if s.is_referenced() and s.is_global()}
    if table.get_type() == "module":
        found = {s.get_name() for s in table.get_symbols() if s.is_referenced() and not s.is_assigned()}
        found -= {child.get_name() for child in table.get_children()}
    for child in table.get_children():
        found |= global_names(child)
    return found


def local_names(table: SymbolTable) -> set[str]:
    """The variables of the functions in a text."""
    found: set[str] = set()
    for child in table.get_children():
        found |= {s.get_name() for s in child.get_symbols() if s.is_local()} | local_names(child)
    return found


def bound_in_comprehensions(text: str) -> set[str]:
    """The names that their patterns bind: apart, or from Python 3.12 on in the function around."""
    loops = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.comprehension)]
    names = [name for loop in loops for name in ast.walk(loop.target) if isinstance(name, ast.Name)]
    return {".0", *(name.id for name in names)}


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_the_text_uses_no_names_but_those_of_the_protocol(golden: Path) -> None:
    text = golden.read_text(encoding="utf-8")
    table = symtable.symtable(text, golden.name, "exec")
    assert {name for name in global_names(table) if not emit.knows(name)} == set()
    variables = local_names(table) - bound_in_comprehensions(text)
    assert {name for name in variables if not emit.is_slot(name)} == set()


def test_the_emitter_uses_all_names_of_the_protocol() -> None:
    modules = [*EMIT.rglob("*.py"), EMIT.parent / "declare.py"]
    written = "\n".join(path.read_text("utf-8") for path in modules if path.name != "__init__.py")
    words = set(re.findall(r"\w+", written))
    given = emit.HELPERS.keys() | emit.GIVEN | emit.OF_IMPORTS | emit.OF_THE_WALKER
    # Backtraces recognise the frames of generated functions by their unit.
    assert given - words == {"UNIT"}
