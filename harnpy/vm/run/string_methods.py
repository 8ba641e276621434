"""Methods of strings; all positions and lengths count Unicode scalars. Spec: 04 §4.1."""

from __future__ import annotations

from harnpy.faults import paced
from harnpy.formats.case import WHITESPACE
from harnpy.vm.declare import method
from harnpy.vm.values import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values import Iter
    from harnpy.vm.vm import Vm


@method("string", "count() -> int")
@method("string", "len() -> int")
def count(vm: Vm, self: str) -> int:
    """The number of characters.

    Example: "naïve".count()  // 5
    """
    return len(self)


@method("string", "empty() -> bool")
def empty(vm: Vm, self: str) -> bool:
    """Return true if there is no character.

    Example: "".empty()  // true
    """
    return not self


@method("string", "contains(s: string) -> bool")
def contains(vm: Vm, self: str, s: str) -> bool:
    """Return true if `s` is part of the string.

    Example: "pipeline".contains("line")  // true
    """
    return s in self


@method("string", "starts_with(s: string) -> bool")
def starts_with(vm: Vm, self: str, s: str) -> bool:
    """Return true if the string begins with `s`.

    Example: "today.md".starts_with("to")  // true
    """
    return self.startswith(s)


@method("string", "ends_with(s: string) -> bool")
def ends_with(vm: Vm, self: str, s: str) -> bool:
    """Return true if the string ends with `s`.

    Example: "today.md".ends_with(".md")  // true
    """
    return self.endswith(s)


@method("string", "replace(...args: any) -> string")
def replace(vm: Vm, self: str, *args: Any) -> str | None:
    """`replace(old, new)`: every `old` replaced by `new`; nil with fewer than two arguments.

    An empty `old` puts `new` between all characters and at both ends.

    Example: "a-b-c".replace("-", "+")  // "a+b+c"
    """
    return replaced(vm, self, display(args[0]), display(args[1])) if len(args) >= 2 else None


@method("string", 'split(sep: string = ",") -> list')
def split(vm: Vm, self: str, sep: str) -> list[str]:
    """The pieces between occurrences of `sep`; without `sep` characters, each one between empty ends.

    Example: ["a,b".split(), "a b".split(" ")]  // [["a", "b"], ["a", "b"]]
    """
    return self.split(sep) if sep else ["", *self, ""]


@method("string", "trim() -> string")
def trim(vm: Vm, self: str) -> str:
    """Without the white space at both ends.

    Example: "  a ".trim()  // "a"
    """
    return self.strip(WHITESPACE)


@method("string", "trim_start() -> string")
def trim_start(vm: Vm, self: str) -> str:
    """Without the white space in front.

    Example: "  a ".trim_start()  // "a "
    """
    return self.lstrip(WHITESPACE)


@method("string", "trim_end() -> string")
def trim_end(vm: Vm, self: str) -> str:
    """Without the white space at the end.

    Example: "  a ".trim_end()  // "  a"
    """
    return self.rstrip(WHITESPACE)


@method("string", "lowercase() -> string")
@method("string", "lower() -> string")
@method("string", "to_lower() -> string")
def lowercase(vm: Vm, self: str) -> str:
    """In lower case.

    Example: "Ada".to_lower()  // "ada"
    """
    return self.lower()


@method("string", "uppercase() -> string")
@method("string", "upper() -> string")
@method("string", "to_upper() -> string")
def uppercase(vm: Vm, self: str) -> str:
    """In upper case.

    Example: "Ada".uppercase()  // "ADA"
    """
    return self.upper()


@method("string", "substring(start: int = 0, end?: int) -> string")
def substring(vm: Vm, self: str, start: int, end: int | None) -> str:
    """From `start` up to, not including, `end`; a negative `end` is the end of the string.

    Example: ["pipeline".substring(4), "pipeline".substring(0, 4)]  // ["line", "pipe"]
    """
    return self[max(start, 0) : len(self) if end is None or end < 0 else end]


@method("string", "index_of(s: string) -> int")
def index_of(vm: Vm, self: str, s: str) -> int:
    """The position of the first `s`, -1 if there is none.

    Example: "banana".index_of("an")  // 1
    """
    return self.find(s)


@method("string", "last_index_of(s: string) -> int")
def last_index_of(vm: Vm, self: str, s: str) -> int:
    """The position of the last `s`, -1 if there is none.

    Example: "banana".last_index_of("an")  // 3
    """
    return self.rfind(s)


@method("string", "chars() -> list")
def chars(vm: Vm, self: str) -> list[str]:
    """The characters.

    Example: "añb".chars()  // ["a", "ñ", "b"]
    """
    return list(self)


@method("string", "char_at(i: int) -> string | nil")
def char_at(vm: Vm, self: str, i: int | None) -> str | None:
    """The character at `i`; nil out of range, negative positions included.

    Example: ["abc".char_at(1), "abc".char_at(9)]  // ["b", nil]
    """
    return self[i] if i is not None and 0 <= i < len(self) else None


@method("string", "lines() -> list")
def lines(vm: Vm, self: str) -> list[str]:
    r"""The lines without their ends, ``\n`` or ``\r\n``.

    Example: "one\ntwo\n".lines()  // ["one", "two"]
    """
    ended = self.split("\n")
    rest = ended.pop()
    return [line.removesuffix("\r") for line in paced(ended)] + ([rest] if rest else [])


@method("string", "repeat(n: int = 1) -> string")
def repeat(vm: Vm, self: str, n: int) -> str:
    """The string `n` times over; empty for `n` below 1.

    Example: "ab".repeat(3)  // "ababab"
    """
    vm.sizes.check_text(len(self) * n)
    return self * n


@method("string", "reverse() -> string")
def reverse(vm: Vm, self: str) -> str:
    """The characters from last to first.

    Example: "abc".reverse()  // "cba"
    """
    return self[::-1]


@method("string", 'pad_left(width: int = 0, ch: string = " ") -> string')
def pad_left(vm: Vm, self: str, width: int, ch: str) -> str:
    """Filled in front to `width` characters with the first character of `ch`.

    Example: "7".pad_left(3, "0")  // "007"
    """
    vm.sizes.check_text(width)
    return self.rjust(width, ch[:1] or " ")


@method("string", 'pad_right(width: int = 0, ch: string = " ") -> string')
def pad_right(vm: Vm, self: str, width: int, ch: str) -> str:
    """Filled at the end to `width` characters with the first character of `ch`.

    Example: "ab".pad_right(4, ".")  // "ab.."
    """
    vm.sizes.check_text(width)
    return self.ljust(width, ch[:1] or " ")


@method("string", "iter() -> iter")
def iter_(vm: Vm, self: str) -> Iter:
    """A lazy iterator over the characters.

    Example: "abc".iter().take(2).to_list()  // ["a", "b"]
    """
    return vm.handle(self)


def replaced(vm: Vm, text: str, old: str, new: str) -> str:
    """``text`` with every ``old`` replaced; one that would become too long is refused."""
    if len(new) > len(old):
        vm.sizes.check_text(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)
