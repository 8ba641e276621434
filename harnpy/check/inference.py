"""The type of an expression where it stands, as far as it has one. Spec: 03 §5.

Operators, methods and properties lean to the left, thousands deep: the leftmost operand is inferred first,
and the rest goes upward from there. So no chain recurses, and each of its links is looked at once.
"""

from __future__ import annotations

from harnpy.check.scopes import Binding, Scope
from harnpy.check.types import type_nodes
from harnpy.check.types.declared import substituted
from harnpy.check.types.type_nodes import (
    ANY,
    BOOL,
    CLOSURE,
    DICT,
    DURATION,
    FLOAT,
    HOLE,
    INT,
    LIST,
    NEVER,
    NIL,
    RANGE,
    STRING,
    function,
    is_named,
    list_of,
    named,
    result_of_types,
    shape,
)
from harnpy.syntax import ast
from harnpy.syntax.names import declared_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from harnpy.check.environment import Environment
    from harnpy.check.narrowing import Facts
    from harnpy.check.types import Types
    from harnpy.check.types.type_nodes import Type

    #: The type of a node whose left part has the given one; the type of any other node.
    Step = Callable[[Any, Any, Type | None, Scope], Type | None]
    Whole = Callable[[Any, Any, Scope], Type | None]


def known(type: Type | None) -> Type | None:
    """A type, unless it is `any`: such a value counts as having none."""
    return None if type is None or is_named(type, "any") else type


def bare(type: Type | None) -> str | None:
    """The name of a *named* type (03 §8.1); None for every other type.

    What has the type `never` isn't judged: facts may rule out more than a run does.
    """
    if not isinstance(type, ast.TypeName) or type.args or type.name in ("any", "never", "_"):
        return None
    return type.name


def block(inference: Inference, node: ast.Block, scope: Scope) -> Type | None:
    """The type of a block's value: `never`, or that of its last expression.

    It is inferred around the block: names that are bound inside have no type.
    """
    from harnpy.check.narrowing import exits

    if exits(node):
        return NEVER
    if not node.statements:
        return None
    last = node.statements[-1]
    inside = [name for statement in node.statements for name in declared_names(statement)]
    return inference.of(last, nameless(scope, inside) if inside else scope)


def nameless(scope: Scope, names: Iterable[str]) -> Scope:
    """A scope in which ``names`` mean something unknown."""
    inner = Scope(scope)
    for name in names:
        inner.names[name] = Binding(name, None)
    return inner


def list_(inference: Inference, node: ast.List, scope: Scope) -> Type:
    found: list[Type] = []
    for item in node.items:
        type = None if isinstance(item, ast.Spread) else inference.of(item, scope)
        if type is None:
            return LIST
        found.append(type)
    return list_of(type_nodes.union(found)) if found else LIST


def dict_(inference: Inference, node: ast.Dict, scope: Scope) -> Type:
    """A shape when every key is written; a value without a type is `any`."""
    fields: dict[str, Type] = {}
    for entry in node.entries:
        if not isinstance(entry, ast.DictEntry) or entry.computed or not isinstance(entry.key, ast.Str):
            return DICT
        fields[entry.key.value] = inference.of(entry.value, scope) or ANY
    return shape(fields) if fields else DICT


def closure(inference: Inference, node: ast.Closure | ast.FnExpr, scope: Scope) -> Type:
    """A function type when everything about it is known; its own parameters have no type in this."""
    if not node.params or any(param.type is None or param.rest or param.default for param in node.params):
        return CLOSURE
    inner = nameless(scope, [param.name for param in node.params])
    result = block(inference, node.body, inner)
    return CLOSURE if result is None else function([p.type for p in node.params if p.type], result)


def struct(inference: Inference, node: ast.StructLit, scope: Scope) -> Type:
    """The struct, with type arguments as its fields determine them."""
    declared = inference.types.declared.structs.get(node.name)
    if declared is None or not declared.type_params:
        return named(node.name)
    expected = {field.name: field.type for field in declared.fields}
    given = []
    for entry in node.entries:
        if isinstance(entry, ast.DictEntry) and isinstance(entry.key, ast.Str):
            wanted = expected.get(entry.key.value)
            actual = inference.of(entry.value, scope) if wanted is not None else None
            if wanted is not None and actual is not None:
                given.append((wanted, actual))
    from harnpy.check.types import fitting

    return fitting.applied(inference.types, node.name, declared.type_params, given)


# The types of properties, elements and slices, and of `value?`. Spec: 03 §5.


