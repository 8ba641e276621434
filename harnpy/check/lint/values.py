"""What lint knows of values without running anything: their kinds, and whether somebody uses them.

In doubt it knows nothing: of variables that are assigned, of parameters without a type, of names that an
import may bring. Spec: 02 §8, §11.1, §14; 03 §12, §15.
"""

from __future__ import annotations

from collections.abc import Iterator

from harnpy.check.lint.subject import Subject
from harnpy.check.narrowing import kind_of
from harnpy.check.types.signatures import certain_result_of
from harnpy.syntax import ast

_KINDS: dict[type[ast.Node], str] = {
    ast.Int: "int",
    ast.Float: "float",
    ast.Str: "string",
    ast.Interp: "string",
    ast.Bool: "bool",
    ast.Nil: "nil",
    ast.Duration: "duration",
    ast.List: "list",
    ast.Dict: "dict",
    ast.RangeTo: "range",
    ast.Closure: "closure",
    ast.FnExpr: "closure",
}
#: Of operators whose result is of one kind whatever the operands are.
_TESTS = frozenset(["==", "!=", "<", ">", "<=", ">=", "&&", "||", "in", "not in"])
#: What is checked at each call (03 §12). A float passes for an `int`, and both are numbers.
_CHECKED = frozenset({"string", "int", "float", "bool", "list", "dict", "closure", "bytes"})
_TEXTS = "lower upper lowercase uppercase trim trim_start trim_end replace substring reverse repeat".split()
_LISTS = "map filter flat_map sort sort_by reverse unique push compact flatten".split()
#: By the kind of a value, what methods of it return whatever they are called with.
_OF_METHODS = {
    "string": {**dict.fromkeys(_TEXTS, "string"), **dict.fromkeys(("chars", "lines", "split"), "list")},
    "list": dict.fromkeys(_LISTS, "list"),
}
#: The longest chain of methods that is looked at.
_LINKS = 20


def kind(subject: Subject, node: ast.Node) -> str | None:
    """Return what `type_of` surely says of the value of a node; for `int`, a parameter may hold a float."""
    names: list[str] = []
    known = origin(subject, node, changed=True)
    while isinstance(known, ast.MethodCall):
        # Each link of a chain may be asked for: of a long one, nothing is known.
        if known.optional or len(names) == _LINKS:
            return None
        names.append(known.name)
        known = origin(subject, known.object, changed=True)
    found = _plain_kind(subject, known)
    for name in reversed(names):
        found = _OF_METHODS.get(found or "", {}).get(name)
    return found


def _plain_kind(subject: Subject, node: ast.Node) -> str | None:
    if isinstance(node, ast.Param):
        if not isinstance(node.type, ast.TypeName) or node.default is not None or node.rest:
            return None
        return node.type.name if node.type.name in _CHECKED else None
    if isinstance(node, ast.Call):
        knowledge = subject.knowledge
        if knowledge is None or not subject.means_builtin(node):
            return None
        result = certain_result_of(knowledge.signature(node.name))
        return kind_of(result) if result is not None else None
    if isinstance(node, ast.Binary):
        return "bool" if node.op in _TESTS else None
    if isinstance(node, ast.Unary):
        return "bool" if node.op == "!" else _KINDS.get(type(node.operand))
    return _KINDS.get(type(node))


def origin(subject: Subject, node: ast.Node, *, changed: bool = False) -> ast.Node:
    """Return the node that a value comes from, or the `Param`, behind names of variables that never change.

    The name itself, where it could have another value. ``changed``: items of it may have been assigned.
    """
    while isinstance(node, ast.Name):
        binding = subject.uses.meaning.get(id(node))
        if binding is None or binding.sharing:
            break
        if any(not changed or isinstance(write.target, ast.Name) for write in binding.writes):
            break
        if isinstance(binding.place, ast.Param):
            return binding.place
        let = binding.node
        if not isinstance(let, ast.Let) or binding.place is not let.target:
            break
        if not isinstance(let.target, ast.NamePattern):
            break
        if let.value.start <= node.start < let.value.end:
            break
        node = let.value
    return node


# Values that nobody uses. Spec: 02 §11.1, 03 §15.


#: Their blocks have no value.
_STATEMENTS = (ast.For, ast.While, ast.Defer)
_FUNCTIONS = (ast.FnDecl, ast.FnExpr, ast.Closure, ast.ToolDecl, ast.Pipeline, ast.Override)
#: Statements in these may be there to fail.
_TRIALS = (ast.Try, ast.TryStar, ast.Retry)


