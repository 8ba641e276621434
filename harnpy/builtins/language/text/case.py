"""Names between snake_case, kebab-case, camelCase and PascalCase. Spec: 04 §4.2."""

from __future__ import annotations

from functools import partial

from harnpy.text.case import camel, humps, lower_first, pascal, titled, upper_first, words
from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="strings")


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
