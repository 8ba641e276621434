"""JSON text to values and back. Spec: 04 §11.1."""

from __future__ import annotations

from harnpy.builtins.json_reader import JsonError, read
from harnpy.builtins.json_writer import write
from harnpy.vm.builtin import builtin
from harnpy.vm.errors import Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.machine import Vm
    from harnpy.vm.values import Value


@builtin("json_parse(text: string) -> any", family="json_schema")
def json_parse(vm: Vm, text: str) -> Value:
    """The value of a JSON text.

    Integers that fit 64 bits are ints, other numbers floats; of equal keys the last wins; nesting ends
    before level 128. Throws `JSON parse error: <detail> at line L column C`.
    """
    try:
        return read(text)
    except JsonError as error:
        raise Thrown(f"JSON parse error: {error}") from None


@builtin("json_stringify(value: any) -> string", family="json_schema")
def json_stringify(vm: Vm, value: Value) -> str:
    """Compact JSON with keys in ascending order; closures, enums, durations, pairs and handles are null."""
    return write(value)
