"""Lint rules about work that comes to nothing: values, assignments, tasks and statements that are lost.

Spec: 02 §7.3, §9, §10.2, §11.1; 03 §15; 05 §2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harnpy.check.lint.subject import Remark, Subject, remark
from harnpy.check.lint.values import adds_nothing, is_dropped, is_pure, is_tried, kind, leaves
from harnpy.check.narrowing import kind_of
from harnpy.check.types.signatures import certain_result_of
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit
from harnpy.syntax.names import DECLARATIONS

if TYPE_CHECKING:
    from harnpy.check.lint.uses import Binding

# Expressions whose value nobody uses. Spec: 02 §8, 03 §15.


#: What may stand as a statement and has a value.
_EXPRESSIONS = (
    ast.Name,
    ast.Int,
    ast.Float,
    ast.Str,
    ast.Interp,
    ast.Bool,
    ast.Duration,
    ast.List,
    ast.Dict,
    ast.RangeTo,
    ast.Unary,
    ast.Binary,
    ast.Ternary,
    ast.Member,
    ast.Index,
    ast.Slice,
    ast.Call,
    ast.MethodCall,
)
#: Methods that give what they are called on with a change: what is meant is mostly an assignment.
_CHANGING = frozenset(
    "push sort sort_by reverse unique compact flatten merge remove rekey add delete replace trim trim_start "
    "trim_end lower upper lowercase uppercase to_lower to_upper".split()
)
_COMPOUND = frozenset("+-*/")


def discarded_value(subject: Subject) -> Iterator[Remark]:
    """Statements that only compute a value, which nobody uses."""
    for node in _discarded(subject):
        text = _shown(subject, node)
        yield remark(node, f"the value of `{text}` is never used", **_instead(subject, node))


def _discarded(subject: Subject) -> Iterator[ast.Node]:
    piped = any(subject.each(ast.Pipeline))
    for block in subject.each(ast.Program, ast.Block):
        if isinstance(block, ast.Program) and piped:
            # None of its statements runs: `skipped-statement`.
            continue
        for node in block.items if isinstance(block, ast.Program) else block.statements:
            idle = isinstance(node, _EXPRESSIONS) and is_dropped(subject, node) and is_pure(subject, node)
            if idle and not is_tried(subject, node):
                yield node


def meant_to_change(subject: Subject) -> set[int]:
    """The ids of the variables that statements without effect were probably meant to assign to."""
    found = set()
    for node in _discarded(subject):
        target = _target(subject, node)
        if target is not None:
            found.add(id(target))
    return found


def _target(subject: Subject, node: ast.Node) -> Binding | None:
    """The variable that the value of a statement probably was meant for."""
    while isinstance(node, ast.Binary | ast.MethodCall | ast.Member | ast.Index):
        node = node.left if isinstance(node, ast.Binary) else node.object
    return subject.uses.meaning.get(id(node))


def _instead(subject: Subject, node: ast.Node) -> dict[str, Any]:
    """What to do about a statement without effect, and the edits that do it where that is plain."""
    source = subject.source
    match node:
        case ast.MethodCall(object=ast.Name(name=name), name=method) if method in _CHANGING:
            help = f"values don't change: `{name} = {_shown(subject, node)}`"
            edits = [Edit(node.start, node.start, f"{name} = ")] if _is_own(subject, node.object) else []
            return {"help": help, "edits": edits, "safe": False}
        case ast.MethodCall(name="pop"):
            return {"help": "`pop` returns the last item and leaves the list as it is"}
        case ast.MethodCall(name="map" | "filter" | "flat_map"):
            return {"help": "bind what it returns to a name, or go through the items with `for`"}
        case ast.Binary(op="==", left=ast.Name() | ast.Member() | ast.Index()):
            return {"help": "`=` assigns, `==` compares"}
        case ast.Binary(op=op, left=ast.Name(name=name)) if op in _COMPOUND:
            gap = source[node.left.end : node.right.start]
            plain = gap.strip() == op and _is_own(subject, node.left)
            at = node.left.end + gap.find(op)
            edits = [Edit(at, at + 1, f"{op}=")] if plain else []
            return {"help": f"to change `{name}`, write `{name} {op}= …`", "edits": edits, "safe": False}
        case ast.Unary(op="-") | ast.List() if _goes_on(subject, node):
            first = source[node.start]
            return {
                "help": f"a line that begins with `{first}` is a new statement: end the one above with it"
            }
    return {"help": "use the value, or leave the statement out"}


def _is_own(subject: Subject, name: ast.Node) -> bool:
    """Return True if a name means a `var` that an assignment in this place changes."""
    binding = subject.uses.meaning.get(id(name))
    if binding is None or not binding.mutable:
        return False
    return _detached_from(subject, name, binding) is None


def _goes_on(subject: Subject, node: ast.Node) -> bool:
    """Return True if a statement is the first on its line, behind another one."""
    line = subject.source.rfind("\n", 0, node.start) + 1
    return not subject.source[line : node.start].strip() and bool(subject.source[:line].strip())


def _shown(subject: Subject, node: ast.Node) -> str:
    """The text of a node, if it is short; otherwise how it begins."""
    text = " ".join(subject.text(node).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} …"


_LONGEST = 40

# Functions that don't return what they have worked out. Spec: 02 §9, 03 §15.


_NESTED = (ast.FnDecl, ast.FnExpr, ast.Closure, ast.ToolDecl, ast.Spawn)


def missing_return(subject: Subject) -> Iterator[Remark]:
    """The value of a function with a name is what `return` says, and nothing else."""
    used = {
        call.name
        for call in subject.each(ast.Call)
        if not isinstance(subject.parent(call), ast.Block | ast.Program)
    }
    giving = {one.name for one in subject.each(ast.FnDecl) if _returns(one)}
    for function in subject.each(ast.FnDecl):
        if function.gen or _has(function, ast.Yield):
            continue
        asked = function.name in used and function.name not in giving
        for leaf in leaves(function.body):
            pure = isinstance(leaf, _EXPRESSIONS) and is_pure(subject, leaf)
            if not is_tried(subject, leaf) if pure else asked and _gives(subject, leaf, giving):
                yield remark(
                    leaf,
                    f"`{function.name}` doesn't return the value of its last expression",
                    help="a function with a name returns by `return` alone",
                    edits=[Edit(leaf.start, leaf.start, "return ")],
                    safe=False,
                )


def _has(function: ast.FnDecl, kind: type[ast.Node]) -> bool:
    return any(isinstance(one, kind) for one in ast.walk(function.body, _NESTED))


def _returns(function: ast.FnDecl) -> bool:
    below = ast.walk(function.body, _NESTED)
    return any(isinstance(one, ast.Return) and one.value is not None for one in below)


def _gives(subject: Subject, leaf: ast.Node, giving: set[str]) -> bool:
    """Return True if a call surely gives something; ``giving`` are the file's functions that do."""
    if isinstance(leaf, ast.MethodCall):
        return kind(subject, leaf) is not None
    if not isinstance(leaf, ast.Call):
        return False
    if leaf.name in giving:
        return True
    knowledge = subject.knowledge
    if knowledge is None or not subject.means_builtin(leaf):
        return False
    result = certain_result_of(knowledge.signature(leaf.name))
    return result is not None and kind_of(result) != "nil"


