"""Strings: searching, cutting, joining, and names in snake_case, kebab-case, camelCase, PascalCase.

Positions count Unicode scalar values. Spec: 04 §4.2.
"""

from __future__ import annotations

from functools import partial

from harnpy.formats.case import WHITESPACE, camel, humps, lower_first, pascal, titled, upper_first, words
from harnpy.vm.declare import builtin as declare
from harnpy.vm.run.list_methods import joined
from harnpy.vm.run.string_methods import replaced
from harnpy.vm.values import display
from harnpy.vm.values.equality import contains_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="strings")


@builtin("trim(s: string) -> string")
def trim(vm: Vm, s: str) -> str:
    r"""`s` without white space at either end.

    Example:
        trim("  a b\n")  // "a b"
    """
    return s.strip(WHITESPACE)


@builtin("lowercase(s: string) -> string")
def lowercase(vm: Vm, s: str) -> str:
    """`s` in lower case, by the full Unicode mapping.

    Example:
        lowercase("ÉCLAIR")  // "éclair"
    """
    return s.lower()


@builtin("uppercase(s: string) -> string")
def uppercase(vm: Vm, s: str) -> str:
    """`s` in upper case, by the full Unicode mapping.

    Example:
        uppercase("straße")  // "STRASSE"
    """
    return s.upper()


@builtin('split(s: string, sep: string = " ") -> list')
def split(vm: Vm, s: str, sep: str) -> list[str]:
    """Return the pieces of `s` between occurrences of `sep`, empty ones too.

    The method `.split()` differs in its default: a comma.

    Example:
        split("10 20  30")  // ["10", "20", "", "30"]
    """
    return s.split(sep) if sep else ["", *s, ""]


@builtin('join(items: list, sep: string = "") -> string')
def join(vm: Vm, items: Value, sep: str) -> str:
    """Return the texts of the items with `sep` between them; `""` unless given a list.

    Example:
        join([1, 2, 3], "-")  // "1-2-3"
    """
    return joined(vm, items, sep) if type(items) is list else ""


@builtin("replace(s: string, old: string, new: string) -> string")
def replace(vm: Vm, s: str, old: str, new: str) -> str:
    """`s` with every `old` replaced by `new`; an empty `old` is found at every position.

    Example:
        replace("a-b-c", "-", "+")  // "a+b+c"
    """
    return replaced(vm, s, old, new)


@builtin("contains(hay: any, needle: any) -> bool")
def contains(vm: Vm, hay: Value, needle: Value) -> bool:
    """Return true if a string contains a text, or a list an equal item; false for other types.

    Example:
        [contains("pipeline", "pipe"), contains([1, 2], 3)]  // [true, false]
    """
    if type(hay) is str:
        return display(needle) in hay
    return type(hay) is list and contains_value(vm.paced(hay), needle)


@builtin("starts_with(s: string, prefix: string) -> bool")
def starts_with(vm: Vm, s: str, prefix: str) -> bool:
    """Return true if `s` begins with `prefix`.

    Example:
        starts_with("today.md", "to")  // true
    """
    return s.startswith(prefix)


@builtin("ends_with(s: string, suffix: string) -> bool")
def ends_with(vm: Vm, s: str, suffix: str) -> bool:
    """Return true if `s` ends with `suffix`.

    Example:
        ends_with("today.md", ".md")  // true
    """
    return s.endswith(suffix)


@builtin("substring(s: string, start: int = 0, length?: int) -> string")
def substring(vm: Vm, s: str, start: int, length: int | None) -> str:
    """`length` characters of `s` from `start` on, all the rest without `length`.

    The method `.substring()` differs: its second argument is an end index. Negative numbers read as 0.

    Example:
        [substring("pipeline", 4), substring("pipeline", 4, 2)]  // ["line", "li"]
    """
    begin = max(start, 0)
    return s[begin:] if length is None else s[begin : begin + max(length, 0)]


@builtin("format(template: string, ...args: any) -> string")
def format_text(vm: Vm, template: str, *args: Value) -> str:
    """`template` with each `{}` replaced by the next argument, or each `{key}` by that entry of a dict.

    A `{key}` missing in the dict and a surplus `{}` stay unchanged.

    Example:
        [format("{} of {}", 2, 5), format("Hi {name}", {name: "Ada"})]  // ["2 of 5", "Hi Ada"]
    """
    if args and type(args[0]) is dict:
        return _fill_named(template, args[0])
    pieces = template.split("{}")
    texts = [display(value) for value in args[: len(pieces) - 1]]
    texts += ["{}"] * (len(pieces) - 1 - len(texts))
    return pieces[0] + "".join([text + piece for text, piece in zip(texts, pieces[1:], strict=True)])


