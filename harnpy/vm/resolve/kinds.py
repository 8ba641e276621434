"""The kinds of values that expressions surely have, so that generated code can leave out tests.

A kind is ``"int"``, ``"num"`` (an int or a float, never a bool), ``"bool"``, ``"str"``, ``"list"``,
``"dict"``, a `Record`, `Items` or ``"any"``. A variable is everything its assigned expressions are, one of
a loop everything that it runs over, a call everything that the function returns. All start from the best
guess, None, and only ever widen, until nothing changes. `+ - *` on ints stay ints because they wrap
(02 §2.1).

A `fn` whose callers in the file know the kinds of their arguments has a `Version` for those, beside the
function for any values, and they call it straight.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from harnpy.vm.resolve import FunctionScope, Reference, Resolution, Variable

    Kind: TypeAlias = "str | Record | Items"

WRAPPING = frozenset("+-*")
_NUMBERS = ("int", "num")
#: The kinds of values that have no parts.
PLAIN = ("int", "num", "bool", "str")
_COMPARISONS = frozenset(["==", "!=", "<", ">", "<=", ">=", "in", "not in", "&&", "||"])
_KINDS_OF_LITERALS: dict[type[ast.Node], str] = {
    ast.Int: "int",
    ast.Float: "num",
    ast.Bool: "bool",
    ast.Str: "str",
    ast.Interp: "str",
}
_BUILTINS = {"len": "int", "to_string": "str", "type_of": "str"}
#: Nodes that are functions of their own.
_FUNCTIONS = (ast.FnDecl, ast.ToolDecl, ast.Closure, ast.FnExpr, ast.Spawn, ast.Parallel)
#: What gains by knowing kinds; a function without any has no version.
_GAINING = (ast.Binary, ast.Unary, ast.Member, ast.Index, ast.Interp, ast.Call)
#: Records are known to this depth.
_DEEPEST = 4


class Record:
    """A dict or struct of which these fields are known, with their kinds; ``struct`` is "" for a dict."""

    __slots__ = ("depth", "fields", "struct")

    def __init__(self, struct: str, fields: dict[str, Kind | None]) -> None:
        self.struct = struct
        self.fields = fields
        self.depth: int = 1 + max(map(depth_of, fields.values()), default=0)

    def like(self, other: Record) -> bool:
        """Return True if both have the same fields."""
        return self.struct == other.struct and self.fields.keys() == other.fields.keys()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and (self.struct, self.fields) == (other.struct, other.fields)

    __hash__ = None  # type: ignore[assignment]


class Items:
    """A list of items of the kind ``of``; with the ``base`` "any" a range or an iterator that gives those."""

    __slots__ = ("base", "depth", "of")

    def __init__(self, base: str, of: Kind | None) -> None:
        self.base = base
        self.of = of
        self.depth: int = 1 + depth_of(of)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Items) and (self.base, self.of) == (other.base, other.of)

    __hash__ = None  # type: ignore[assignment]


def depth_of(kind: Kind | None) -> int:
    return 0 if kind is None or isinstance(kind, str) else kind.depth


def items_of(base: str, of: Kind | None) -> Kind:
    """A list, or what else gives items, of items of the kind ``of``."""
    found = Items(base, of)
    return found if of != "any" and found.depth <= _DEEPEST else base


def plain(kind: Kind) -> str:
    """The kind without what is known of parts."""
    if isinstance(kind, str):
        return kind
    return kind.base if isinstance(kind, Items) else "any" if kind.struct else "dict"


class View:
    """The kinds of nodes as the file has them, or, with ``own``, a version of a function."""

    def __init__(self, kinds: Kinds, own: dict[Variable, Kind | None]) -> None:
        self.kinds = kinds
        self.own = own
        self.known: dict[int, Kind] = {}

    def kind(self, node: ast.Node) -> str:
        """The kind of ``node``, once all are settled; "dict" or "any" for a record."""
        return plain(self.shape(node))

    def shape(self, node: ast.Node) -> Kind:
        """The same with all that is known of parts; kept, because chains look it up often."""
        kind = self.known.get(id(node))
        if kind is None:
            kind = self.known[id(node)] = self.find(node) or "any"
        return kind

    def ask(self, node: ast.Node) -> Kind | None:
        return self.shape(node) if self.kinds.settled else self.find(node)

    def of_variable(self, variable: Variable) -> Kind | None:
        return self.own.get(variable, variable.kind)

    def find(self, node: ast.Node) -> Kind | None:
        """The kind, or None for what depends on something that has no kind yet."""
        if literal := _KINDS_OF_LITERALS.get(type(node)):
            return literal
        match node:
            case ast.Name():
                ref = self.kinds.refs.get(id(node))
                variable = ref.variable if ref and ref.kind == "local" else None
                return self.of_variable(variable) if variable else "any"
            case ast.Binary(op=op) if op in WRAPPING:
                return self.wrapping(node)
            case ast.Binary(op="/" | "%"):
                return self.of_numbers([self.ask(node.left), self.ask(node.right)])
            case ast.Binary(op=op):
                return "bool" if op in _COMPARISONS else "any"
            case ast.Unary(op="!"):
                return "bool"
            case ast.Unary(op="-", operand=operand):
                return self.of_numbers([self.ask(operand)])
            case ast.Call():
                return self.of_call(node)
            case ast.MethodCall(optional=False):
                return self.of_method_call(node)
            case ast.Member(optional=False):
                return self.of_field(self.ask(node.object), node.name)
            case ast.Ternary():
                return join(self.ask(node.then), self.ask(node.otherwise))
            case ast.List():
                of: Kind | None = None
                for item in node.items:
                    of = join(of, self.items(item.value) if isinstance(item, ast.Spread) else self.ask(item))
                return items_of("list", of)
            case ast.RangeTo():
                return Items("any", "int")
            case ast.Dict():
                return self.record("", node.entries)
            case ast.StructLit():
                return self.struct(node)
        return "any"

    def wrapping(self, node: ast.Binary) -> Kind | None:
        left, right = self.ask(node.left), self.ask(node.right)
        if node.op == "+" and not (is_number(left) and is_number(right)):
            # Of what is added to something else that nothing is known of yet, nothing is known either.
            return sum_of(left, right) if left and right else None
        return self.of_numbers([left, right])

    def items(self, node: ast.Node) -> Kind | None:
        """The kind of the items of what ``node`` gives, in a loop."""
        kind = self.ask(node)
        return kind.of if isinstance(kind, Items) else kind and "any"

    def of_numbers(self, kinds: Sequence[Kind | None]) -> Kind | None:
        """The kind of what is computed of numbers: if one may be a float, it may be one."""
        known = [kind for kind in kinds if kind is not None]
        if any(kind not in _NUMBERS for kind in known):
            return "any"
        return None if not known else "num" if "num" in known else "int"

    def of_call(self, node: ast.Call) -> Kind | None:
        ref = self.kinds.refs.get(id(node))
        if ref and ref.kind == "builtin":
            return Items("any", "int") if node.name == "range" else _BUILTINS.get(node.name, "any")
        fn = called(ref)
        if fn is None or id(fn) not in self.kinds.returns:
            return "any"
        version = self.version(fn, node.args)
        return version.returns if version else self.kinds.returns[id(fn)]

    def of_method_call(self, node: ast.MethodCall) -> Kind | None:
        of = self.ask(node.object)
        if isinstance(of, Items):
            return self.of_items(node, of)
        fn = self.method_of(of, node)
        if fn is None or id(fn) not in self.kinds.returns:
            return of and "any"
        version = self.version(fn, (node.object, *node.args), of)
        return version.returns if version else self.kinds.returns[id(fn)]

    def of_items(self, node: ast.MethodCall, of: Items) -> Kind | None:
        """What a method of a list or an iterator gives: no `impl` can have another by its name."""
        match node.name, node.args:
            case "to_list", () if of.base != "list":
                return items_of("list", of.of)
            case "push", (arg,) if of.base == "list" and not isinstance(arg, ast.Spread):
                return items_of("list", join(of.of, self.ask(arg)))
            case "filter", (ast.Closure() | ast.FnExpr(),):
                return of
            case "map", (ast.Closure() | ast.FnExpr() as closure,):
                body = self.kinds.bodies[id(closure)]
                if body.gives is None:
                    return of.base
                own = {**self.own, body.scope.params[0]: of.of}
                return items_of(of.base, View(self.kinds, own).find(body.gives))
        return "any"

    def method(self, node: ast.MethodCall) -> ast.FnDecl | None:
        """The method of the file's only such `impl` that ``node`` calls, if it calls one."""
        return self.method_of(self.ask(node.object), node) if self.kinds.methods else None

    def method_of(self, of: Kind | None, node: ast.MethodCall) -> ast.FnDecl | None:
        if not isinstance(of, Record) or node.optional:
            return None
        return self.kinds.methods.get((of.struct, node.name))

    def version(self, fn: ast.FnDecl, args: Sequence[ast.Node], first: Kind | None = None) -> Version | None:
        """The version of ``fn`` for these arguments, if their kinds are those that it is for.

        ``first``: the kind of the first one, where it is known: to ask again would double the work at each
        call of a chain.
        """
        version = self.kinds.versions.get(id(fn))
        if version is None or not fit(args, version.params):
            return None
        kinds = [first or self.ask(args[0]), *map(self.ask, args[1:])]
        return version if all(map(covers, version.params, kinds)) else None

    def of_field(self, of: Kind | None, name: str) -> Kind | None:
        return of.fields.get(name, "any") if isinstance(of, Record) else of and "any"

    def struct(self, node: ast.StructLit) -> Kind | None:
        """Only declared fields are stored (02 §15.1)."""
        declared = self.kinds.structs.get(node.name)
        names = {field.name for field in declared.fields} if declared else None
        record = self.record(node.name, node.entries)
        if not isinstance(record, Record) or (names is not None and not names.issuperset(record.fields)):
            return "any"
        return record

    def record(self, struct: str, entries: Sequence[ast.Node]) -> Kind | None:
        fields: dict[str, Kind | None] = {}
        for entry in entries:
            if not isinstance(entry, ast.DictEntry) or not isinstance(entry.key, ast.Str):
                return "any" if struct else "dict"
            fields[entry.key.value] = self.ask(entry.value)
        record = Record(struct, fields)
        return record if record.depth <= _DEEPEST else "any" if struct else "dict"