# Assignments to a copy. Spec: 02 §7.3, 03 §15, 05 §1.3.


_DETACHED = (ast.Closure, ast.FnExpr, ast.FnDecl, ast.ToolDecl, ast.Spawn, ast.Parallel)
_WORDS: dict[type[ast.Node], str] = {
    ast.Spawn: "the task",
    ast.Parallel: "each task of `parallel`",
    ast.FnDecl: "the function",
    ast.ToolDecl: "the tool",
}


def lost_assignment(subject: Subject) -> Iterator[Remark]:
    """Functions, closures and tasks have copies of the variables around them, which end with the call."""
    shared = subject.is_library or any(node.pub for node in subject.each(ast.FnDecl, ast.Pipeline))
    for node in subject.each(ast.Assign):
        binding = _assigned(subject, node)
        if binding is None or (shared and binding.owner is subject.program):
            continue
        body = _detached_from(subject, node, binding)
        if body is not None and not any(_looks(body, read, node) for read in binding.reads):
            word = _WORDS.get(type(body), "the closure")
            yield remark(
                node,
                f"only a copy of `{binding.name}` changes here: {word} has its own",
                help="return the value, go through the items with `for`, or share it with `atomic`",
            )


def _assigned(subject: Subject, node: ast.Assign) -> Binding | None:
    root = node.target
    while isinstance(root, ast.Member | ast.Index):
        root = root.object
    return subject.uses.meaning.get(id(root))


def _detached_from(subject: Subject, node: ast.Node, binding: Binding) -> ast.Node | None:
    """The innermost body around a node that has its own copy of a variable; None in the variable's own."""
    for above in subject.above(node):
        if above.start <= binding.place.start < above.end and above is not binding.place:
            return None
        if isinstance(above, _DETACHED):
            return above
    return None


def _looks(body: ast.Node, read: ast.Node, assign: ast.Assign) -> bool:
    """Return True if a body looks at what it has assigned, in order to do more than assign it anew."""
    inside = body.start <= read.start < body.end
    return inside and not assign.value.start <= read.start < assign.value.end


# Tasks that nobody waits for, and statements that nobody runs. Spec: 02 §10.2, 03 §15, 05 §2.


#: Builtins that say something to people, or wait, and nothing to other tasks.
_TELLING = frozenset(
    "print println log log_debug log_info log_warn log_error eprint eprintln sleep sleep_ms".split()
)


def lost_task(subject: Subject) -> Iterator[Remark]:
    """`spawn { … }` as a statement, where nobody learns what comes of it: it throws, computes, prints."""
    for task in subject.each(ast.Spawn):
        if not _reports(subject, task.body) and is_dropped(subject, task) and not is_tried(subject, task):
            yield Remark(
                task.start,
                task.start + len("spawn"),
                "nobody awaits this task: its error is lost, and the program may end before it runs",
                help="bind it to a name, and `await` it",
            )


def _reports(subject: Subject, body: ast.Block) -> bool:
    """Return True if others may see what a task does."""
    if any(isinstance(statement, ast.Throw) for statement in body.statements):
        return False
    parts = [node for node in ast.walk(body) if not isinstance(node, ast.Call) or node.name not in _TELLING]
    return not all(adds_nothing(subject, node) for node in parts)


def skipped_statement(subject: Subject) -> Iterator[Remark]:
    """Where a file has a pipeline, that is what runs."""
    if not any(isinstance(item, ast.Pipeline) for item in subject.program.items):
        return
    for item in subject.program.items:
        if not isinstance(item, (ast.Import, ast.Let, ast.Pipeline, ast.Override, *DECLARATIONS)):
            text = "in a file with a pipeline, statements at the top level never run"
            yield remark(item, text, help="move it into the pipeline")