def _fill_named(template: str, values: dict[str, Value]) -> str:
    text, brace, rest = template.partition("{")
    out = [text]
    while brace:
        key, close, after = rest.partition("}")
        if not close:
            out.append("{" + rest)
            break
        out.append(display(values[key]) if key in values else "{" + key + "}")
        text, brace, rest = after.partition("{")
        out.append(text)
    return "".join(out)


# Names between snake_case, kebab-case, camelCase and PascalCase. Spec: 04 §4.2.


#: What all declarations here have in common.


@builtin("snake_to_camel(s: string) -> string")
def snake_to_camel(vm: Vm, s: str) -> str:
    """`user_name` to `userName`.

    Example:
        snake_to_camel("user_name")  // "userName"
    """
    return camel(words(s, "_"))


@builtin("snake_to_pascal(s: string) -> string")
def snake_to_pascal(vm: Vm, s: str) -> str:
    """`user_name` to `UserName`.

    Example:
        snake_to_pascal("user_name")  // "UserName"
    """
    return pascal(words(s, "_"))


@builtin("snake_to_kebab(s: string) -> string")
def snake_to_kebab(vm: Vm, s: str) -> str:
    """`user_name` to `user-name`.

    Example:
        snake_to_kebab("user_name")  // "user-name"
    """
    return "-".join(words(s, "_"))


@builtin("kebab_to_camel(s: string) -> string")
def kebab_to_camel(vm: Vm, s: str) -> str:
    """`user-name` to `userName`.

    Example:
        kebab_to_camel("user-name")  // "userName"
    """
    return camel(words(s, "-"))


@builtin("kebab_to_snake(s: string) -> string")
def kebab_to_snake(vm: Vm, s: str) -> str:
    """`user-name` to `user_name`.

    Example:
        kebab_to_snake("user-name")  // "user_name"
    """
    return "_".join(words(s, "-"))


@builtin("camel_to_snake(s: string) -> string")
def camel_to_snake(vm: Vm, s: str) -> str:
    """`userName` to `user_name`, `HTTPServer` to `http_server`.

    Example:
        camel_to_snake("HTTPServer")  // "http_server"
    """
    return "_".join(humps(s))


@builtin("camel_to_kebab(s: string) -> string")
def camel_to_kebab(vm: Vm, s: str) -> str:
    """`userName` to `user-name`.

    Example:
        camel_to_kebab("userName")  // "user-name"
    """
    return "-".join(humps(s))


@builtin("camel_to_pascal(s: string) -> string")
def camel_to_pascal(vm: Vm, s: str) -> str:
    """`userName` to `UserName`: only the first character changes.

    Example:
        camel_to_pascal("userName")  // "UserName"
    """
    return upper_first(s)


@builtin("pascal_to_snake(s: string) -> string")
def pascal_to_snake(vm: Vm, s: str) -> str:
    """`UserName` to `user_name`.

    Example:
        pascal_to_snake("UserName")  // "user_name"
    """
    return "_".join(humps(s))


@builtin("pascal_to_camel(s: string) -> string")
def pascal_to_camel(vm: Vm, s: str) -> str:
    """`UserName` to `userName`: only the first character changes.

    Example:
        pascal_to_camel("UserName")  // "userName"
    """
    return lower_first(s)


@builtin("uppercase_first(s: string) -> string")
def uppercase_first(vm: Vm, s: str) -> str:
    """`s` with its first character in upper case.

    Example:
        uppercase_first("hello")  // "Hello"
    """
    return upper_first(s)


@builtin("lowercase_first(s: string) -> string")
def lowercase_first(vm: Vm, s: str) -> str:
    """`s` with its first character in lower case.

    Example:
        lowercase_first("Hello")  // "hello"
    """
    return lower_first(s)


@builtin("title_case(s: string) -> string")
def title_case(vm: Vm, s: str) -> str:
    """Every word with its first character in upper case and the rest in lower case.

    Example:
        title_case("the old MAN")  // "The Old Man"
    """
    return titled(s)