def member(inference: Inference, node: ast.Member, object: Type | None, scope: Scope) -> Type | None:
    if node.optional:
        return None
    if node.name == "variant" and isinstance(object, ast.TypeName):
        return STRING if object.name in inference.types.declared.enums else None
    return type_nodes.field(object, node.name)


def method_call(inference: Inference, node: ast.MethodCall, object: Type | None, scope: Scope) -> Type | None:
    from harnpy.check.types.methods import method_result

    return method_result(inference.types, object, node.name)


def propagate(inference: Inference, node: ast.Propagate, value: Type | None, scope: Scope) -> Type | None:
    found = ok_type(value)
    return None if found is None else type_nodes.known(found)


def ok_type(type: Type | None) -> Type | None:
    """``T`` of `Result<T, E>`."""
    return type.args[0] if is_result(type) else None  # type: ignore[union-attr]


def error_type(type: Type | None) -> Type | None:
    """``E`` of `Result<T, E>`."""
    return type.args[1] if is_result(type) else None  # type: ignore[union-attr]


def is_result(type: Type | None) -> bool:
    return isinstance(type, ast.TypeName) and type.name == "Result" and len(type.args) == 2


_LOGICAL = frozenset(["==", "!=", "<", ">", "<=", ">=", "&&", "||", "in", "not in"])
#: What `+` joins with its like.
_JOINED = ("string", "list", "dict")


def binary(inference: Inference, node: ast.Binary, left: Type | None, scope: Scope) -> Type | None:
    if node.op in _LOGICAL:
        return BOOL
    right = inference.of(node.right, scope)
    if node.op == "??":
        return coalesced(inference, known(left), known(right))
    return arithmetic(node.op, left, right)


def coalesced(inference: Inference, left: Type | None, right: Type | None) -> Type | None:
    """``left ?? right``."""
    if left is None or is_named(left, "nil"):
        return right
    return type_nodes.without(left, NIL) or right if isinstance(left, ast.TypeUnion) else left


def arithmetic(op: str, left: Type | None, right: Type | None) -> Type | None:
    """``left op right``: `+ - * / % **`."""
    a, b = bare(left), bare(right)
    if a is None or b is None:
        return None
    if op == "*" and {a, b} == {"string", "int"}:
        return STRING
    if a == b == "int":
        return INT
    if "float" in (a, b):
        return FLOAT
    if op == "+" and a == b and a in _JOINED:
        return named(a)
    return None


# The types of names and of what calls return. Spec: 03 §5, §7.2, §8.3, §13.


ANY_STREAM = named("Stream", named("any"))
ANY_GENERATOR = named("Generator", named("any"))


def name(inference: Inference, node: ast.Name, scope: Scope) -> Type | None:
    found = scope.find(node.name)
    if found is not None and found.fn is None:
        return found.type
    declared = found.fn if found is not None else scope.will_declare(node.name)
    return function_type(inference, declared) if isinstance(declared, ast.FnDecl) else None


def function_type(inference: Inference, fn: ast.FnDecl) -> Type:
    """Return what a function is as a value; `_` where nothing is declared."""
    if any(param.rest or param.default is not None for param in fn.params) or fn.type_params:
        # It may be called in several ways.
        return CLOSURE
    return function([param.type or HOLE for param in fn.params], returned(inference, fn) or HOLE)


def returned(inference: Inference, fn: ast.FnDecl) -> Type | None:
    """Return what a call returns, as it is declared."""
    if fn.returns is not None:
        return fn.returns
    if fn.gen:
        return ANY_STREAM
    return ANY_GENERATOR if inference.environment.yields(fn) else None


def target(inference: Inference, node: ast.Call, scope: Scope) -> ast.FnDecl | None:
    """The user function that a call surely calls."""
    found = scope.find(node.name)
    declared = found.fn if found is not None else scope.will_declare(node.name)
    return declared if isinstance(declared, ast.FnDecl) else None


def call(inference: Inference, node: ast.Call, scope: Scope) -> Type | None:
    fn = target(inference, node, scope)
    if fn is not None:
        return _returned_by(inference, fn, node, scope)
    if scope.find(node.name) is not None or scope.will_declare(node.name) is not None:
        return None
    if node.name in ("Ok", "Err"):
        payload = (inference.of(node.args[0], scope) if node.args else None) or HOLE
        return result_of_types(*((payload, HOLE) if node.name == "Ok" else (HOLE, payload)))
    declared = inference.types.declared.structs.get(node.name)
    if declared is not None:
        return named(node.name, *[HOLE] * len(declared.type_params))
    return _of_builtin(inference, node, scope)


