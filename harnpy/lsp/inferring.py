"""The type of an expression for somebody who writes: also where the checker doesn't judge. Spec: 12 §3.3.

The checker says nothing of a value that may be anything by the time it is used. What is most likely is enough
here: the value that a variable of the file begins with, the elements of a list in a closure that one of its
methods calls, the fields of a field.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from harnpy.check.scopes import Binding, Scope
from harnpy.check.types import type_nodes
from harnpy.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.check.inference import Inference
    from harnpy.check.types.type_nodes import Type

#: Methods whose closure gets what is there so far before the element.
_FOLDING = frozenset(["reduce", "fold", "scan"])
#: So many variables of the file are followed, each from the value of another.
_DEPTH = 8


class Guess:
    """Infers types where ``nodes`` are around the place, the outermost first."""

    def __init__(self, inference: Inference, scope: Scope, nodes: Sequence[ast.Node] = ()) -> None:
        self._inference = inference
        self.scope = Scope(scope)
        self._file = self.scope
        while self._file.parent is not None:
            self._file = self._file.parent
        self._following: list[str] = []
        for outer, inner in pairwise(nodes):
            if isinstance(outer, ast.MethodCall) and isinstance(inner, ast.Closure | ast.FnExpr):
                self._enter(outer, inner)

    def _enter(self, call: ast.MethodCall, closure: ast.Closure | ast.FnExpr) -> None:
        """Give the parameters of a closure the types of what the method calls it with."""
        object = self.of(call.object)
        element = type_nodes.element(object)
        if isinstance(object, ast.TypeName) and object.name in ("set", "iter") and object.args:
            element = type_nodes.known(object.args[0])
        params = closure.params[1:] if call.name in _FOLDING else closure.params[:1]
        for param in params:
            if element is not None and param.type is None and not param.rest:
                self.scope.names[param.name] = Binding(param.name, param, element)

    def of(self, node: ast.Node) -> Type | None:
        """Return the type of an expression; None if nothing tells it."""
        for name in self._names(node):
            self._know(name)
        return self._of(node)

    def _names(self, node: ast.Node) -> list[str]:
        return [each.name for each in ast.walk(node) if isinstance(each, ast.Name)]

    def _of(self, node: ast.Node) -> Type | None:
        found = self._inference.of(node, self.scope)
        if found is not None:
            return found
        if isinstance(node, ast.Member):
            return self.field(self.of(node.object), node.name)
        if isinstance(node, ast.MethodCall):
            return self._returned(self.of(node.object), node)
        if isinstance(node, ast.Index):
            object = self.of(node.object)
            return None if object is None else type_nodes.item(self._without_nil(object), node.index)
        if isinstance(node, ast.Pipe) and isinstance(node.right, ast.Name):
            return self._of(ast.Call(node.start, node.end, node.right.name, (), (node.left,)))
        return None

    def _know(self, name: str) -> None:
        """Look up the value of a variable of the file, which the checker gives no type."""
        found = self.scope.find(name)
        own = self._file.names.get(name)
        if (
            found is None
            or own is None
            or found.node is not own.node
            or found.type is not None
            or found.fn is not None
        ):
            return
        if name in self._following or len(self._following) > _DEPTH:
            return
        self._following.append(name)
        for item in self._inference.environment.items:
            if isinstance(item, ast.Let) and getattr(item.target, "name", None) == name:
                type = item.type or self.of(item.value)
                if type is not None:
                    self.scope.names[name] = Binding(name, found.node, type, mutable=found.mutable)
                break
        self._following.pop()

    def field(self, object: Type | None, name: str) -> Type | None:
        """Return the type of a field of a struct or shape."""
        for member in self.members(object):
            found = type_nodes.field(self.shape(member), name)
            if found is not None:
                return found
        return None

    def shape(self, type: Type) -> Type:
        """Return the shape of a struct; any other type is itself."""
        types = self._inference.types
        is_struct = isinstance(type, ast.TypeName) and type.name in types.declared.structs
        return (types.shape_of(type) if is_struct else None) or type  # type: ignore[arg-type]

    def members(self, type: Type | None) -> list[Type]:
        """Return what a value of a type may be, without nil."""
        found = () if type is None else self._inference.types.members(self._inference.types.unfolded(type))
        return [each for each in found if not type_nodes.is_named(each, "nil")]

    def _without_nil(self, type: Type) -> Type:
        members = self.members(type)
        return members[0] if len(members) == 1 else type

    def _returned(self, object: Type | None, node: ast.MethodCall) -> Type | None:
        from harnpy.check.types.methods import method_result

        for member in self.members(object):
            method = self.method(member, node.name)
            if method is not None:
                return method.returns
            found = method_result(self._inference.types, member, node.name)
            if found is not None:
                return found
        return None

    def method(self, type: Type, name: str) -> ast.FnDecl | None:
        """Return a method that the file declares for a struct or enum."""
        owner = type.name if isinstance(type, ast.TypeName) else ""
        for item in self._inference.environment.items if owner else ():
            if isinstance(item, ast.ImplDecl) and item.name == owner:
                for method in item.methods:
                    if method.name == name:
                        return method
        return None