class Version:
    """A function for arguments of the kinds ``params``; ``returns`` is the kind of its results."""

    def __init__(self, kinds: Kinds, body: Body, params: list[Kind]) -> None:
        self.params = params
        self.returns: Kind | None = None
        self.scope = body.scope
        locals_ = [v for node in walk(body.scope.node) for v in kinds.declared.get(id(node), ())]
        assigned = [own for own in self.scope.captures.values() if own.values]
        own_fn = self.scope.own_variable
        self.variables = [v for v in (*locals_, *assigned) if v.role != "param" and v is not own_fn]
        self.view = View(kinds, dict.fromkeys(self.variables))
        self.widen(params)

    def widen(self, params: list[Kind]) -> None:
        """Be for arguments of ``params``, too."""
        self.params = params
        nodes = self.scope.node.params  # type: ignore[attr-defined]
        for variable, param, kind in zip(self.scope.params, nodes, params, strict=True):
            checked = of_param(param)
            self.view.own[variable] = kind if covers(checked, kind) else checked

    def passes(self, param: ast.Param, i: int) -> bool:
        """Return True if the annotation of the parameter at ``i`` need not be checked."""
        checked = of_param(param)
        return checked != "any" and covers(checked, self.params[i])

    @property
    def gains(self) -> bool:
        """Return True if it knows more than the function for any arguments."""
        nodes = self.scope.node.params  # type: ignore[attr-defined]
        return any(kind not in ("any", of_param(p)) for p, kind in zip(nodes, self.params, strict=True))


