"""What lint takes a name for is what the run takes it for: conformance programs, resolved. Spec: 02 §7."""

from __future__ import annotations

from harnpy import Vm
from harnpy.check.lint.uses import Binding, Uses
from harnpy.cli.testing.conformance import find_cases
from harnpy.syntax import ast
from harnpy.syntax.ast import bound_places, walk
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.parser import parse
from harnpy.vm.resolve import Resolution, Variable, entry_pipeline
from harnpy.vm.resolve.names import Resolver
from tests.conformance_plugin import ROOT
from tests.counts import COUNT


def _programs() -> list[tuple[str, ast.Program]]:
    cases = find_cases(ROOT)
    found = []
    for case in cases[:: COUNT.names_share]:
        try:
            found.append((case.name, parse(case.path.read_text(encoding="utf-8", errors="replace"))))
        except SyntaxFault:
            continue
    return found


def test_each_name_means_the_variable_that_the_resolver_binds_it_to() -> None:
    table = Vm().builtins
    resolver = Resolver(table.is_builtin, table.is_global)
    wrong, compared = [], 0
    for name, program in _programs():
        resolution = resolver.program(program, entry_pipeline(program))
        uses = Uses(program, resolution.enums)
        bindings = _by_declaration(uses)
        for node in walk(program):
            declaration = _declaration(resolution, node)
            # A pattern may have a name twice.
            same = bindings.get(declaration, []) if declaration else []
            if not same:
                continue
            compared += 1
            meaning = uses.meaning.get(id(node))
            if not any(one.used for one in same) or (meaning is not None and meaning not in same):
                wrong.append((name, node))
    assert wrong == []
    assert compared


def _by_declaration(uses: Uses) -> dict[tuple[int, str], list[Binding]]:
    """The bindings by the nodes that the resolver has them of."""
    found: dict[tuple[int, str], list[Binding]] = {}
    for binding in uses.bindings:
        node = binding.node
        pattern = node.target if isinstance(node, ast.Let) else getattr(node, "pattern", None)
        if isinstance(pattern, ast.Node) and any(
            binding.place is place for place, _ in bound_places(pattern)
        ):
            found.setdefault((id(pattern), binding.name), []).append(binding)
        else:
            found.setdefault((id(binding.place), binding.name), []).append(binding)
    return found


def _declaration(resolution: Resolution, node: ast.Node) -> tuple[int, str] | None:
    """Where the variable of a name or a call was declared."""
    reference = resolution.refs.get(id(node)) if isinstance(node, ast.Name | ast.Call) else None
    variable: Variable | None = reference.variable if reference else None
    while variable is not None and variable.captured_from is not None:
        variable = variable.captured_from
    return next((key for key, value in resolution.variables.items() if value is variable), None)
