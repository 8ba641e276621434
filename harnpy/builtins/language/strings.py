"""Strings: searching, cutting, joining, and names in snake_case, kebab-case, camelCase, PascalCase.

Positions count Unicode scalar values. Spec: 04 §4.2.
"""

from __future__ import annotations

from functools import partial

from harnpy.faults import MisuseError, paced
from harnpy.formats.case import WHITESPACE, camel, humps, lower_first, pascal, titled, upper_first, words
from harnpy.vm.declare import ABSENT, name_of
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.run.list_methods import joined
from harnpy.vm.run.string_methods import replaced
from harnpy.vm.values import display
from harnpy.vm.values.equality import contains_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.formats.numbers import Spec
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="strings")


@builtin("trim(s: string) -> string")
def trim(vm: Vm, s: str) -> str:
    r"""Return `s` without white space at either end.

    Example: trim("  a b\n")  // "a b"
    """
    return s.strip(WHITESPACE)


@builtin("lowercase(s: string) -> string")
def lowercase(vm: Vm, s: str) -> str:
    """Return `s` in lower case, by the full Unicode mapping.

    Example: lowercase("ÉCLAIR")  // "éclair"
    """
    return s.lower()


@builtin("uppercase(s: string) -> string")
def uppercase(vm: Vm, s: str) -> str:
    """Return `s` in upper case, by the full Unicode mapping.

    Example: uppercase("straße")  // "STRASSE"
    """
    return s.upper()


@builtin('split(s: string, sep: string = " ") -> list')
def split(vm: Vm, s: str, sep: str) -> list[str]:
    """Return the pieces of `s` between occurrences of `sep`, including empty ones.

    The method `.split()` differs in its default: a comma.

    Example: split("10 20  30")  // ["10", "20", "", "30"]
    """
    return s.split(sep) if sep else ["", *s, ""]


@builtin('join(items: list, sep: string = "") -> string')
def join(vm: Vm, items: Value, sep: str) -> str:
    """Return the texts of the items with `sep` between them; `""` for anything but a list.

    Example: join([1, 2, 3], "-")  // "1-2-3"
    """
    return joined(vm, items, sep) if type(items) is list else ""


@builtin("replace(s: string, old: string, new: string) -> string")
def replace(vm: Vm, s: str, old: str, new: str) -> str:
    """Return `s` with every `old` replaced by `new`; an empty `old` is found at every position.

    Example: replace("a-b-c", "-", "+")  // "a+b+c"
    """
    return replaced(vm, s, old, new)


@builtin("contains(hay: any, needle: any) -> bool")
def contains(vm: Vm, hay: Value, needle: Value) -> bool:
    """Return true if a string contains a text, or a list an equal item; false for other types.

    Example: [contains("pipeline", "pipe"), contains([1, 2], 3)]  // [true, false]
    """
    if type(hay) is str:
        return display(needle) in hay
    return type(hay) is list and contains_value(paced(hay), needle)


@builtin("starts_with(s: string, prefix: string) -> bool")
def starts_with(vm: Vm, s: str, prefix: str) -> bool:
    """Return true if `s` begins with `prefix`.

    Example: starts_with("today.md", "to")  // true
    """
    return s.startswith(prefix)


@builtin("ends_with(s: string, suffix: string) -> bool")
def ends_with(vm: Vm, s: str, suffix: str) -> bool:
    """Return true if `s` ends with `suffix`.

    Example: ends_with("today.md", ".md")  // true
    """
    return s.endswith(suffix)


@builtin("substring(s: string, start: int = 0, length?: int) -> string")
def substring(vm: Vm, s: str, start: int, length: int | None) -> str:
    """Return `length` characters of `s` from `start` on; without `length`, all the rest.

    The method `.substring()` differs: its second argument is an end index. Negative numbers read as 0.

    Example: [substring("pipeline", 4), substring("pipeline", 4, 2)]  // ["line", "li"]
    """
    begin = max(start, 0)
    return s[begin:] if length is None else s[begin : begin + max(length, 0)]


@builtin("format(template: string, ...args: any) -> string")
def format_text(vm: Vm, template: str, *args: Value) -> str:
    """Return `template` with each `{}` replaced by the next argument, or each `{key}` by an entry of a dict.

    `{:SPEC}` and `{key:SPEC}` say how: `[[fill]align][sign][0][width][,][.places][kind]` with the align `<`,
    `>` or `^` and the kind `f`, `d`, `e`, `%`, `x`, `b`, `o` or `s`. A `{key}` missing in the dict and a
    surplus `{}` stay unchanged.

    Example: [format("{} of {:.2f}", 2, 5), format("Hi {name}", {name: "Ada"})]  // ["2 of 5.00", "Hi Ada"]
    """
    if args and type(args[0]) is dict:
        return _fill_named(template, args[0])
    if "{:" in template:
        return _fill_in_turn(template, args)
    pieces = template.split("{}")
    texts = [display(value) for value in args[: len(pieces) - 1]]
    texts += ["{}"] * (len(pieces) - 1 - len(texts))
    return pieces[0] + "".join([text + piece for text, piece in zip(paced(texts), pieces[1:], strict=True)])


