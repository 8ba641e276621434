"""What a call sees: its variables, what it has captured, what its file has. Spec: 09 §15.4.

A run of a function keeps the variables of all its blocks, also of those that it has left. Which of them are
meant by their names depends on the place, so they are looked for in the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.syntax import ast
from harnpy.vm.run.calls import UNSET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.vm.resolve.scopes import Resolution, Variable
    from harnpy.vm.walk.activation import Activation

    Value = Any


class Binding:
    """A variable of a run of a function."""

    def __init__(self, activation: Activation, variable: Variable) -> None:
        self._activation = activation
        self.variable = variable

    @property
    def value(self) -> Value:
        return self._activation.read(self.variable)

    def assign(self, value: Value) -> None:
        self._activation.assign(self.variable, value)

    @property
    def has_value(self) -> bool:
        a, variable = self._activation, self.variable
        if variable.in_table:
            return variable.name in a.walker.table
        return variable in a.slots and a.read(variable) is not UNSET


Names = dict[str, Binding]


def captured(a: Activation) -> Names:
    """What a function has taken from around it when it was made."""
    return _bound(a, a.function.captures.values())


def local(a: Activation) -> Names:
    """The parameters and variables of a function that are visible where it is."""
    return _bound(a, [*a.function.params, *_Place(a.walker.resolution, a.at).below(a.function.node)])


def of_file(top: Activation) -> Names:
    """What functions of a file may find in it: what its own statements have bound; ``top`` is their run."""
    place = _Place(top.walker.resolution, top.at)
    return _bound(
        top, [variable for node in top.walker.tree.program.items for variable in place.declares(node)]
    )


def _bound(a: Activation, variables: Any) -> Names:
    bindings = {variable.name: Binding(a, variable) for variable in variables}
    return {name: binding for name, binding in bindings.items() if name != "_" and binding.has_value}


class _Place:
    """A place in a text, and the variables that are declared before it and visible at it."""

    def __init__(self, resolution: Resolution, at: int) -> None:
        self._resolution = resolution
        self._at = at
        self._declared: dict[int, list[Variable]] = {}
        for (node, _), variable in resolution.variables.items():
            self._declared.setdefault(node, []).append(variable)

    def below(self, node: ast.Node) -> Iterator[Variable]:
        """The variables of what is inside a node, those of inner blocks after those of outer ones."""
        for child in node.children():
            yield from self._at_top(child) if isinstance(node, ast.Program) else self._inside(child)

    def _at_top(self, node: ast.Node) -> Iterator[Variable]:
        """The order of a file's items is not that of the text: what has a value has been declared."""
        if self._surrounds(node):
            yield from self._inside(node)
        elif isinstance(node, ast.Pipeline):
            # One that another extends: its variables are visible in the other.
            for statement in node.body.statements:
                yield from self.declares(statement)
        else:
            yield from self.declares(node)

    def _inside(self, node: ast.Node) -> Iterator[Variable]:
        resolution = self._resolution
        if id(node) in resolution.functions:
            yield from self._declared.get(id(node), ()) if not isinstance(node, ast.Parallel) else ()
        elif isinstance(node, ast.Let) and self._at < node.end:
            yield from self._inside(node.value)
        elif id(node) not in resolution.scopes or self._surrounds(node):
            if node.start <= self._at or isinstance(node, ast.FnDecl):
                yield from self._declared.get(id(node), ())
            yield from self.below(node)

    def declares(self, node: ast.Node) -> Iterator[Variable]:
        """What a statement declares, unless something in it is going on."""
        yield from self._declared.get(id(node), ())
        if isinstance(node, ast.Let) and not self._surrounds(node):
            yield from self._declared.get(id(node.target), ())

    def _surrounds(self, node: ast.Node) -> bool:
        return node.start <= self._at < node.end
