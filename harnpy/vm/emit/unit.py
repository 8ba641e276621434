"""What the functions of one unit share while its text is written.

The unit notes what its text refers to outside itself, and collects the makers of its functions.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit import protocol
from harnpy.vm.emit.operand import SLOT, Operand
from harnpy.vm.resolve.kinds import Kinds
from harnpy.vm.resolve.tail_calls import CALLS, calls_out
from harnpy.vm.resolve.tree import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Set
    from typing import Any

    from harnpy.vm.declare.table import BuiltinTable
    from harnpy.vm.emit.locations import Names
    from harnpy.vm.emit.writer import Line
    from harnpy.vm.resolve.scopes import Resolution, Variable

    #: Writes a node of one class; the first argument is the function that it stands in.
    Writer = Callable[..., Any]

#: Nodes whose evaluation can assign to a local of the function they stand in …
_ASSIGNING = (ast.If, ast.Match, ast.Try, ast.Retry, ast.Deadline, ast.Select)
#: … and those that are functions of their own.
_FUNCTIONS = (ast.Closure, ast.FnExpr, ast.Spawn)


class Writers:
    """Which function writes which node.

    ``expressions`` return Python text; ``forms`` (blocks with a value) put it into a destination;
    ``statements`` have no value.
    """

    def __init__(
        self,
        expressions: Mapping[type[ast.Node], Writer],
        forms: Mapping[type[ast.Node], Writer],
        statements: Mapping[type[ast.Node], Writer],
    ) -> None:
        self.expressions = expressions
        self.forms = forms
        self.statements = statements


class UnitDraft:
    """One resolved program being written against a table of builtins."""

    def __init__(
        self,
        program: ast.Program,
        resolution: Resolution,
        table: BuiltinTable,
        writers: Writers,
        walked: Set[int],
    ) -> None:
        self.program = program
        self.resolution = resolution
        self.table = table
        self.writers = writers
        self.kinds = Kinds(resolution)
        self.walked = walked
        """Functions that Python cannot express, by the identity of their nodes: they are walked."""
        self.start: ast.Node = ast.Program(0, 0, ())
        """The beginning of the file: what lines that belong to no node stand for."""
        self.makers: list[tuple[ast.Node, list[Line]]] = []
        """The functions written so far, each with the lines of its maker."""
        self.names: dict[str, Names] = {"<module>": ("<module>", "<module>")}
        """What generated functions are called."""
        self.called: set[tuple[str, str]] = set()
        self.valued: set[tuple[str, str]] = set()
        self.globals: set[tuple[str, str]] = set()
        self.methods: set[tuple[str, str, int]] = set()
        self._functions = 0
        self._calling: dict[int, bool] = {}
        self._assigning: dict[int, bool] = {}

    # --- what the text refers to ------------------------------------------------------------------

    def builtin_function(self, name: str) -> str:
        python = protocol.builtin_function(name)
        self.called.add((python, name))
        return python

    def builtin_value(self, name: str) -> Operand:
        python = protocol.builtin_value(name)
        self.valued.add((python, name))
        return Operand(python, SLOT)

    def global_value(self, name: str) -> Operand:
        python = protocol.global_value(name)
        self.globals.add((python, name))
        return Operand(python, SLOT)

    def method_table(self, name: str, count: int) -> str:
        python = protocol.method_table(name, count)
        self.methods.add((python, name, count))
        return python

    # --- functions --------------------------------------------------------------------------------

    def number_function(self, shown: str) -> int:
        """A number for one more function, which backtraces call ``shown``."""
        self._functions += 1
        number = self._functions
        self.names[f"f{number}"] = shown, shown
        # Profiles tell functions on one line apart by their names.
        self.names[f"f{number}_items"] = f"{shown}.<items>", shown
        self.names[f"make{number}"] = f"<maker of {shown}>", "<closure>"
        return number

    def calls_out(self, fn: ast.FnDecl) -> bool:
        """Whether running ``fn`` may call user code."""
        if id(fn) not in self._calling:
            self._calling[id(fn)] = calls_out(fn)
        return self._calling[id(fn)]

    def assigns_locals(self, node: ast.Node) -> bool:
        """Whether evaluating ``node`` can assign to a variable of the function around it."""
        known = self._assigning.get(id(node))
        if known is None:
            below = () if isinstance(node, _FUNCTIONS) else node.children()
            # A list, not a generator: that would recurse through C.
            inside = [self.assigns_locals(child) for child in below]
            known = isinstance(node, _ASSIGNING) or True in inside
            self._assigning[id(node)] = known
        return known

    def may_change(self, variable: Variable, node: ast.Node) -> bool:
        """Whether evaluating ``node`` can assign to ``variable``; what a module shares, any call can."""
        if variable.shared and any(isinstance(part, CALLS) for part in walk(node)):
            return True
        return self.assigns_locals(node)