def _fill_in_turn(template: str, args: Sequence[Value]) -> str:
    from harnpy.formats.numbers import spec_of

    first, *pieces = template.split("{")
    out, left = [first], iter(args)
    for piece in paced(pieces):
        inside, close, after = piece.partition("}")
        spec = spec_of(inside[1:]) if inside.startswith(":") else None
        value = next(left, ABSENT) if close and (spec is not None or not inside) else ABSENT
        if value is ABSENT:
            out.append("{" + piece)
        else:
            out.append((display(value) if spec is None else _by(spec, value)) + after)
    return "".join(out)


def _by(spec: Spec, value: Value) -> str:
    try:
        return spec.text(value, display(value))
    except MisuseError as error:
        raise RuntimeFault(error.message) from None


def _shown(values: dict[str, Value], inside: str) -> str:
    """Return what stands for `{inside}`."""
    if inside in values:
        return display(values[inside])
    key, colon, rest = inside.rpartition(":")
    if colon and key in values:
        from harnpy.formats.numbers import spec_of

        spec = spec_of(rest)
        if spec is not None:
            return _by(spec, values[key])
    return "{" + inside + "}"


def _fill_named(template: str, values: dict[str, Value]) -> str:
    text, brace, rest = template.partition("{")
    out = [text]
    while brace:
        key, close, after = rest.partition("}")
        if not close:
            out.append("{" + rest)
            break
        out.append(_shown(values, key))
        text, brace, rest = after.partition("{")
        out.append(text)
    return "".join(out)


# Names between snake_case, kebab-case, camelCase and PascalCase. Spec: 04 §4.2.


def case_builtin(
    signature: str, convert: Callable[[str], str], given: str, made: str, note: str = ""
) -> Callable[[Vm, str], str]:
    """Declare a function that spells ``given``, and all names like it, as ``made``."""

    def converted(vm: Vm, s: str) -> str:
        return convert(s)

    converted.__doc__ = (
        f'Convert `{given}` to `{made}`{note}.\n\nExample: {name_of(signature)}("{given}")  // "{made}"'
    )
    return builtin(signature)(converted)


snake_to_camel = case_builtin(
    "snake_to_camel(s: string) -> string", lambda s: camel(words(s, "_")), "user_name", "userName"
)
snake_to_pascal = case_builtin(
    "snake_to_pascal(s: string) -> string", lambda s: pascal(words(s, "_")), "user_name", "UserName"
)
snake_to_kebab = case_builtin(
    "snake_to_kebab(s: string) -> string", lambda s: "-".join(words(s, "_")), "user_name", "user-name"
)
kebab_to_camel = case_builtin(
    "kebab_to_camel(s: string) -> string", lambda s: camel(words(s, "-")), "user-name", "userName"
)
kebab_to_snake = case_builtin(
    "kebab_to_snake(s: string) -> string", lambda s: "_".join(words(s, "-")), "user-name", "user_name"
)
camel_to_snake = case_builtin(
    "camel_to_snake(s: string) -> string", lambda s: "_".join(humps(s)), "HTTPServer", "http_server"
)
camel_to_kebab = case_builtin(
    "camel_to_kebab(s: string) -> string", lambda s: "-".join(humps(s)), "userName", "user-name"
)
camel_to_pascal = case_builtin(
    "camel_to_pascal(s: string) -> string",
    upper_first,
    "userName",
    "UserName",
    ": only the first character changes",
)
pascal_to_snake = case_builtin(
    "pascal_to_snake(s: string) -> string", lambda s: "_".join(humps(s)), "UserName", "user_name"
)
pascal_to_camel = case_builtin(
    "pascal_to_camel(s: string) -> string",
    lower_first,
    "UserName",
    "userName",
    ": only the first character changes",
)


@builtin("uppercase_first(s: string) -> string")
def uppercase_first(vm: Vm, s: str) -> str:
    """Return `s` with its first character in upper case, the rest as it is.

    Example: uppercase_first("hello")  // "Hello"
    """
    return upper_first(s)


@builtin("lowercase_first(s: string) -> string")
def lowercase_first(vm: Vm, s: str) -> str:
    """Return `s` with its first character in lower case, the rest as it is.

    Example: lowercase_first("Hello")  // "hello"
    """
    return lower_first(s)


@builtin("title_case(s: string) -> string")
def title_case(vm: Vm, s: str) -> str:
    """Return `s` with the first character of every word in upper case and the rest in lower case.

    Example: title_case("the old MAN")  // "The Old Man"
    """
    return titled(s)
