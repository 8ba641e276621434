"""Sessions that are used after their end: `agent_session_close(id)`, and then `id` again. Spec: 08 §1.

Only what follows in the same block is looked at, and only as far as nothing may have opened it again.
"""

from __future__ import annotations

from harnpy.check.findings import Place
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.check.findings import Findings
    from harnpy.check.knowledge import Knowledge

    #: A variable by its name, or an id as text.
    _Id = tuple[type[ast.Name] | type[ast.Str], str]

_CLOSE = "agent_session_close"
_PREFIX = "agent_session_"
#: They take an id that means nothing, or none.
_NEED_NONE = frozenset(
    _PREFIX + name for name in ("ancestry", "current_id", "exists", "open", "seed_from_jsonl", "snapshot")
)
#: These builtins for sessions open one.
_OPEN = frozenset(_PREFIX + name for name in ("fork", "fork_at", "open", "seed_from_jsonl"))
#: The others that may open sessions, as agents do, or call what may.
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
    closed: dict[_Id, ast.Call] = {}
    for statement in statements:
        if closed:
            for node in _in_order(statement):
                _look(node, closed, knowledge, findings)
        if type(statement) is ast.Call and statement.name == _CLOSE:
            id = _id_of(statement)
            if id is not None:
                closed[id] = statement


def _look(node: ast.Node, closed: dict[_Id, ast.Call], knowledge: Knowledge, findings: Findings) -> None:
    """Report the use of a closed session. Forgets those that may be open, or another one, from here on."""
    if type(node) is ast.Call:
        id = _id_of(node) if needs_session(node.name) else None
        if id in closed:
            _report(node, id, closed.pop(id), findings)
        if not knowledge.is_builtin(node.name) or _may_open(node.name):
            closed.clear()
    elif isinstance(node, (*_UNSURE, *_ENDS)):
        closed.clear()
    elif type(node) is ast.NamePattern:
        closed.pop((ast.Name, node.name), None)
    elif type(node) is ast.Assign and type(node.target) is ast.Name:
        closed.pop((ast.Name, node.target.name), None)
    elif type(node) in (ast.DictPattern, ast.ListPattern):
        for id in [id for id in closed if id[0] is ast.Name]:
            del closed[id]


def _id_of(call: ast.Call) -> _Id | None:
    """Return the session that a call is given first: a variable, or an id as text."""
    first = call.args[0] if call.args else None
    if type(first) is ast.Name:
        return ast.Name, first.name
    return (ast.Str, first.value) if type(first) is ast.Str else None


def _report(use: ast.Call, id: _Id, close: ast.Call, findings: Findings) -> None:
    shown = f"'{id[1]}'" if id[0] is ast.Str else f"in `{id[1]}`"
    findings.error(
        "closed-session",
        use,
        f"{use.name}: unknown session id {shown}",
        help="it was closed: close it last, or open it again",
        places=[Place("closed here", close.start, close.end)],
    )


def needs_session(name: str) -> bool:
    return name.startswith(_PREFIX) and name not in _NEED_NONE


def _may_open(name: str) -> bool:
    """Whether a builtin may open a session."""
    return name in _OPEN or (name.startswith(_MAY_OPEN) and not name.startswith(_PREFIX))


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
