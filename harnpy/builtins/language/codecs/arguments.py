"""What builtins over bytes take: exact types, options with known names, and long data in pieces.

Spec: 04 §15, §16, §22.
"""

from __future__ import annotations

from harnpy.text.spell import nearest_at_run_time
from harnpy.vm.declare.builtin import ABSENT
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values.objects import display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

_NAMES = {bytes: "bytes", str: "string", int: "int"}
#: Bytes between two looks at the signal.
_PIECE = 1 << 16


def expect(name: str, value: Value, position: int, *types: type) -> None:
    """Raise RuntimeFault unless argument ``position`` (from 1) has one of the ``types``."""
    if value is ABSENT:
        raise RuntimeFault(f"{name}: missing argument {position}")
    if type(value) not in types:
        expected = " or ".join(_NAMES[each] for each in types)
        raise RuntimeFault(f"{name}: expected {expected} at argument {position}, got {type_name(value)}")


def data_of(value: Value) -> bytes:
    """Return bytes themselves, of any other value the UTF-8 of its text."""
    return value if type(value) is bytes else display(value).encode("utf-8", "surrogatepass")


def text_of(data: bytes) -> str:
    """Return the text of UTF-8; what is none becomes U+FFFD."""
    return data.decode("utf-8", "replace")


def pieces(vm: Vm, data: bytes) -> Iterable[bytes]:
    """Return the data in pieces; when there are many, the Vm polls between them (05 §9)."""
    return [data] if len(data) <= _PIECE else _pieces(vm, data)


def _pieces(vm: Vm, data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), _PIECE):
        if vm.signal.pending:
            vm.poll()
        yield data[at : at + _PIECE]


def options(name: str, given: Value, known: Sequence[str]) -> dict[str, Value]:
    """Return the options that are not nil. Raises RuntimeFault for an unknown one."""
    if given is None or given is ABSENT:
        return {}
    if type(given) is not dict:
        raise RuntimeFault(f"{name}: options must be a dict, got {type_name(given)}")
    for key in given:
        if key not in known:
            raise RuntimeFault(f"{name}: unknown option `{key}` ({expected(key, known)})")
    return {key: value for key, value in given.items() if value is not None}


def expected(key: str, known: Sequence[str]) -> str:
    """Return what an error about an unknown key has in brackets: the nearest known one, and all of them."""
    near = nearest_at_run_time(key, known)
    hint = f"did you mean `{near}`? " if near else ""
    return f"{hint}expected one of: {', '.join(known)}"


def option(name: str, given: dict[str, Value], key: str, kind: type, default: Value) -> Value:
    """Return an option that has the type ``kind``. Raises RuntimeFault for another."""
    value = given.get(key, default)
    if value is not default and type(value) is not kind:
        raise RuntimeFault(f"{name}: option `{key}` must be {_ARTICLES[kind]}, got {type_name(value)}")
    return value


_ARTICLES = {str: "a string", int: "an int", bool: "a bool"}
