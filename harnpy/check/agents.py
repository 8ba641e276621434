"""Checks that know what agents are made of: options, graphs, tools, models, sessions, secrets. Spec: 03 §16.

A literal is compared with the builtins that read it (`Knowledge.problems`); this module only reads literals
as values and knows where each entry of them stands.
"""

from __future__ import annotations

from harnpy.check.findings import Place, renamed_key
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from harnpy.check.findings import Findings
    from harnpy.check.knowledge import Knowledge, Problem

    #: What a name stands for, if it is bound once, by a `let`, to what is returned.
    Lookup = Callable[[str], ast.Node | None]
    #: The tools of a registry, by name: where each was named first.
    Tools = dict[str, ast.Node]
    #: A variable by its name, or an id as text.
    _Id = tuple[type[ast.Name] | type[ast.Str], str]

# Literals as values: what is written out, as a builtin would get it, and where each part of it stands.
#
# What is no literal stays the node that it is: a closure, a call, a name of something unknown.


#: The key under which a dict that isn't written out whole has the node that adds to it.
REST = "..."

#: Names of names that are followed, and literals within literals: more nobody writes.
DEPTH = 32


def value_of(node: ast.Node, lookup: Lookup, depth: int = 0) -> Any:
    """Return the value of a literal, or the node itself. Names stand for what they are bound to."""
    node = written(node, lookup)
    kind = type(node)
    if kind in _PLAIN:
        return node.value  # type: ignore[attr-defined]
    if kind is ast.Nil:
        return None
    if kind is ast.Unary:
        return _negative(node)
    if depth == DEPTH:
        return node
    if kind is ast.List:
        return [value_of(item, lookup, depth + 1) for item in node.items]  # type: ignore[attr-defined]
    if kind is ast.Dict:
        return _dict(node, lookup, depth)
    return node


def written(node: ast.Node, lookup: Lookup) -> ast.Node:
    """Return what a name is bound to, as far as that is known; another node is itself."""
    for _ in range(DEPTH):
        if type(node) is not ast.Name:
            return node
        found = lookup(node.name)
        if found is None:
            return node
        node = found
    return node


def place_of(
    node: ast.Node, path: tuple[str | int, ...], lookup: Lookup, of_key: bool = False
) -> tuple[ast.Node, ast.Node | None]:
    """Return the node at ``path`` within a literal, or the innermost one on the way there.

    ``of_key``: the entry with the last key instead of what stands under it. The second node is the first name
    on the way, if there is one: what it is bound to stands elsewhere.
    """
    name = None
    for at, step in enumerate(path):
        inside = written(node, lookup)
        found: ast.Node | None = None
        if type(inside) is ast.List and type(step) is int and step < len(inside.items):
            found = inside.items[step]
        elif type(inside) is ast.Dict:
            entry = entry_of(inside, str(step))
            if entry is not None:
                found = entry if of_key and at == len(path) - 1 else entry.value
        if found is None:
            break
        if inside is not node:
            name = name or node
        node = found
    return node, name


def entry_of(node: ast.Dict, key: str) -> ast.DictEntry | None:
    """Return the entry of a dict literal that counts for a key: the last one."""
    found = None
    for entry in node.entries:
        if type(entry) is ast.DictEntry and type(entry.key) is ast.Str and entry.key.value == key:
            found = entry
    return found


