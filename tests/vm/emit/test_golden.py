"""The text of characteristic functions, whole: what a change of the emitter changes shows as a diff.

Beside each `tests/vm/golden/NAME.harn` is the Python that it becomes. With ``HARNPY_UPDATE_GOLDEN=1`` in the
environment, the test writes those files anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.vm.emit.program import draft_of, unit_lines
from harnpy.vm.emit.source_map import render
from harnpy.vm.front_end import resolved_module, resolved_program

GOLDEN = Path(__file__).parents[1] / "golden"
PROGRAMS = sorted(path.stem for path in GOLDEN.glob("*.harn"))
#: Compiled as other files import it.
MODULE = "a_module"


def generated(name: str) -> str:
    vm, source = Vm(), (GOLDEN / f"{name}.harn").read_text(encoding="utf-8")
    table, imports = vm.builtins, vm.imports_of(source, str(GOLDEN))
    if name == MODULE:
        tree = resolved_module(source, name, table, imports)
    else:
        tree = resolved_program(source, name, None, table, imports)
    return render(unit_lines(draft_of(tree.program, tree.resolution, table), tree.role, tree.entry))[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_is_the_golden_one(name: str) -> None:
    text, golden = generated(name), GOLDEN / f"{name}.py"
    compile(text, name, "exec")
    if os.environ.get("HARNPY_UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_every_golden_text_has_its_program() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.py")) == PROGRAMS
