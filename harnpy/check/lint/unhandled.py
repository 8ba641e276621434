"""Lint rules about what a program leaves unhandled: results, input from outside, sessions.

Spec: 03 §15, 08 §1.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from harnpy.check.lint.subject import Remark, Subject, remark
from harnpy.check.lint.uses import Binding
from harnpy.check.narrowing import kind_of
from harnpy.check.strict import BOUNDARIES
from harnpy.check.types.signatures import result_of
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit

# Results that nobody looks at, waiting for what is no task, and lists built one by one. Spec: 03 §15.


#: Values that are no tasks, whatever stands in them.
_NO_TASKS = (
    ast.Int,
    ast.Float,
    ast.Str,
    ast.Interp,
    ast.Bool,
    ast.Nil,
    ast.Duration,
    ast.List,
    ast.Dict,
    ast.StructLit,
    ast.Closure,
    ast.FnExpr,
    ast.RangeTo,
    ast.Parallel,
)
#: Operators whose result is a number, a text, a list, a dict or a bool: `&&`, `||` and `??` pass values on.
_NO_TASK_OPERATORS = frozenset([*"+ - * / % ** == != < > <= >= in".split(), "not in"])


#: Builtins that say by a `Result` how it went.
_RESULTS = frozenset({"Ok", "Err", "read_file_result", "schema_check", "schema_parse"})


def unhandled_result(subject: Subject) -> Iterator[Remark]:
    """Calls of the file's functions that are declared to return a `Result`, and of such builtins."""
    functions: dict[str, list[bool]] = {}
    for node in subject.each(ast.FnDecl):
        if not isinstance(subject.parent(node), ast.ImplDecl):
            functions.setdefault(node.name, []).append(_is_result(node.returns) and not node.gen)
    ambiguous = {one.name for one in subject.uses.bindings if one.kind != "fn"}
    for call in subject.each(ast.Call):
        returns = functions.get(call.name)
        if returns is None:
            sure = call.name in _RESULTS and subject.means_builtin(call)
        else:
            sure = all(returns) and call.name not in ambiguous
        if sure and subject.is_discarded(call):
            yield remark(
                call,
                f"the `Result` of `{call.name}` is ignored, and an error in it with it",
                help=f"pass the error on with `{call.name}(…)?`, or look at it with `is_err` or `match`",
            )


def _is_result(type: ast.Node | None) -> bool:
    return isinstance(type, ast.TypeName) and type.name == "Result"


def needless_await(subject: Subject) -> Iterator[Remark]:
    for call in subject.each(ast.Call):
        if call.name == "await" and len(call.args) == 1 and _is_no_task(subject, call.args[0]):
            value = call.args[0]
            yield remark(
                call,
                "`await` of what is no task gives the value itself",
                help="leave out the `await`",
                edits=[Edit(call.start, call.end, _operand(subject, value))],
            )


def _operand(subject: Subject, value: ast.Node) -> str:
    text = subject.text(value)
    return f"({text})" if isinstance(value, ast.Binary | ast.Unary | ast.RangeTo) else text


#: What builtins return that is surely no task.
_KINDS = frozenset("string int float bool nil bytes list dict duration".split())


def _is_no_task(subject: Subject, value: ast.Node) -> bool:
    if isinstance(value, ast.Call):
        knowledge = subject.knowledge
        result = result_of(knowledge.signature(value.name)) if knowledge is not None else None
        return result is not None and kind_of(result) in _KINDS and subject.means_builtin(value)
    if isinstance(value, ast.Binary):
        return value.op in _NO_TASK_OPERATORS
    if isinstance(value, ast.Unary):
        return True
    if isinstance(value, ast.Name):
        binding = subject.uses.meaning.get(id(value))
        let = binding.node if binding is not None else None
        if isinstance(let, ast.Let) and not let.mutable and isinstance(let.target, ast.NamePattern):
            return isinstance(let.value, _NO_TASKS)
        return False
    return isinstance(value, _NO_TASKS)


