"""Sessions that are used after their end: `agent_session_close(id)`, and then `id` again. Spec: 08 §1.

Only what follows in the same block is looked at, and only as far as nothing may have opened it again.
"""

from __future__ import annotations

from itertools import chain, islice

from harnpy.check.findings import Place
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harnpy.check.findings import Findings
    from harnpy.check.knowledge import Knowledge

_CLOSE = "agent_session_close"
_PREFIX = "agent_session_"
#: They take an id that means nothing, or none.
_NEED_NONE = frozenset(
    _PREFIX + name for name in ("ancestry", "current_id", "exists", "open", "seed_from_jsonl", "snapshot")
)
#: These builtins may open sessions, as agents do, or call what may.
_MAY_OPEN = ("agent", "daemon_", "llm_", "resume_agent", "spawn_agent", "sub_agent", "workflow")
#: What runs later, elsewhere or again, and what handles failures itself.
_UNSURE = (ast.Closure, ast.FnExpr, ast.MethodCall, ast.Pipe, ast.Try, ast.TryStar, ast.Retry, ast.Spawn,
           ast.Parallel, ast.Select, ast.Defer, ast.Yield, ast.Emit)  # fmt: skip
#: What is declared runs when it is called.
_DECLARED = (ast.FnDecl, ast.ToolDecl, ast.ImplDecl, ast.Pipeline, ast.Override, ast.SkillDecl, ast.EvalPack)
#: After them nothing follows.
_ENDS = (ast.Return, ast.Throw, ast.Break, ast.Continue)


def check_block(
    statements: Sequence[ast.Node], knowledge: Knowledge, findings: Findings, handled: bool
) -> None:
    """Report uses of a session after the statement that closes it, unless what they throw is ``handled``."""
    if handled:
        return
    for at, statement in enumerate(statements):
        if type(statement) is ast.Call and statement.name == _CLOSE and statement.args:
            closed = statement.args[0]
            if type(closed) in (ast.Name, ast.Str):
                _check_after(closed, statement, islice(statements, at + 1, None), knowledge, findings)


def _check_after(
    closed: ast.Node,
    close: ast.Call,
    statements: Iterable[ast.Node],
    knowledge: Knowledge,
    findings: Findings,
) -> None:
    for node in chain.from_iterable(map(_in_order, statements)):
        if type(node) is ast.Call:
            first = node.args[0] if node.args else None
            if needs_session(node.name) and first == closed:
                shown = f"'{closed.value}'" if type(closed) is ast.Str else f"in `{closed.name}`"  # type: ignore[attr-defined]
                findings.error(
                    "closed-session",
                    node,
                    f"{node.name}: unknown session id {shown}",
                    help="it was closed: close it last, or open it again",
                    places=[Place("closed here", close.start, close.end)],
                )
                return
            if not knowledge.is_builtin(node.name) or (
                node.name.startswith(_MAY_OPEN) and not _leaves_alone(node.name)
            ):
                return
        elif isinstance(node, (*_UNSURE, *_ENDS)) or _binds(node, closed):
            return


def needs_session(name: str) -> bool:
    return name.startswith(_PREFIX) and name not in _NEED_NONE


def _leaves_alone(name: str) -> bool:
    """Whether a builtin for sessions opens none."""
    return name.startswith(_PREFIX) and name not in (
        f"{_PREFIX}open",
        f"{_PREFIX}fork",
        f"{_PREFIX}fork_at",
        f"{_PREFIX}seed_from_jsonl",
    )


def _binds(node: ast.Node, name: ast.Node) -> bool:
    """Whether a statement gives another value to the name of the session."""
    return type(name) is ast.Name and (
        (type(node) is ast.NamePattern and node.name == name.name)
        or (type(node) is ast.Assign and node.target == name)
        or type(node) in (ast.DictPattern, ast.ListPattern)
    )


def _in_order(statement: ast.Node) -> Iterator[ast.Node]:
    """Yield all nodes of a statement as they are evaluated: arguments before the call."""
    waiting: list[tuple[ast.Node, bool]] = [(statement, False)]
    while waiting:
        node, seen = waiting.pop()
        if seen or isinstance(node, _UNSURE):
            yield node
            continue
        if isinstance(node, _DECLARED):
            continue
        waiting.append((node, True))
        waiting.extend((child, False) for child in reversed(list(node.children())))
