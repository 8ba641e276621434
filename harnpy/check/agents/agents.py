"""The agent-aware checks, as the checker calls them. Spec: 03 §16."""

from __future__ import annotations

from harnpy.check.agents import registries, sessions
from harnpy.check.agents.literals import DEPTH, place_of, value_of, written
from harnpy.check.agents.modules import check_import
from harnpy.check.agents.secrets import check_text
from harnpy.check.findings import Place
from harnpy.check.knowledge import GRAPH_FIELD, UNKNOWN_PROVIDER
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit, Fix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.check.agents.literals import Lookup
    from harnpy.check.findings import Findings
    from harnpy.check.knowledge import Knowledge, Problem


class Agents:
    """The checks of one file. ``any_provider``: it may make providers known, or answer in their place."""

    def __init__(self, knowledge: Knowledge, findings: Findings, any_provider: bool = False) -> None:
        self._knowledge = knowledge
        self._findings = findings
        self._any_provider = any_provider

    def imported(self, item: ast.Import) -> None:
        """Check an import by itself."""
        check_import(item, self._knowledge, self._findings)

    def items(self, items: Sequence[ast.Node]) -> None:
        """Check what takes several top-level items: they are one block, too."""
        self._statements(items, False)

    def item(self, item: ast.Node) -> None:
        """Check a top-level item by itself: literal secrets, sessions that are used after their end."""
        waiting = [(item, False)]
        while waiting:
            node, handled = waiting.pop()
            if type(node) is ast.Str:
                check_text(node, self._findings)
            elif type(node) is ast.Block:
                self._statements(node.statements, handled)
            for child in node.children():
                waiting.append((child, handled or (type(node) is ast.Try and child is node.body)))

    def _statements(self, statements: Sequence[ast.Node], handled: bool) -> None:
        sessions.check_block(statements, self._knowledge, self._findings, handled)
        registries.check_block(statements, self._findings)

    def call_of_module(self, module: str, node: ast.Call, lookup: Lookup, handled: bool = False) -> None:
        """Check a call of a function of a `std/…` module that passes its arguments on to a builtin."""
        found = self._knowledge.forwarded(module, node.name)
        if found is not None:
            function, places = found
            given = _arguments(node)
            arguments = [
                ast.Nil(node.start, node.end) if place is None else given[place]
                for place in places
                if place is None or place < len(given)
            ]
            self._judge(function, arguments, lookup, handled)

    def call(self, node: ast.Call | ast.MethodCall, lookup: Lookup, handled: bool = False) -> None:
        """Check a call of a builtin, by its name or as `namespace.name(…)`.

        ``handled``: the program may catch what it throws (a `try` around it, a closure that others call), so
        nothing is said of what it would throw.
        """
        self._judge(_function(node), _arguments(node), lookup, handled)

    def _judge(self, function: str, arguments: list[ast.Node], lookup: Lookup, handled: bool) -> None:
        if not any(type(argument) in _WRITTEN for argument in arguments):
            return
        passed = [self._passed_on(argument, lookup) for argument in arguments]
        values = [value_of(found, lookup) for found in passed]
        for problem in self._knowledge.problems(function, values):
            place = problem.path[0]
            assert type(place) is int
            # The builtin in between has said it of its argument.
            is_said = problem.code == GRAPH_FIELD and passed[place] is not arguments[place]
            is_handled = handled and (problem.severity == "error" or problem.code == UNKNOWN_PROVIDER)
            is_answered = problem.code == UNKNOWN_PROVIDER and self._any_provider
            if not (is_said or is_handled or is_answered):
                self._report(problem, arguments[place], passed[place], lookup)

    def _passed_on(self, argument: ast.Node, lookup: Lookup) -> ast.Node:
        """Return what an argument is made of, where a builtin only puts it into another form."""
        # A chain of names may lead back to itself: `let g = workflow_graph(g)`.
        for _ in range(DEPTH):
            call = written(argument, lookup)
            place = self._knowledge.passed_on(call.name) if type(call) is ast.Call else None
            if place is None or place >= len(call.args):  # type: ignore[attr-defined]
                return argument
            argument = call.args[place]  # type: ignore[attr-defined]
        return argument

    def _report(self, problem: Problem, argument: ast.Node, passed: ast.Node, lookup: Lookup) -> None:
        found, name = place_of(passed, problem.path[1:], lookup, problem.of_key)
        if passed is not argument and not _contains(argument, found):
            # It stands elsewhere, perhaps in another item of the file.
            name = argument
        fix = _renamed(found, problem.near) if problem.near and name is None else None
        found = problem.node or (found.key if type(found) is ast.DictEntry else found)
        near = problem.near
        say = self._findings.error if problem.severity == "error" else self._findings.warn
        say(
            problem.code,
            name or found,
            problem.message,
            help=f"did you mean `{near}`?" if near else None,
            places=[Place("written here", found.start, found.end)] if name else (),
            fix=fix,
        )


def _contains(node: ast.Node, inner: ast.Node) -> bool:
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each is inner:
            return True
        waiting.extend(each.children())
    return False


def _renamed(entry: ast.Node, name: str) -> Fix | None:
    """The fix that writes ``name`` in the place of an entry's key; None for one that may be in quotes.

    The tree doesn't say it of a key, but then there is less between it and its value.
    """
    if type(entry) is not ast.DictEntry or type(entry.key) is not ast.Str:
        return None
    end = entry.start + len(entry.key.value)
    return Fix([Edit(entry.start, end, name)], safe=False) if entry.value.start - end <= len(": ") else None


#: Arguments that may be known; of a call without one of them nothing can be said.
_WRITTEN = frozenset([ast.Dict, ast.List, ast.Name, ast.Str])


def _function(node: ast.Call | ast.MethodCall) -> str:
    if type(node) is ast.Call:
        return node.name
    assert type(node) is ast.MethodCall
    assert type(node.object) is ast.Name
    return f"{node.object.name}.{node.name}"


def _arguments(node: ast.Call | ast.MethodCall) -> list[ast.Node]:
    """Return the arguments before the first that is spread."""
    arguments: list[ast.Node] = []
    for argument in node.args:
        if type(argument) is ast.Spread:
            break
        arguments.append(argument)
    return arguments
