"""What the static checks say of a program that is about to run. Spec: 03 §1.

Asked when the program is compiled; what they warn of is kept with the compiled unit, so that a warm start
checks nothing and still warns.
"""

from __future__ import annotations

from harnpy.vm.resolve.resolved import parsed
from harnpy.vm.unit import ALL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from harnpy.check.findings import Finding
    from harnpy.check.knowledge import Imported
    from harnpy.syntax import ast
    from harnpy.vm.declare.table import BuiltinTable
    from harnpy.vm.modules.offers import Imports
    from harnpy.vm.resolve.resolved import Resolved
    from harnpy.vm.resolve.scopes import Declared


def warnings_of(
    tree: Resolved, source: str, file: str, table: BuiltinTable, imports: Imported | None, checks: str
) -> list[Finding]:
    """What to warn of before the program runs. Raises SourceFault, with everything found, for an error.

    ``checks`` is ALL, or LANGUAGE to be silent on what the language itself leaves to the run.
    """
    from harnpy.check.checker import check_program

    # A tool may have put probes into the tree that runs.
    program = tree.program if table.preparation is None else parsed(source, file)
    found = check_program(program, source, table.knowledge(), imports)
    if not found:
        return []
    from harnpy.check.allow import is_own, silenced

    found = [finding for finding in silenced(source, found) if checks == ALL or not is_own(finding.code)]
    error = next((finding for finding in found if finding.severity == "error"), None)
    if error is not None:
        raise _fault(error, found, source, file)
    # What is our own advice belongs to `harnpy check`: it is no part of what a program prints (09 §3.3).
    return [finding for finding in found if not is_own(finding.code)]


def _fault(error: Finding, found: Sequence[Finding], source: str, file: str) -> Exception:
    from harnpy.syntax.errors import SourceFault
    from harnpy.syntax.span import Lines

    lines = Lines(source)
    return SourceFault(error.message, [finding.diagnostic(lines) for finding in found], source, file)


class EarlierInputs:
    """What an input of a REPL sees of the ones before it, and of its own imports.

    It is never ``complete``: a name that nobody has declared yet may be by the time a function is called.
    """

    def __init__(self, declared: Declared, imports: Imports | None) -> None:
        self._imports = imports
        self.complete = self.whole = False
        self.functions = imports.functions if imports else set()
        self.names = {*declared.names, *(imports.names if imports else ())}
        self.types: dict[str, ast.Node] = {**declared.structs, **(imports.types if imports else {})}

    def bound_by(self, node: ast.Import) -> Collection[str]:
        return self._imports.bound_by(node) if self._imports else ()

    def missing(self, node: ast.Import) -> None:
        """An import that fails says so when it runs."""
