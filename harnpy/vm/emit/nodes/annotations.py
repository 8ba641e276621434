"""Checks of annotated parameters: the common ones in line, before the full check. Spec: 02 §20."""

from __future__ import annotations

from harnpy.vm.resolve.annotations import annotation_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax import ast
    from harnpy.vm.resolve.scopes import Resolution
    from harnpy.vm.run.parameter_types import Spec

_QUICK = {
    "int": "type({0}) is not int and type({0}) is not float",
    "float": "type({0}) is not int and type({0}) is not float",
    "string": "type({0}) is not str",
    "bool": "type({0}) is not bool",
    "list": "type({0}) is not list",
    "closure": "type({0}) is not Fn",
}


class Check:
    """How to check one parameter."""

    __slots__ = ("spec",)

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def quick(self, slot: str) -> str | None:
        """Python text that is true when the full check is needed; None: always."""
        return (
            _QUICK[self.spec[1]].format(slot) if self.spec[0] == "scalar" and self.spec[1] in _QUICK else None
        )


def parameter_check(type_: ast.Node, resolution: Resolution) -> Check | None:
    """The check of an annotation, or None when it is not enforced."""
    spec = annotation_spec(type_, resolution)
    return Check(spec) if spec else None