def rebuilt_list(subject: Subject) -> Iterator[Remark]:
    """`var xs = []`, then a loop over a list that only adds items to it: what `map` and `filter` are for."""
    for block in subject.each(ast.Block, ast.Program):
        statements = block.items if isinstance(block, ast.Program) else block.statements
        for let, loop in pairwise(statements):
            match let, loop:
                case (
                    ast.Let(mutable=True, target=ast.NamePattern(name=name), value=ast.List(items=())),
                    ast.For(pattern=ast.NamePattern(name=item), body=ast.Block(statements=(only,))),
                ) if _is_list(subject, loop.iterable):
                    method = _method(name, item, only)
                    if method is not None:
                        yield Remark(
                            loop.start,
                            loop.iterable.end,
                            f"`{name}` is built one item at a time; `{method}` says so in one expression",
                            help=f"{name} = {subject.text(loop.iterable)}.{method}({{ {item} -> … }})",
                        )


def _is_list(subject: Subject, value: ast.Node) -> bool:
    """Return True if a value is surely a list, so that its `map` and `filter` give lists."""
    if isinstance(value, ast.Name):
        binding = subject.uses.meaning.get(id(value))
        if binding is None or binding.writes:
            return False
        node = binding.place if isinstance(binding.place, ast.Param) else binding.node
        if isinstance(node, ast.Param):
            return _is_list_type(node.type)
        if not isinstance(node, ast.Let) or binding.place is not node.target:
            return False
        return isinstance(node.value, ast.List) or _is_list_type(node.type)
    if isinstance(value, ast.MethodCall):
        return value.name in _LIST_METHODS
    return isinstance(value, ast.List)


#: What gives a list, whatever it is a method of.
_LIST_METHODS = frozenset({"split", "to_list", "chars"})


def _is_list_type(type: ast.Node | None) -> bool:
    return isinstance(type, ast.TypeName) and type.name == "list"


def _method(name: str, item: str, statement: ast.Node) -> str | None:
    """The method of lists that does what the only statement of a loop does."""
    if isinstance(statement, ast.If):
        if statement.otherwise is not None or len(statement.then.statements) != 1:
            return None
        added = _added(name, statement.then.statements[0])
        plain = isinstance(added, ast.Name) and added.name == item
        return "filter" if plain and not _mentions(statement.cond, name) else None
    added = _added(name, statement)
    return "map" if added is not None and not _jumps(added) else None


def _added(name: str, statement: ast.Node) -> ast.Node | None:
    """Return what ``xs = xs + [item]``, ``xs += [item]`` or ``xs = xs.push(item)`` adds."""
    match statement:
        case (
            ast.Assign(
                target=ast.Name(name=one),
                op="=",
                value=ast.Binary(op="+", left=ast.Name(name=two), right=ast.List(items=(item,))),
            )
            | ast.Assign(
                target=ast.Name(name=one),
                op="=",
                value=ast.MethodCall(object=ast.Name(name=two), name="push", args=(item,)),
            )
        ) if one == two == name:
            found = item
        case ast.Assign(target=ast.Name(name=one), op="+=", value=ast.List(items=(item,))) if one == name:
            found = item
        case _:
            return None
    return None if isinstance(found, ast.Spread) or _mentions(found, name) else found


def _mentions(node: ast.Node, name: str) -> bool:
    return any(isinstance(one, ast.Name | ast.Call) and one.name == name for one in ast.walk(node))


def _jumps(node: ast.Node) -> bool:
    """Return True if a closure in the place of a loop's body would do something else."""
    jumps = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.Emit, ast.Propagate, ast.TryStar, ast.Assign)
    return any(isinstance(one, jumps) for one in ast.walk(node))


# What comes from outside and is taken as it comes; what people answer and nobody reads. Spec: 03 §15.


_VALIDATED = frozenset({"schema", "output_schema"})


