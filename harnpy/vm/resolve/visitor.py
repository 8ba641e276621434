"""The walk over a tree, in the order of execution: what each node declares and uses."""

from __future__ import annotations

from harnpy.vm.resolve.lookup import Lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from harnpy.syntax import ast
    from harnpy.vm.modules.offers import Imports
    from harnpy.vm.resolve.scopes import Variable

    #: By the class of node, what is done with one; a node of another class only has its children visited.
    Visits = Mapping[type[ast.Node], Callable[[Any, Any], None]]


class Visitor(Lookup):
    """``imports`` are what the imports of the program bring."""

    def __init__(
        self,
        visits: Visits,
        is_builtin: Callable[[str], bool],
        is_global: Callable[[str], bool],
        repl_names: dict[str, Variable] | None,
        imports: Imports | None,
        in_module: bool,
    ) -> None:
        super().__init__(is_builtin, is_global, repl_names, in_module)
        self.imports = imports
        self._visits = visits

    def visit(self, node: ast.Node) -> None:
        visit = self._visits.get(type(node))
        if visit:
            visit(self, node)
        else:
            self.children(node)

    def children(self, node: ast.Node) -> None:
        for child in node.children():
            self.visit(child)

    def optional(self, node: ast.Node | None) -> None:
        if node is not None:
            self.visit(node)

    def statements(self, statements: Sequence[ast.Node]) -> None:
        self.predeclare(statements)
        for statement in statements:
            self.visit(statement)