def _returned_by(inference: Inference, fn: ast.FnDecl, node: ast.Call, scope: Scope) -> Type | None:
    result = returned(inference, fn)
    if result is None or not fn.type_params:
        return result
    from harnpy.check.types import fitting

    bound = bindings(inference, fn, node, scope)
    return fitting.settled(result, [param.name for param in fn.type_params], bound)


def bindings(inference: Inference, fn: ast.FnDecl, node: ast.Call, scope: Scope) -> dict[str, Type]:
    """The type parameters of a function as a call determines them, conflicts passed over."""
    names = frozenset(param.name for param in fn.type_params)
    bound = explicit(fn.type_params, node)
    for param, arg in zip(fn.params, node.args, strict=False):
        if param.rest or isinstance(arg, ast.Spread):
            break
        if param.type is not None:
            bind_argument(inference, names, param.type, arg, bound, scope)
    return bound


def explicit(params: Sequence[ast.TypeParam], node: ast.Call) -> dict[str, Type]:
    """Return what ``f<A, B>(…)`` binds."""
    if len(params) != len(node.type_args):
        return {}
    return {param.name: arg for param, arg in zip(params, node.type_args, strict=True)}


def bind_argument(
    inference: Inference,
    names: frozenset[str],
    expected: Type,
    arg: ast.Node,
    bound: dict[str, Type],
    scope: Scope,
) -> tuple[str, Type, Type] | None:
    """Bind type parameters from one argument; a conflict, when one was bound otherwise before."""
    actual = argument(inference, expected, arg, scope)
    if actual is None:
        return None
    from harnpy.check.types import fitting

    return fitting.bind(inference.types, names, expected, actual, bound)


def argument(inference: Inference, expected: Type, arg: ast.Node, scope: Scope) -> Type | None:
    """The type of an argument for a parameter of type ``expected``."""
    from harnpy.check.types.schemas import seen_as

    return seen_as(inference.types, expected, arg, inference.of(arg, scope), scope.value_of)


def _of_builtin(inference: Inference, node: ast.Call, scope: Scope) -> Type | None:
    from harnpy.check.types.signatures import generic, result_of

    declared = inference.environment.knowledge.signature(node.name)
    signature = None if declared is None else generic(declared)
    if signature is None:
        return result_of(declared)
    names = frozenset(param.name for param in signature.type_params)
    bound = explicit(signature.type_params, node)
    for param, arg in zip(signature.params, node.args, strict=False):
        if isinstance(arg, ast.Spread):
            break
        if param.type is not None:
            bind_argument(inference, names, param.type, arg, bound, scope)
    if names <= bound.keys() and signature.returns is not None:
        return substituted(signature.returns, bound)
    return result_of(declared)


# The types of what has blocks: `if`, `? :`, `try`, `parallel`. Spec: 03 §5.


def ternary(inference: Inference, node: ast.Ternary, scope: Scope) -> Type | None:
    if_true, if_false = inference.sides(node.cond, scope)
    then = inference.of(node.then, inference.narrowed(if_true, scope))
    otherwise = inference.of(node.otherwise, inference.narrowed(if_false, scope))
    if then is None or otherwise is None:
        return then or otherwise
    return type_nodes.union([then, otherwise])


def if_(inference: Inference, node: ast.If, scope: Scope) -> Type | None:
    then = block(inference, node.then, scope)
    otherwise = _otherwise(inference, node.otherwise, scope)
    if then is None or otherwise is None:
        return then
    if is_named(then, "never"):
        return otherwise
    return then if is_named(otherwise, "never") else type_nodes.union([then, otherwise])


def _otherwise(inference: Inference, node: ast.Node | None, scope: Scope) -> Type | None:
    if node is None:
        return None
    return block(inference, node, scope) if isinstance(node, ast.Block) else inference.of(node, scope)


def try_(inference: Inference, node: ast.Try, scope: Scope) -> Type | None:
    """The type of a bare `try`; one with `catch` or `finally` has none."""
    if node.catch is not None or node.finally_ is not None:
        return None
    # What is thrown and what is returned both ask for a `try` inside, and so would each of those.
    outer = inference.tries
    inference.tries = {} if outer is None else outer
    if id(node) not in inference.tries:
        inference.tries[id(node)] = _attempted(inference, node, scope)
    found = inference.tries[id(node)]
    inference.tries = outer
    return found


def _attempted(inference: Inference, node: ast.Try, scope: Scope) -> Type:
    """A Result of the block; one that already is a Result isn't wrapped again."""
    value = block(inference, node.body, scope)
    thrown = _union(inference, list(_thrown(inference, node.body, scope)))
    if is_result(value):
        return result_of_types(ok_type(value) or HOLE, _merged(inference, value, thrown))
    return result_of_types(value or HOLE, thrown or HOLE)