class Body:
    """What matters of one function: its results, the functions that it calls."""

    __slots__ = ("calls", "gives", "impls", "may_have_version", "method_calls", "results", "scope")

    def __init__(self, kinds: Kinds, scope: FunctionScope) -> None:
        self.scope = scope
        self.calls: list[tuple[ast.Call, ast.FnDecl]] = []
        self.method_calls: list[ast.MethodCall] = []
        self.impls: list[ast.ImplDecl] = []
        self.results: list[ast.Node | None] | None = []
        """The expressions that it returns, with None for nil; None if it returns what nobody knows."""
        node = scope.node
        gains = nests = False
        waiting = node.children()
        while waiting:
            part = waiting.pop()
            if isinstance(part, _FUNCTIONS):
                nests = True
                continue
            waiting += part.children()
            gains = gains or isinstance(part, _GAINING)
            if isinstance(part, ast.Return):
                self.results.append(part.value)
            elif isinstance(part, ast.Propagate):
                self.results.append(None)
            elif isinstance(part, ast.Call) and (fn := called(kinds.refs.get(id(part)))):
                self.calls.append((part, fn))
            elif isinstance(part, ast.MethodCall):
                self.method_calls.append(part)
            elif isinstance(part, ast.ImplDecl):
                self.impls.append(part)
        params = getattr(node, "params", ())
        self.gives = None if self.results or scope.yields else only_expression(node)
        """Of a closure with one plain parameter, the expression that is its result."""
        declared = isinstance(node, ast.FnDecl) and not node.gen and not scope.yields
        if not declared:
            self.results = None
        elif not leaves(node.body):  # type: ignore[attr-defined]
            self.results.append(None)
        rest = any(param.rest for param in params)
        self.may_have_version = declared and bool(params) and gains and not nests and not rest

    def returned(self, view: View) -> Kind | None:
        kind: Kind | None = None
        for result in self.results or ():
            kind = join(kind, view.find(result) if result else "any")
        return kind


