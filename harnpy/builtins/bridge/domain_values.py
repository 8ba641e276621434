"""Harn's values for domain packages that must look into them. Spec: 04 §12."""

from __future__ import annotations

from harnpy.schemas.values import SchemaValues
from harnpy.text.json.reader import parse_json
from harnpy.vm.values.equality import equal
from harnpy.vm.values.objects import Set, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


class HarnValues(SchemaValues):
    def __init__(self, vm: Vm) -> None:
        self._vm = vm

    def equal(self, a: Value, b: Value) -> bool:
        return equal(a, b)

    def items(self, value: Value) -> list[Any] | None:
        return value.items if type(value) is Set else super().items(value)

    def rebuilt(self, value: Value, parts: Any) -> Value:
        if type(value) is Struct:
            return Struct(value.type, parts)
        return Set(parts) if type(value) is Set else parts

    def look(self) -> None:
        if self._vm.signal.pending:
            self._vm.poll()

    def search(self, pattern: str, text: str) -> bool:
        from harnpy.builtins.language.text.regexes import compiled_pattern, is_found

        return is_found(self._vm, compiled_pattern(self._vm, pattern), text)

    def read_json(self, text: str) -> Value:
        return parse_json(text)