def is_dropped(subject: Subject, node: ast.Node) -> bool:
    """Return True if a node is a statement whose value nobody can get.

    As `Subject.is_discarded`, and the last statement of an `if`, a `match` or a bare block, too, whose own
    value nobody gets.
    """
    while not subject.is_discarded(node):
        block = subject.parent(node)
        if not isinstance(block, ast.Block):
            return False
        owner = subject.parent(block)
        if isinstance(owner, ast.Arm):
            owner = subject.parent(owner)
        if not isinstance(owner, ast.If | ast.Match | ast.Mutex):
            return False
        # `else if`: one `if` in another.
        while isinstance(owner, ast.If) and isinstance(above := subject.parent(owner), ast.If):
            owner = above
        assert owner is not None
        node = owner
    return True


def is_tried(subject: Subject, node: ast.Node) -> bool:
    """Return True if a statement may stand where it does to fail."""
    for above in subject.above(node):
        if isinstance(above, _TRIALS):
            return True
        if isinstance(above, _FUNCTIONS):
            return False
    return False


# Expressions without effects. Spec: 02 §8, 03 §15.


#: What evaluating never does anything but give a value, where that holds of its parts.
_PLAIN: tuple[type[ast.Node], ...] = (
    *_KINDS,
    ast.Name,
    ast.DictEntry,
    ast.Spread,
    ast.Param,
    ast.Block,
    ast.Unary,
    ast.Binary,
    ast.Ternary,
    ast.Member,
    ast.Index,
    ast.Slice,
    ast.If,
    ast.Let,
    ast.Return,
    ast.Assign,
    ast.NamePattern,
    ast.ListPattern,
    ast.DictPattern,
    ast.PatternEntry,
)
#: The kinds of values that never change, so that no method of theirs does anything to them.
_UNCHANGING = ("string", "list", "dict", "set")
#: Methods that other values have, too, and that move these on.
_OTHERS = ("iter", "range", "channel")


def is_pure(subject: Subject, node: ast.Node) -> bool:
    """Return True if evaluating a node surely does nothing but give a value, or fail."""
    return all(adds_nothing(subject, one) for one in ast.walk(node))


def adds_nothing(subject: Subject, node: ast.Node) -> bool:
    """Return True if a node has no effect but those of its parts."""
    if isinstance(node, ast.Call):
        knowledge = subject.knowledge
        known = knowledge is not None and knowledge.is_pure(node.name) and subject.means_builtin(node)
        return known and _calls_nothing(subject, node)
    if isinstance(node, ast.MethodCall):
        return _is_pure_method(subject, node) and _calls_nothing(subject, node)
    return isinstance(node, _PLAIN)


#: Builtins and methods that call a function that they are given.
_CALLING = frozenset(
    "all any dedup_by every filter find find_index flat_map group_by map map_keys map_values max_by min_by "
    "none partition reduce rekey sort_by".split()
)


def _calls_nothing(subject: Subject, node: ast.Call | ast.MethodCall) -> bool:
    """Return True if what a call may call is written down in it, or surely no function."""
    if node.name not in _CALLING:
        return True
    written = (ast.Closure, ast.FnExpr)
    return all(isinstance(one, written) or kind(subject, one) not in (None, "closure") for one in node.args)


def _is_pure_method(subject: Subject, node: ast.MethodCall) -> bool:
    """Return True if a method is surely one of values that never change."""
    knowledge = subject.knowledge
    if knowledge is None:
        return False
    owner = kind(subject, node.object)
    if owner in _UNCHANGING:
        # A dict may have a function under the name.
        return node.name in knowledge.methods(owner) and (owner != "dict" or node.name not in subject.texts)
    if owner is not None or any(node.name in knowledge.methods(kind) for kind in _OTHERS):
        return False
    root = node.object
    while isinstance(root, ast.Member | ast.Index):
        root = root.object
    # What another method returns is looked at with that one; a name may be a host's.
    if not isinstance(root, ast.MethodCall | ast.Name):
        return False
    if isinstance(root, ast.Name) and root.name not in subject.own_names:
        return False
    return any(node.name in knowledge.methods(kind) for kind in _UNCHANGING) and not _may_be_own(
        subject, node
    )


def _may_be_own(subject: Subject, node: ast.MethodCall) -> bool:
    """Return True if the program, or one that it imports, may have given the method's name to something.

    Functions in dicts are called like methods.
    """
    if any(not one.path.startswith("std/") for one in subject.each(ast.Import)):
        return True
    return node.name in subject.texts or any(one.name == node.name for one in subject.each(ast.FnDecl))


def leaves(node: ast.Node) -> Iterator[ast.Node]:
    """Yield the expressions that a value can come from: the last ones of the branches of `if` and `match`."""
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, ast.Block):
            stack += top.statements[-1:]
        elif isinstance(top, ast.If):
            stack += [one for one in (top.otherwise, top.then) if one is not None]
        elif isinstance(top, ast.Match):
            stack += [arm.body for arm in reversed(top.arms)]
        else:
            yield top