def untyped_dict_access(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Member, ast.Index):
        call = node.object
        if not isinstance(call, ast.Call) or call.name not in BOUNDARIES or not subject.means_builtin(call):
            continue
        if not _has_schema(call):
            way = "property access on" if isinstance(node, ast.Member) else "subscript access on"
            yield _unvalidated(node, call, way)
    for let in subject.each(ast.Let):
        value, target = let.value, let.target
        if not isinstance(target, ast.DictPattern | ast.ListPattern) or not isinstance(value, ast.Call):
            continue
        known = value.name not in BOUNDARIES or not subject.means_builtin(value) or _has_schema(value)
        if target.entries and not known:
            yield _unvalidated(let, value, "destructuring of")


def _unvalidated(node: ast.Node, call: ast.Call, way: str) -> Remark:
    return remark(
        node,
        f"{way} raw `{call.name}()` result without schema validation",
        help="validate it with `schema_expect`, or bind it to a variable with a type first",
    )


def _has_schema(call: ast.Call) -> bool:
    """Return True if a model's answer is validated before the program gets it."""
    options = call.args[2] if len(call.args) > 2 else None
    if not call.name.startswith("llm_") or options is None:
        return False
    if not isinstance(options, ast.Dict):
        return True  # who knows
    return any(
        not isinstance(entry, ast.DictEntry)
        or entry.computed
        or (isinstance(entry.key, ast.Str) and entry.key.value in _VALIDATED)
        for entry in options.entries
    )


def prompt_injection_risk(subject: Subject) -> Iterator[Remark]:
    for call in subject.each(ast.Call):
        system = call.args[1] if call.name == "llm_call" and len(call.args) > 1 else None
        if isinstance(system, ast.Interp) and subject.means_builtin(call):
            yield remark(
                system,
                "interpolated data in the `llm_call` system prompt can smuggle untrusted instructions",
                help="keep the system prompt constant, and put data into the prompt",
            )


def unhandled_approval_result(subject: Subject) -> Iterator[Remark]:
    for call in subject.each(ast.Call):
        if call.name == "request_approval" and subject.is_discarded(call):
            yield remark(
                call,
                f"approval result from `{call.name}` is discarded",
                help="bind it, and go on only where it is approved",
            )


# Sessions that a function opens and leaves open. Spec: 03 §15, 08 §1.


_OPEN = "agent_session_open"
_CLOSE = "agent_session_close"
_FUNCTIONS = (ast.FnDecl, ast.FnExpr, ast.Closure, ast.ToolDecl)


def session_never_closed(subject: Subject) -> Iterator[Remark]:
    """A new session that a function only works in: with each call there is one more.

    Silent where anybody else could close it: its id is given away, or is one that somebody else may know.
    """
    for binding in subject.uses.bindings:
        value = _session(subject, binding)
        if value is not None and all(_works_in(subject, use) for use in binding.reads):
            yield remark(
                value,
                f"the session `{binding.name}` is opened here and never closed",
                help=f"close it where it is done with, best by `defer {{ {_CLOSE}({binding.name}) }}`",
            )


def _session(subject: Subject, binding: Binding) -> ast.Node | None:
    """The call that opens the session whose id a variable of a function holds, and nothing else."""
    let = binding.node
    if binding.kind != "let" or not isinstance(binding.owner, _FUNCTIONS):
        return None
    if binding.writes or binding.captured:
        return None
    return let.value if isinstance(let, ast.Let) and _opens(subject, let.value) else None


def _opens(subject: Subject, value: ast.Node) -> bool:
    """Return True if a value is a session of its own: one without an id that others could use."""
    if not isinstance(value, ast.Call) or value.name != _OPEN or not subject.means_builtin(value):
        return False
    return not value.args or isinstance(value.args[0], ast.Nil)


def _works_in(subject: Subject, use: ast.Node) -> bool:
    """Return True if a use of a session's id leaves it open, and here."""
    parent = subject.parent(use)
    if isinstance(parent, ast.Interp):
        return True
    if isinstance(parent, ast.DictEntry):
        return isinstance(parent.key, ast.Str) and parent.key.value == "session_id"
    if not isinstance(parent, ast.Call) or not subject.means_builtin(parent):
        return False
    return parent.name.startswith("agent_session_") and parent.name not in (_CLOSE, "agent_session_fork")
