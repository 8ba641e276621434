"""No module imports another that imports it, directly or through others, lazy imports included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Everything in a running program belongs to a `Vm`, so the rooms of the VM may name it in annotations.
NAMES_ITS_OWNER = "harnpy.vm"

Imports = dict[str, set[str]]


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, ast.Module]:
    """All of them; parsed by the tests, not whenever tests are collected."""
    return {dotted(path): ast.parse(path.read_text("utf-8")) for path in (ROOT / "harnpy").rglob("*.py")}


def statements(node: ast.AST, types: bool) -> Iterator[ast.stmt]:
    """The statements below ``node``; those under `if TYPE_CHECKING` only with ``types``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if types or not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)):
            yield from statements(child, types)


def imported(module: str, types: bool) -> set[str]:
    """The modules of harnpy that ``module`` imports, anywhere in its text."""
    found = set()
    for statement in statements(modules()[module], types):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            for alias in statement.names:
                whole = f"{statement.module}.{alias.name}"
                found.add(whole if whole in modules() else statement.module)
        elif isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
    return (found & modules().keys()) - {module}


def circle(imports: Imports) -> list[str]:
    """The modules of one circle; none when there is no circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


def test_no_module_imports_itself_through_others() -> None:
    assert circle({module: imported(module, types=False) for module in modules()}) == []


def test_outside_the_vm_annotations_make_no_circle_either() -> None:
    imports = {module: imported(module, types=not module.startswith(NAMES_ITS_OWNER)) for module in modules()}
    assert circle(imports) == []