class Kinds:
    """The kinds of the nodes of one resolved program."""

    def __init__(self, resolution: Resolution) -> None:
        self.refs = resolution.refs
        self.structs = resolution.structs
        self.returns: dict[int, Kind | None] = {}
        """Of each `fn`, by its node, the kind of its results when it is called with anything."""
        self.versions: dict[int, Version] = {}
        self.settled = False
        self.everywhere = View(self, {})
        self.declared: dict[int, list[Variable]] = {}
        for (node, _), variable in resolution.variables.items():
            self.declared.setdefault(node, []).append(variable)
        self.bodies = {key: Body(self, scope) for key, scope in resolution.functions.items()}
        self.returns = {key: None for key, body in self.bodies.items() if body.results is not None}
        variables = set(resolution.variables.values())
        for function in resolution.functions.values():
            variables.update(function.captures.values())
            params = getattr(function.node, "params", ())
            for param, variable in zip(params, function.params, strict=False):
                variable.kind = of_param(param)
                variables.discard(variable)
        self.methods = self._methods()
        while self._widen(variables):
            pass
        self.versions = {key: version for key, version in self.versions.items() if version.gains}
        self.settled = True

    def kind(self, node: ast.Node) -> str:
        return self.everywhere.kind(node)

    def _methods(self) -> dict[tuple[str, str], ast.FnDecl]:
        """The methods that the file declares in one `impl` only, outside of functions, by struct and name."""
        found: dict[tuple[str, str], ast.FnDecl | None] = {}
        for body in self.bodies.values():
            for impl in body.impls:
                for fn in impl.methods:
                    once = (impl.name, fn.name) not in found and body.scope.parent is None
                    found[impl.name, fn.name] = fn if once else None
        return {key: fn for key, fn in found.items() if fn}

    def _widen(self, variables: Iterable[Variable]) -> bool:
        """Find every kind again, as it follows from the others; return whether one has changed."""
        changed = False
        for variable in variables:
            kind = join(variable.kind, self._of_variable(self.everywhere, variable))
            if kind != variable.kind:
                variable.kind, changed = kind, True
        for key in self.returns:
            kind = join(self.returns[key], self.bodies[key].returned(self.everywhere))
            if kind != self.returns[key]:
                self.returns[key], changed = kind, True
        for key, version in list(self.versions.items()):
            changed |= self._widen_version(version, self.bodies[key])
        for key, body in self.bodies.items():
            # Called by itself with anything, a function learns nothing of its callers.
            calls = [(args, fn) for args, fn in self._called(self.everywhere, body) if id(fn) != key]
            changed |= self._learn(self.everywhere, calls)
            if key in self.versions:
                view = self.versions[key].view
                changed |= self._learn(view, self._called(view, body))
        return changed

    def _called(self, view: View, body: Body) -> list[tuple[Sequence[ast.Node], ast.FnDecl]]:
        """The functions and methods of the file that ``body`` surely calls, each with its arguments."""
        found: list[tuple[Sequence[ast.Node], ast.FnDecl]] = [(call.args, fn) for call, fn in body.calls]
        for call in body.method_calls:
            if fn := view.method(call):
                found.append(((call.object, *call.args), fn))
        return found

    def _widen_version(self, version: Version, body: Body) -> bool:
        changed, own = False, version.view.own
        for variable in version.variables:
            kind = join(own[variable], self._of_variable(version.view, variable))
            if kind != own[variable]:
                own[variable], changed = kind, True
        kind = join(version.returns, body.returned(version.view))
        if kind != version.returns:
            version.returns, changed = kind, True
        return changed

    def _learn(self, view: View, calls: Iterable[tuple[Sequence[ast.Node], ast.FnDecl]]) -> bool:
        """Note the kinds of arguments that functions are called with; return whether that was news."""
        changed = False
        for args, fn in calls:
            body = self.bodies.get(id(fn))
            if body is None or not body.may_have_version or not fit(args, fn.params):
                continue
            found = [view.find(arg) for arg in args]
            kinds = [kind for kind in found if kind is not None]
            if len(kinds) < len(found) or all(kind == "any" for kind in kinds):
                continue
            version = self.versions.get(id(fn))
            if version is None:
                self.versions[id(fn)], changed = Version(self, body, kinds), True
                continue
            wider = [join(a, b) or "any" for a, b in zip(version.params, kinds, strict=True)]
            if wider != version.params:
                version.widen(wider)
                changed = True
        return changed

    def _of_variable(self, view: View, variable: Variable) -> Kind | None:
        """The kind of what is assigned to a variable, parameters apart."""
        if variable.opaque or variable.late or variable.in_table:
            return "any"
        kind: Kind | None
        if variable.captured_from:
            kind = variable.captured_from.kind
        elif variable.iterable is not None:
            kind = view.items(variable.iterable)
        else:
            kind = None if variable.values else "any"
        for value in variable.values:
            kind = join(kind, view.find(value))
        return plain(kind) if variable.changed and kind else kind