def _merged(inference: Inference, value: Type | None, thrown: Type | None) -> Type:
    own = error_type(value) or HOLE
    if thrown is None or own == HOLE:
        return thrown or own
    return type_nodes.union([own, thrown])


def _union(inference: Inference, types: list[Type | None]) -> Type | None:
    """The union; None when one of the types is unknown, or there are none."""
    known = [type for type in types if type is not None]
    return type_nodes.union(known) if known and len(known) == len(types) else None


def _thrown(inference: Inference, block: ast.Block, scope: Scope) -> Iterator[Type | None]:
    """The types of what a block throws, as far as its statements tell."""
    inner = nameless(scope, [])
    for statement in block.statements:
        if isinstance(statement, ast.Let):
            inner = nameless(inner, declared_names(statement))
        elif isinstance(statement, ast.Throw):
            yield inference.of(statement.value, inner)
        elif isinstance(statement, ast.Propagate):
            yield error_type(inference.of(statement.value, inner))
        elif isinstance(statement, ast.If):
            yield from _thrown_in_branches(inference, statement, inner)
        elif isinstance(statement, ast.While | ast.Retry | ast.Try):
            yield from _thrown(inference, statement.body, inner)


def _thrown_in_branches(inference: Inference, node: ast.If, scope: Scope) -> Iterator[Type | None]:
    branch: ast.Node | None = node
    while isinstance(branch, ast.If):
        yield from _thrown(inference, branch.then, scope)
        branch = branch.otherwise
    if isinstance(branch, ast.Block):
        yield from _thrown(inference, branch, scope)


def parallel(inference: Inference, node: ast.Parallel, scope: Scope) -> Type:
    if node.kind == "settle":
        return DICT
    inner = nameless(scope, [node.param] if node.param else [])
    item = block(inference, node.body, inner) or HOLE
    return named("Stream", item) if node.stream else list_of(item)


# Expressions whose kind of value is beyond doubt, so that their methods may be judged. Spec: 03 §9.


#: Kinds that an annotation names beyond doubt; handles and dicts are of many kinds.
_KINDS = frozenset("string int float bool nil bytes duration list set range closure".split())


def certain(inference: Inference, node: ast.Node, scope: Scope) -> Type | None:
    """The type of ``node`` when it is sure to be a value of that kind."""
    if isinstance(node, ast.Str | ast.Interp):
        return STRING
    if isinstance(node, ast.Int | ast.Float | ast.Bool | ast.Nil | ast.RangeTo):
        return inference.of(node, scope)
    if isinstance(node, ast.Duration):
        return DURATION
    if isinstance(node, ast.List):
        return LIST
    if isinstance(node, ast.Closure | ast.FnExpr):
        return CLOSURE
    if isinstance(node, ast.Dict):
        found = inference.of(node, scope)
        return found if isinstance(found, ast.TypeShape) else None
    if isinstance(node, ast.StructLit):
        return named(node.name) if node.name in inference.types.declared.structs else None
    if isinstance(node, ast.Name):
        binding = scope.find(node.name)
        return None if binding is None else binding.certain
    if isinstance(node, ast.Call):
        return _of_call(inference, node, scope)
    return inference.variant(node, scope)


def _of_call(inference: Inference, node: ast.Call, scope: Scope) -> Type | None:
    environment = inference.environment
    if scope.find(node.name) is not None or scope.will_declare(node.name) is not None:
        return None
    if node.name in environment.foreign_functions or node.name in environment.called_anywhere:
        return None
    if node.name in ("Ok", "Err"):
        return named("Result")
    from harnpy.check.types.signatures import certain_result_of

    found = certain_result_of(environment.knowledge.signature(node.name))
    return found and annotated(inference, found)


def annotated(inference: Inference, type: Type) -> Type | None:
    """An annotation, when it names kinds that values of the type are sure to be of."""
    members = inference.types.members(inference.types.unfolded(type))
    return type if all(_names_a_kind(inference, member) for member in members) else None


def _names_a_kind(inference: Inference, type: Type) -> bool:
    if isinstance(type, ast.TypeName):
        declared = inference.types.declared
        return (
            type.name in _KINDS
            or (type.name in declared.structs and type.name in inference.environment.methods)
            or type.name in declared.enums
        )
    return isinstance(type, ast.TypeLiteral | ast.TypeFn)


