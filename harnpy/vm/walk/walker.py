"""What the activations of one unit share: its names, its functions, the Vm that it runs on."""

from __future__ import annotations

from harnpy.vm.resolve.annotations import annotation_spec
from harnpy.vm.resolve.tree import signature
from harnpy.vm.walk.growing import growing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from harnpy.syntax import ast
    from harnpy.vm.modules.linker import Linker
    from harnpy.vm.resolve.resolved import Resolved
    from harnpy.vm.resolve.scopes import Variable
    from harnpy.vm.run.parameter_types import Spec
    from harnpy.vm.unit import Unit
    from harnpy.vm.values.objects import Fn
    from harnpy.vm.vm import Vm
    from harnpy.vm.walk.activation import Activation

    Value = Any
    #: Evaluates a node of one class; the first argument is the function that it stands in.
    Evaluator = Callable[[Any, Any], Value]

    class Observer(Protocol):
        """What watches a program that is walked, such as a debugger.

        ``statement`` is called before a statement of ``a`` is evaluated. ``failed`` is called when one has
        failed, for the innermost statement first, while the variables are still those of the failure.
        """

        def statement(self, a: Activation, node: ast.Node) -> None: ...
        def failed(self, a: Activation, error: BaseException) -> None: ...


class Walker:
    """One unit being walked.

    ``impls`` collects its `impl` methods, ``linker`` does its imports; ``table`` holds the variables that all
    of its functions share: those of a module, or of a REPL session.
    """

    def __init__(
        self,
        vm: Vm,
        unit: Unit,
        tree: Resolved,
        evaluators: Mapping[type[ast.Node], Evaluator],
        impls: dict[str, dict[str, Fn]],
        linker: Linker | None,
        table: dict[str, Value],
    ) -> None:
        self.vm = vm
        self.unit = unit
        self.tree = tree
        self.resolution = tree.resolution
        self.evaluators = evaluators if vm.growth is None else growing(evaluators, vm.growth.check)
        self.impls = impls
        self.linker = linker
        self.table = table
        self.observer: Observer | None = vm.observer

    def spec_of(self, param: ast.Param) -> Spec | None:
        """What the annotation of a parameter demands, None when that is nothing."""
        if param.type is None or param.rest:
            return None
        return annotation_spec(param.type, self.resolution)

    def shell(self, variable: Variable) -> Fn:
        """A function that is named before its declaration has run."""
        assert variable.fn
        return self.vm.calls.shell(variable.name, *signature(variable.fn.params))
