"""The agent-aware checks, as the checker calls them. Spec: 03 §16."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.check.findings import Findings
    from harnpy.check.knowledge import Knowledge
    from harnpy.syntax import ast

    #: What a name stands for, if it is bound once, by a `let`, to what is returned.
    Lookup = Callable[[str], ast.Node | None]


class Agents:
    """The checks of one file."""

    def __init__(self, knowledge: Knowledge, findings: Findings) -> None:
        self._knowledge = knowledge
        self._findings = findings

    def program(self, program: ast.Program) -> None:
        """Check the imports."""

    def item(self, item: ast.Node) -> None:
        """Check a top-level item by itself: literal secrets, sessions that are used after their end."""

    def call(self, node: ast.Call | ast.MethodCall, lookup: Lookup, handled: bool = False) -> None:
        """Check a call of a builtin, by its name or as `namespace.name(…)`.

        ``handled``: the program may catch what it throws (a `try` around it, a closure given to a function
        of the program), so nothing is said that would be an error.
        """
