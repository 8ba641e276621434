"""Which expressions are surely ints, numbers, strings …, so that generated code can skip the tests.

Kinds: ``"int"``, ``"num"`` (an int or a float, never a bool), ``"bool"``, ``"str"``, ``"list"``,
``"dict"`` and ``"any"``. A variable is everything its assigned expressions are; the fixpoint starts
from the best guess and only ever widens. `+ - *` on ints stay ints because they wrap (02 §2.1).
"""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.resolve.scopes import Resolution, Variable

RING = frozenset("+-*")
_COMPARISONS = frozenset(["==", "!=", "<", ">", "<=", ">=", "in", "not in", "&&", "||"])
_LITERALS: dict[type[ast.Node], str] = {
    ast.Int: "int",
    ast.Float: "num",
    ast.Bool: "bool",
    ast.Str: "str",
    ast.Interp: "str",
    ast.List: "list",
    ast.Dict: "dict",
}
_BUILTINS = {"len": "int", "to_string": "str", "type_of": "str"}


class Kinds:
    """The kinds of the nodes of one resolved program."""

    def __init__(self, resolution: Resolution) -> None:
        self.refs = resolution.refs
        self.known: dict[int, str] = {}
        self.settled = False
        self.settle(resolution)
        self.settled = True

    def settle(self, resolution: Resolution) -> None:
        variables = set(resolution.variables.values())
        for function in resolution.functions.values():
            variables.update(function.captures.values())
            params = getattr(function.node, "params", ())
            for param, variable in zip(params, function.params, strict=False):
                variable.kind = _of_param(param)
                variables.discard(variable)
        changed = True
        while changed:
            changed = False
            for variable in variables:
                kind = self.of_variable(variable)
                if kind != variable.kind:
                    variable.kind, changed = kind, True

    def of_variable(self, variable: Variable) -> str | None:
        """The kind of what is assigned to a variable, parameters apart."""
        if variable.opaque or variable.late or variable.in_table:
            return "any"
        if variable.captured_from:
            kind = variable.captured_from.kind
        elif variable.role == "for":
            kind = "int"
        else:
            kind = None if variable.values else "any"
        for value in variable.values:
            kind = join(kind, self.kind_or_none(value))
        return kind

    def kind(self, node: ast.Node) -> str:
        """The kind of ``node``, once the variables are settled; kept, because chains look it up often."""
        kind = self.known.get(id(node))
        if kind is None:
            kind = self.known[id(node)] = self.kind_or_none(node) or "any"
        return kind

    def kind_or_none(self, node: ast.Node) -> str | None:
        """The kind, or None for what depends on variables that have no kind yet."""
        if literal := _LITERALS.get(type(node)):
            return literal
        match node:
            case ast.Name():
                ref = self.refs.get(id(node))
                return ref.variable.kind if ref and ref.kind == "local" and ref.variable else "any"
            case ast.Binary(op=op) if op in RING:
                return self.ring(node)
            case ast.Binary(op=op):
                return "bool" if op in _COMPARISONS else "any"
            case ast.Unary(op="!"):
                return "bool"
            case ast.Unary(op="-", operand=operand):
                kind = self.kind_or_none(operand)
                return kind if kind in ("int", "num", None) else "any"
            case ast.Call(name=name):
                ref = self.refs.get(id(node))
                return _BUILTINS.get(name, "any") if ref and ref.kind == "builtin" else "any"
        return "any"

    def ring(self, node: ast.Binary) -> str | None:
        ask = self.kind if self.settled else self.kind_or_none
        left, right = ask(node.left), ask(node.right)
        if left is None or right is None:
            return right if left is None else left
        if left in ("int", "num") and right in ("int", "num"):
            return join(left, right)
        if node.op == "+" and left == right and left in ("str", "list", "dict"):
            return left
        return "any"


def _of_param(param: ast.Param) -> str:
    """What a parameter surely holds: annotations are checked on entry (02 §20)."""
    if param.rest:
        return "list"
    if isinstance(param.type, ast.TypeName) and not param.type.args:
        checked = {"int": "num", "float": "num", "string": "str", "bool": "bool", "list": "list"}
        return checked.get(param.type.name, "any")
    return "any"


def join(a: str | None, b: str | None) -> str | None:
    """The narrowest kind that covers both; None is "nothing known yet"."""
    if a is None or a == b:
        return b
    if b is None:
        return a
    return "num" if {a, b} == {"int", "num"} else "any"