class Inference:
    """Infers types in one file. ``types`` are those in force: a body may declare more."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.types: Types = environment.types
        self.tries: dict[int, Type] | None = None
        """What was inferred of each `try` in the outermost one that is being inferred, by identity."""

    def of(self, node: ast.Node, scope: Scope) -> Type | None:
        """The type of ``node``; None if it has none."""
        chain = []
        while (step := STEPS.get(type(node))) is not None and not self.begins(node, scope):
            chain.append((step[1], node))
            node = getattr(node, step[0])
        whole = WHOLE.get(type(node))
        if whole is None:
            found = ALWAYS.get(type(node)) or self.variant(node, scope)
        else:
            found = whole(self, node, scope)
        for follow, above in reversed(chain):
            found = follow(self, above, found, scope)
        return found

    def follow(self, node: ast.Node, left: Type | None, scope: Scope) -> Type | None:
        """The type of a link of a chain, whose left side has the type ``left``."""
        step = STEPS.get(type(node))
        return None if step is None else step[1](self, node, left, scope)

    def begins(self, node: ast.Node, scope: Scope) -> bool:
        """Return True if a chain ends with ``node`` though something is on its left: a variant of an enum."""
        return isinstance(node, ast.Member | ast.MethodCall) and self.enum_of(node, scope) is not None

    def enum_of(self, node: ast.Member | ast.MethodCall, scope: Scope) -> ast.EnumDecl | None:
        """The enum of ``E.V`` or ``E.V(…)``."""
        if not isinstance(node.object, ast.Name) or node.optional:
            return None
        found = self.types.declared.enums.get(node.object.name)
        return found if found is not None and scope.find(found.name) is None else None

    def variant(self, node: ast.Node, scope: Scope) -> Type | None:
        """The type of ``E.V`` and ``E.V(…)``; None for every other node."""
        if not isinstance(node, ast.Member | ast.MethodCall):
            return None
        enum = self.enum_of(node, scope)
        if enum is None or not enum.type_params:
            return enum and named(enum.name)
        params = next((v.params for v in enum.variants if v.name == node.name), ())
        args = node.args if isinstance(node, ast.MethodCall) else ()
        given = [
            (param.type, actual)
            for param, arg in zip(params, args, strict=False)
            if param.type is not None and (actual := self.of(arg, scope)) is not None
        ]
        from harnpy.check.types import fitting

        return fitting.applied(self.types, enum.name, enum.type_params, given)

    def sides(self, cond: ast.Node, scope: Scope) -> tuple[Facts, Facts]:
        """Return what holds where ``cond`` is true, and where it is false."""
        from harnpy.check.narrowing import facts_of

        return facts_of(cond, scope.type_of, self.schemas(scope), self.types)

    def schemas(self, scope: Scope) -> Callable[[ast.Node], Type | None]:
        """Return what reads a schema that an expression stands for: variables may hold one."""

        def read(node: ast.Node) -> Type | None:
            from harnpy.check.types.schemas import schema

            return schema(self.types, node, scope.value_of)

        return read

    def narrowed(self, facts: Facts, scope: Scope) -> Scope:
        """A scope inside ``scope`` in which ``facts`` hold."""
        inner = Scope(scope)
        inner.narrow(facts.types, facts.ruled_out)
        return inner


#: The part of a node that its type begins with, and how its type follows from the part's.
STEPS: Mapping[type, tuple[str, Step]] = {
    ast.Binary: ("left", binary),
    ast.Unary: ("operand", lambda i, n, operand, scope: BOOL if n.op == "!" else known(operand)),
    ast.MethodCall: ("object", method_call),
    ast.Member: ("object", member),
    ast.Index: (
        "object",
        lambda i, n, object, scope: None if n.optional else type_nodes.item(object, n.index),
    ),
    ast.Slice: ("object", lambda i, n, object, scope: type_nodes.part(object)),
    ast.Propagate: ("value", propagate),
    ast.TryStar: ("value", lambda i, n, value, scope: value),
}
#: The types of nodes that have the same one wherever they stand.
ALWAYS: Mapping[type, Type] = {
    ast.Int: INT,
    ast.Float: FLOAT,
    ast.Bool: BOOL,
    ast.Nil: NIL,
    ast.Interp: STRING,
    ast.RangeTo: RANGE,
    ast.Throw: NEVER,
    ast.Return: NEVER,
    ast.Break: NEVER,
    ast.Continue: NEVER,
}
WHOLE: Mapping[type, Whole] = {
    ast.Str: lambda i, n, scope: None if n.raw else STRING,
    ast.List: list_,
    ast.Dict: dict_,
    ast.Closure: closure,
    ast.FnExpr: closure,
    ast.StructLit: struct,
    ast.Name: name,
    ast.Call: call,
    ast.Ternary: ternary,
    ast.If: if_,
    ast.Try: try_,
    ast.Parallel: parallel,
}
