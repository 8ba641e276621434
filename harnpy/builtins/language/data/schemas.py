"""Schemas as values. Spec: 04 §12.3."""

from __future__ import annotations

from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import Thrown
from harnpy.vm.values.objects import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("schema_of(x: any) -> dict", family="json_schema")
def schema_of(vm: Vm, x: Value) -> dict[str, Value]:
    """The schema of a type that the file declares with `type`; a schema dict is returned unchanged.

    Example:
        schema_of({type: "string"})  // {type: "string"}
    """
    if type(x) is not dict:
        raise Thrown(f"schema_of: expected a type alias or schema dict, got {type_name(x)}")
    return x
