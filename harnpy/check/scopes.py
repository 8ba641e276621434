"""What names stand for at one place of a program: bindings, the blocks they live in, facts above them.

Facts (03 §6) are a layer of a block: a view of a binding under the same name, gone with the block. A scope
knows also what its block will declare later, for functions that are called later (02 §7.4).
"""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NOTHING: frozenset[str] = frozenset()


class Binding:
    """One name. ``type`` is what it holds here, ``declared`` what it may be assigned; None: no type.

    ``certain`` is the type when the kind of value is beyond doubt (03 §9), ``fn`` the declaration of a
    function, ``value`` the expression a `let` was bound to. ``inferred``: the type is that of the first
    value; ``widens``: that was `nil`. ``excluded`` are the kinds that `type_of` has ruled out.
    """

    __slots__ = (
        "certain",
        "declared",
        "excluded",
        "fn",
        "inferred",
        "mutable",
        "name",
        "node",
        "type",
        "value",
        "widens",
    )

    def __init__(
        self,
        name: str,
        node: ast.Node | None,
        type: ast.Node | None = None,
        *,
        mutable: bool = False,
        fn: ast.FnDecl | None = None,
        value: ast.Node | None = None,
        certain: ast.Node | None = None,
        inferred: bool = False,
        widens: bool = False,
    ) -> None:
        self.name = name
        self.node = node
        self.type = type
        self.declared = type
        self.mutable = mutable
        self.fn = fn
        self.value = value
        self.certain = certain
        self.inferred = inferred
        self.widens = widens
        self.excluded = NOTHING

    def view(self, type: ast.Node | None) -> Binding:
        """The same variable where it is known to be a ``type``; it may be assigned what it always may."""
        other = Binding(
            self.name,
            self.node,
            type,
            mutable=self.mutable,
            fn=self.fn,
            value=self.value,
            certain=type if self.certain is not None else None,
            inferred=self.inferred,
            widens=self.widens,
        )
        other.declared = self.declared
        other.excluded = self.excluded
        return other

    def restored(self) -> Binding:
        """The variable after an assignment: whatever it is declared as."""
        other = self.view(self.declared)
        other.excluded = NOTHING
        other.value = None
        return other

    def untyped(self) -> Binding:
        """The variable as a nested function sees it: a name."""
        return Binding(self.name, self.node, mutable=self.mutable, fn=self.fn)


class Scope:
    """A block. ``function``: it begins a function, whose body runs when it is called.

    ``opaque``: what is around it is seen by name alone (03 §5, nested functions).
    """

    __slots__ = ("function", "later", "names", "opaque", "parent", "views")

    def __init__(self, parent: Scope | None, *, function: bool = False, opaque: bool = False) -> None:
        self.parent = parent
        self.function = function
        self.opaque = opaque
        self.names: dict[str, Binding] = {}
        self.views: dict[str, Binding] = {}
        self.later: dict[str, ast.Node] = {}

    def find(self, name: str) -> Binding | None:
        """Return what ``name`` is here, the facts considered."""
        scope: Scope | None = self
        hidden = False
        while scope is not None:
            found = scope.views.get(name) or scope.names.get(name)
            if found is not None:
                return found.untyped() if hidden else found
            hidden = hidden or scope.opaque
            scope = scope.parent
        return None

    def type_of(self, name: str) -> ast.Node | None:
        found = self.find(name)
        return None if found is None else found.type

    def value_of(self, name: str) -> ast.Node | None:
        """The expression that a `let` has bound ``name`` to."""
        found = self.find(name)
        return None if found is None else found.value

    def declare(self, binding: Binding) -> None:
        """Bind a name from here on; `_` is never bound."""
        if binding.name != "_":
            self.names[binding.name] = binding
            self.views.pop(binding.name, None)
            self.later.pop(binding.name, None)

    def narrow(self, facts: Mapping[str, ast.Node], excluded: Mapping[str, frozenset[str]]) -> None:
        """Let facts hold from here to the end of the block."""
        for name, type in facts.items():
            found = self.find(name)
            if found is not None:
                self.views[name] = found.view(type)
        for name, kinds in excluded.items():
            found = self.find(name)
            if found is not None:
                view = found.view(found.type)
                view.excluded = found.excluded | kinds
                self.views[name] = view

    def will_declare(self, name: str) -> ast.Node | None:
        """The declaration that a later statement of an enclosing block has for ``name``.

        A function sees what is declared after it by the time it is called; the statements of one and the
        same function don't, but for functions (02 §7.4).
        """
        scope: Scope | None = self
        inside = False
        while scope is not None:
            node = scope.later.get(name)
            if node is not None and (inside or isinstance(node, ast.FnDecl)):
                return node
            inside = inside or scope.function
            scope = scope.parent
        return None

    def visible(self) -> Iterator[str]:
        """The names that are declared by now, from the innermost block outward, sorted within one."""
        scope: Scope | None = self
        while scope is not None:
            functions = (name for name, node in scope.later.items() if isinstance(node, ast.FnDecl))
            yield from sorted({*scope.names, *functions})
            scope = scope.parent

    def locals(self) -> Iterator[Binding]:
        """Every variable as it is now, innermost first."""
        seen = set()
        scope: Scope | None = self
        while scope is not None:
            for name in {**scope.names, **scope.views}:
                if name not in seen:
                    seen.add(name)
                    yield self.find(name)  # type: ignore[misc]
            scope = scope.parent

    def repeat(self, body: ast.Block) -> None:
        """Forget what may hold only the first time that ``body``, a loop's, is run. Spec: 03 §5, §6."""
        for name, keeps in assigned(body):
            found = self.find(name)
            if found is not None and _is_open(found, keeps):
                self.views[name] = found.view(None)


#: Values of the kind that a variable of theirs has had before.
_KEEPING = (ast.Int, ast.Float, ast.Str, ast.Interp, ast.Bool)
_ARITHMETIC = frozenset("+-*/%") | {"**"}


def _is_open(found: Binding, keeps: bool) -> bool:
    """Return True if a variable may hold something else next time; ``keeps``: not what is assigned here."""
    if found.widens or found.type is not found.declared:
        return True
    is_plain = isinstance(found.type, ast.TypeName) and not found.type.args
    return found.inferred and not (is_plain and keeps)


def assigned(block: ast.Node) -> Iterator[tuple[str, bool]]:
    """Yield the variables that ``block`` assigns, each with True if the value is surely of their kind."""
    for node in ast.walk(block):
        if isinstance(node, ast.Assign):
            root = node.target
            while isinstance(root, ast.Member | ast.Index):
                root = root.object
            if isinstance(root, ast.Name):
                yield root.name, root is node.target and _keeps(node)


def _keeps(node: ast.Assign) -> bool:
    value = node.value
    is_arithmetic = isinstance(value, ast.Binary) and value.op in _ARITHMETIC
    return node.op != "=" or is_arithmetic or isinstance(value, _KEEPING)