def _dict(node: ast.Node, lookup: Lookup, depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for entry in node.entries:  # type: ignore[attr-defined]
        if type(entry) is ast.DictEntry and type(entry.key) is ast.Str:
            value[entry.key.value] = value_of(entry.value, lookup, depth + 1)
            continue
        spread = value_of(entry.value, lookup, depth + 1) if type(entry) is ast.Spread else None
        if type(spread) is dict:
            value.update(spread)
        else:
            # What is spread here may replace the values before it, but their keys stay.
            value = {**dict.fromkeys(value, entry), REST: entry}
    return value


def _negative(node: ast.Node) -> Any:
    assert type(node) is ast.Unary
    operand = node.operand
    if node.op == "-" and type(operand) in (ast.Int, ast.Float):
        return -operand.value  # type: ignore[attr-defined]
    return node


_PLAIN = frozenset([ast.Int, ast.Float, ast.Str, ast.Bool])


# Imports of `std/…` modules that aren't there. Spec: 06 §3, 03 §16.


_BUNDLED = "std/"


def check_import(item: ast.Import, knowledge: Knowledge, findings: Findings) -> None:
    """Report a `std/…` name that no module has."""
    if item.path.startswith(_BUNDLED):
        known = knowledge.modules()
        if item.path not in known:
            from harnpy.formats.suggestions import nearest_at_run_time

            _report_import(item, nearest_at_run_time(item.path, known), findings)


def _report_import(item: ast.Import, near: str | None, findings: Findings) -> None:
    from harnpy.syntax.diagnostic import Edit, Fix

    # The path, in its quotes, is the last thing of an import.
    start = item.end - len(item.path) - 2
    fix = Fix([Edit(start + 1, item.end - 1, near)], safe=False) if near else None
    findings.error(
        "unknown-module",
        item,
        f"Unknown stdlib module: {item.path}",
        help=f'did you mean "{near}"?' if near else "docs/modules.md lists the modules",
        fix=fix,
    )


# Tools that are defined twice in one registry: the second takes the place of the first. Spec: 07 §4.1.


_DEFINE = "tool_define"


def check_registries(statements: Sequence[ast.Node], findings: Findings) -> None:
    """Report names that a block gives to two tools of the registry in one variable."""
    registries: dict[str, Tools] = {}
    for statement in statements:
        name, value = _bound(statement)
        if name is not None and type(value) is ast.Call and value.name == _DEFINE:
            registries[name] = _defined(value, registries, findings)
        elif name is not None:
            registries.pop(name, None)
        elif any(_has_blocks(child) for child in (statement, *statement.children())):
            # What is defined in there may not be.
            registries.clear()


def _defined(call: ast.Call, registries: dict[str, Tools], findings: Findings) -> Tools:
    """Return the tools of the registry that a call of `tool_define` makes."""
    first, second = [*call.args[:2], None, None][:2]
    tools: Tools = {}
    if type(first) is ast.Name:
        tools = {**registries.get(first.name, {})}
    elif type(first) is ast.Call and first.name == _DEFINE:
        tools = _defined(first, registries, findings)
    if type(second) is ast.Str:
        if second.value in tools:
            before = tools[second.value]
            findings.warn(
                "duplicate-tool",
                second,
                f"tool '{second.value}' is in the registry already: this definition replaces it",
                places=[Place("defined here first", before.start, before.end)],
            )
        else:
            tools[second.value] = second
    return tools


def _bound(statement: ast.Node) -> tuple[str | None, ast.Node | None]:
    """Return the variable that a statement gives a value to, and the value."""
    if type(statement) is ast.Let and type(statement.target) is ast.NamePattern:
        return statement.target.name, statement.value
    if type(statement) is ast.Assign and statement.op == "=" and type(statement.target) is ast.Name:
        return statement.target.name, statement.value
    return None, None


def _has_blocks(node: ast.Node) -> bool:
    return type(node) is ast.Block


# Secrets that are written out: whoever reads the program has them. Spec: 03 §16, 08 §17.


#: The shortest secret that is looked for.
_SHORTEST = 16


def check_secret(node: ast.Str, findings: Findings) -> None:
    """Report a string that holds a secret. The message doesn't show it, and neither does the excerpt."""
    if len(node.value) >= _SHORTEST:
        from harnpy.formats.secrets.forms import kind_of_secret

        kind = kind_of_secret(node.value)
        if kind is not None:
            findings.warn(
                "literal-secret",
                node,
                f"a secret is written in the program: {kind}",
                help='read it with env("NAME"), or from a file that isn\'t shared',
            )


# Sessions that are used after their end: `agent_session_close(id)`, and then `id` again. Spec: 08 §1.
#
# Only what follows in the same block is looked at, and only as far as nothing may have opened it again.


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


def check_sessions(
    statements: Sequence[ast.Node], knowledge: Knowledge, findings: Findings, handled: bool
) -> None:
    """Report uses of a session after the statement that closes it, unless what they throw is ``handled``."""
    if handled:
        return
    closed: dict[_Id, ast.Call] = {}
    for statement in statements:
        if closed:
            for node in _in_order(statement):
                _sessions_after(node, closed, knowledge, findings)
        if type(statement) is ast.Call and statement.name == _CLOSE:
            id = _id_of(statement)
            if id is not None:
                closed[id] = statement


def _sessions_after(
    node: ast.Node, closed: dict[_Id, ast.Call], knowledge: Knowledge, findings: Findings
) -> None:
    """Report the use of a closed session. Forgets those that may be open, or another one, from here on."""
    if type(node) is ast.Call:
        id = _id_of(node) if needs_session(node.name) else None
        if id in closed:
            _report_session(node, id, closed.pop(id), findings)
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


def _report_session(use: ast.Call, id: _Id, close: ast.Call, findings: Findings) -> None:
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
    """Return True if a builtin may open a session."""
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
        waiting.extend((child, False) for child in reversed(node.children()))


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
                check_secret(node, self._findings)
            elif type(node) is ast.Block:
                self._statements(node.statements, handled)
            for child in node.children():
                waiting.append((child, handled or (type(node) is ast.Try and child is node.body)))

    def _statements(self, statements: Sequence[ast.Node], handled: bool) -> None:
        check_sessions(statements, self._knowledge, self._findings, handled)
        check_registries(statements, self._findings)

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
        values = [value_of(argument, lookup) for argument in passed]
        found = list(self._knowledge.problems(function, values))
        if not found:
            return
        from harnpy.check.knowledge import GRAPH_FIELD, UNKNOWN_PROVIDER

        for problem in found:
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
        fix = renamed_key(found, problem.near) if problem.near and name is None else None
        found = problem.node or (found.key if type(found) is ast.DictEntry else found)
        near = problem.near
        self._findings.about(
            problem.severity,
            problem.code,
            name or found,
            problem.message,
            help=f"did you mean `{near}`?" if near else None,
            places=[Place("written here", found.start, found.end)] if name else (),
            fix=fix,
        )


def _contains(node: ast.Node, inner: ast.Node) -> bool:
    return any(each is inner for each in ast.walk(node))


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