def only_expression(node: ast.Node) -> ast.Node | None:
    """What ``{ x -> x + 1 }`` consists of."""
    match node:
        case ast.Closure(params=(param,)) | ast.FnExpr(params=(param,)) if len(node.body.statements) == 1:
            return None if param.type or param.default or param.rest else node.body.statements[0]
    return None


def called(ref: Reference | None) -> ast.FnDecl | None:
    """The `fn` that a call of ``ref`` surely calls."""
    variable = ref.variable if ref and ref.kind == "local" else None
    return variable.known_fn if variable and not variable.in_box else None


def fit(args: Sequence[ast.Node], params: Sequence[object]) -> bool:
    """Return True if ``args`` are one for each parameter; nobody knows how many a spread one is."""
    return len(args) == len(params) and not any(isinstance(arg, ast.Spread) for arg in args)


def of_param(param: ast.Param) -> str:
    """Return what a parameter surely holds: annotations are checked on entry (02 §20)."""
    if param.rest:
        return "list"
    if isinstance(param.type, ast.TypeName) and not param.type.args:
        checked = {"int": "num", "float": "num", "string": "str", "bool": "bool", "list": "list"}
        return checked.get(param.type.name, "any")
    return "any"


def join(a: Kind | None, b: Kind | None) -> Kind | None:
    """The narrowest kind that covers both; None is "nothing known yet"."""
    if a is None or a == b:
        return b
    if b is None:
        return a
    if a in _NUMBERS and b in _NUMBERS:
        return "num"
    if isinstance(a, Record) and isinstance(b, Record) and a.like(b):
        return Record(a.struct, {name: join(kind, b.fields[name]) for name, kind in a.fields.items()})
    if isinstance(a, Items) and isinstance(b, Items) and a.base == b.base:
        return items_of(a.base, join(a.of, b.of))
    return plain(a) if plain(a) == plain(b) else "any"


def covers(wide: Kind, kind: Kind | None) -> bool:
    """Return True if every value of ``kind`` is one of ``wide``."""
    return wide == "any" or join(wide, kind) == wide


def sum_of(left: Kind, right: Kind) -> Kind:
    """The kind of a sum of strings, lists or dicts."""
    kind = plain(left)
    if kind not in ("str", "list", "dict") or plain(right) != kind:
        return "any"
    return kind if kind == "dict" else join(left, right) or "any"


def is_number(kind: Kind | None) -> bool:
    return kind is None or kind in _NUMBERS


def is_dict(kind: Kind | None) -> bool:
    return kind == "dict" or (isinstance(kind, Record) and not kind.struct)


def leaves(node: ast.Node | None) -> bool:
    """Return True if what follows ``node`` in its block doesn't run after it."""
    if isinstance(node, ast.Block):
        return bool(node.statements) and leaves(node.statements[-1])
    if isinstance(node, ast.If):
        return leaves(node.then) and leaves(node.otherwise)
    return isinstance(node, ast.Return | ast.Throw | ast.Break | ast.Continue)
