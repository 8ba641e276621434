"""The points of a file that coverage counts, and the tree with a probe at each of them.

A *statement* counts when it begins; declarations and imports are none. A *branch* is one outcome of a
decision: the parts of an `if … else if … else`, also the `else` that isn't written; the arms of a `match`;
a loop that is entered, and one that isn't; a `guard` that holds, and one that doesn't. A *function* counts
when it is entered. Probes are calls of one builtin. They change nothing else: not the value of a block, not
what is a tail call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harnpy.syntax import ast
from harnpy.syntax.span import Lines
from harnpy.vm.resolve.preparation import probe

#: What is no statement: it declares, and does nothing when its turn comes.
_DECLARATIONS = (
    ast.Import,
    ast.Pipeline,
    ast.Override,
    ast.FnDecl,
    ast.ToolDecl,
    ast.SkillDecl,
    ast.EvalPack,
    ast.StructDecl,
    ast.ImplDecl,
    ast.EnumDecl,
    ast.InterfaceDecl,
    ast.TypeDecl,
)


@dataclass(frozen=True, slots=True)
class Branch:
    """One outcome of the decision on a line; those of one decision share its number."""

    line: int
    decision: int
    outcome: str
    point: int


@dataclass(slots=True)
class Points:
    """What can be counted in a file; a point is an index into the counts."""

    statements: list[tuple[int, int]] = field(default_factory=list)
    """The line of each statement, and its point."""
    branches: list[Branch] = field(default_factory=list)
    functions: list[tuple[int, str, int]] = field(default_factory=list)
    """The line and the name of each function, and its point."""
    count: int = 0


def probed(
    program: ast.Program, source: str, key: str, left_out: Callable[[ast.Pipeline], bool]
) -> tuple[ast.Program, Points]:
    """The program with probes, and what they count.

    A probe reports ``key`` and its point. Pipelines that are ``left_out`` get none.
    """
    prober = _Prober(source, key, left_out)
    changed = ast.Program(program.start, program.end, prober.statements(program.items, top=True))
    return changed, prober.points


class _Prober:
    """Puts probes into one tree. The nodes that stay as they are are shared with the original."""

    def __init__(self, source: str, key: str, left_out: Callable[[ast.Pipeline], bool]) -> None:
        self.points = Points()
        self._lines = Lines(source)
        self._key = key
        self._left_out = left_out
        self._decisions = 0

    # --- probes -----------------------------------------------------------------------------------

    def _point(self) -> int:
        self.points.count += 1
        return self.points.count - 1

    def _probe(self, start: int, point: int) -> ast.Node:
        return probe(start, ast.Str(start, start, self._key, True), ast.Int(start, start, point))

    def _decision(self) -> int:
        self._decisions += 1
        return self._decisions

    def _branch(self, at: ast.Node, decision: int, outcome: str) -> ast.Node:
        point = self._point()
        self.points.branches.append(Branch(self._lines.line(at.start), decision, outcome, point))
        return self._probe(at.start, point)

    def _function(self, node: ast.Node, name: str) -> ast.Node:
        point = self._point()
        self.points.functions.append((self._lines.line(node.start), name, point))
        return self._probe(node.start, point)

    # --- the tree ---------------------------------------------------------------------------------

    def statements(self, nodes: Sequence[ast.Node], top: bool = False) -> tuple[ast.Node, ...]:
        found: list[ast.Node] = []
        for node in nodes:
            if not isinstance(node, _DECLARATIONS):
                point = self._point()
                self.points.statements.append((self._lines.line(node.start), point))
                reached = self._probe(node.start, point)
                # Before a pipeline runs, only the `let`s of its file do (02 §10.2).
                found.append(_ignored(reached) if top and isinstance(node, ast.Let) else reached)
            match node:
                case ast.For() | ast.While():
                    found += self._loop(node)
                case ast.Guard():
                    found += self._guard(node)
                case _:
                    found.append(self.node(node))
        return tuple(found)

    def node(self, node: ast.Node) -> ast.Node:
        """The node with probes in its blocks."""
        match node:
            case ast.Block():
                return self._block(node)
            case ast.If():
                return self._if(node, self._decision())
            case ast.Match():
                decision = self._decision()
                arms = tuple(self._arm(arm, decision, i) for i, arm in enumerate(node.arms, 1))
                return ast.Match(node.start, node.end, self.node(node.value), arms)
            case ast.Pipeline() if self._left_out(node):
                return node
            case ast.EvalPack():
                return self._rebuilt(node, body=self.statements(node.body))
            case ast.Pipeline(name=name) | ast.FnDecl(name=name) | ast.ToolDecl(name=name):
                return self._rebuilt(node, body=self._block(node.body, self._function(node, name)))
        return self._rebuilt(node)

    def _rebuilt(self, node: ast.Node, **given: Any) -> ast.Node:
        """The node made of its parts with probes, those ``given`` ready; itself if nothing changed."""
        before = [getattr(node, name) for name in node.__slots__]
        after = [
            given[name] if name in given else self._part(value)
            for name, value in zip(node.__slots__, before, strict=True)
        ]
        same = all(one is other for one, other in zip(before, after, strict=True))
        return node if same else type(node)(node.start, node.end, *after)

    def _part(self, value: Any) -> Any:
        if isinstance(value, ast.Node):
            return self.node(value)
        if isinstance(value, tuple):
            parts = tuple(self._part(item) for item in value)
            return value if all(one is other for one, other in zip(value, parts, strict=True)) else parts
        return value

    def _block(self, block: ast.Block, *first: ast.Node) -> ast.Block:
        return ast.Block(block.start, block.end, (*first, *self.statements(block.statements)))

    def _if(self, node: ast.If, decision: int, word: str = "if") -> ast.If:
        cond = self.node(node.cond)
        then = self._block(node.then, self._branch(node.then, decision, word))
        other: ast.Node
        match node.otherwise:
            case ast.If():
                other = self._if(node.otherwise, decision, "else if")
            case ast.Block():
                other = self._block(node.otherwise, self._branch(node.otherwise, decision, "else"))
            case _:
                other = ast.Block(node.start, node.start, (self._branch(node, decision, "no else"),))
        return ast.If(node.start, node.end, cond, then, other)

    def _arm(self, arm: ast.Arm, decision: int, number: int) -> ast.Arm:
        guard = arm.guard and self.node(arm.guard)
        body = self._block(arm.body, self._branch(arm, decision, f"arm {number}"))
        return ast.Arm(arm.start, arm.end, arm.patterns, guard, body)

    def _loop(self, node: ast.For | ast.While) -> list[ast.Node]:
        """A loop, with a variable around it that tells whether it was entered."""
        decision, start = self._decision(), node.start
        # Not ASCII, so that no program can have it.
        entered = ast.Name(start, start, f"entered·{decision}")
        note = ast.Assign(start, start, entered, "=", ast.Bool(start, start, True))
        first = self._branch(node, decision, "entered")
        body = self._block(node.body, first, note)
        if isinstance(node, ast.For):
            loop: ast.Node = ast.For(start, node.end, node.pattern, self.node(node.iterable), body)
        else:
            loop = ast.While(start, node.end, self.node(node.cond), body)
        never = self._branch(node, decision, "not entered")
        pattern = ast.NamePattern(start, start, entered.name)
        return [
            ast.Let(start, start, pattern, None, ast.Bool(start, start, False), True),
            loop,
            ast.If(
                start,
                start,
                entered,
                ast.Block(start, start, ()),
                ast.Block(start, start, (never,)),
            ),
        ]

    def _guard(self, node: ast.Guard) -> list[ast.Node]:
        decision = self._decision()
        failed = self._branch(node.otherwise, decision, "else")
        guard = ast.Guard(node.start, node.end, self.node(node.cond), self._block(node.otherwise, failed))
        return [guard, self._branch(node, decision, "holds")]


def _ignored(value: ast.Node) -> ast.Let:
    """``let _ = value``."""
    return ast.Let(
        value.start, value.start, ast.NamePattern(value.start, value.start, "_"), None, value, False
    )
