"""A function does the same whether the program declares it or imports it. Spec: 06 §4.

Conformance programs that can be the body of a function are run as one: declared, and imported.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.cli.testing.sandbox import Outcome, run_program
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import SourceFault
from harnpy.syntax.parser import parse_cached
from harnpy.vm.compile import compile_program
from harnpy.vm.unit import LANGUAGE
from tests.counts import COUNT
from tests.support import ROOT

AREAS = ("assignment", "control", "errors", "functions", "generators", "match", "names", "structs", "tasks")
SUITE = ROOT / "conformance"


def as_function(program: Path) -> str | None:
    """The program as a function on its lines; None for one that is refused as a function's body."""
    source = f"fn whole_program() {{ {program.read_text(encoding='utf-8')}\n}}"
    try:
        compile_program(source, str(program), None, Vm().builtins, checks=LANGUAGE, imports=None)
    except SourceFault:
        return None
    return source if all(isinstance(item, ast.FnDecl) for item in parse_cached(source).items) else None


def ending(outcome: Outcome) -> tuple[str, str | None, int]:
    """How it ended; of a module nothing is warned of."""
    lines = outcome.output.splitlines(keepends=True)
    output = "".join(line for line in lines if not line.startswith("warning: "))
    return output, outcome.error, outcome.exit_code


@pytest.mark.parametrize("area", AREAS)
def test_programs_as_functions(area: str, tmp_path: Path) -> None:
    module, importer, whole = (tmp_path / f"{name}.harn" for name in ("module", "importer", "whole"))
    importer.write_text('import { whole_program } from "module"\nwhole_program()\n', encoding="utf-8")
    tried = 0
    for program in sorted((SUITE / area).rglob("*.harn"))[:: COUNT.imported_share]:
        source = as_function(program)
        if source is None:
            continue
        module.write_text(source, encoding="utf-8")
        whole.write_text(f"{source}\nwhole_program()\n", encoding="utf-8")
        declared = run_program(whole)
        if declared.unjudged:
            continue
        imported = run_program(importer)
        assert ending(imported) == ending(declared), program
        tried += 1
    assert tried > 3, f"{tried} programs of {area} could be tried"
