"""Names between snake_case, kebab-case, camelCase and PascalCase. Spec: 04 §4.2."""

from __future__ import annotations

from harnpy.vm.declare.builtin import builtin
from harnpy.vm.run.methods.strings import WHITESPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.vm import Vm


def _words(s: str, sep: str) -> list[str]:
    return [word.lower() for word in s.split(sep) if word]


def _humps(s: str) -> list[str]:
    """The words of a camel or Pascal name, lowercased: `HTTPServer` to `http`, `server`."""
    words, start = [], 0
    for i in range(1, len(s)):
        if s[i].isupper() and _begins_word(s[i - 1], s[i + 1 : i + 2]):
            words.append(s[start:i].lower())
            start = i
    return [*words, s[start:].lower()]


def _begins_word(before: str, after: str) -> bool:
    """Whether an uppercase letter between these two begins a word; at an acronym's end it does."""
    return before.islower() or before in "0123456789" or (before.isupper() and after.islower())


def titled(s: str) -> str:
    """Every word between white space with its first character in upper case, the rest in lower."""
    starts_word, out = True, []
    for character in s:
        out.append(character.upper() if starts_word else character.lower())
        starts_word = character in WHITESPACE
    return "".join(out)


def _upper_first(s: str) -> str:
    return s[:1].upper() + s[1:]


def _lower_first(s: str) -> str:
    return s[:1].lower() + s[1:]


def _pascal(words: list[str]) -> str:
    return "".join([_upper_first(word) for word in words])


def _camel(words: list[str]) -> str:
    return "".join(words[:1]) + _pascal(words[1:])


@builtin("snake_to_camel(s: string) -> string", family="strings")
def snake_to_camel(vm: Vm, s: str) -> str:
    """`user_name` to `userName`."""
    return _camel(_words(s, "_"))


@builtin("snake_to_pascal(s: string) -> string", family="strings")
def snake_to_pascal(vm: Vm, s: str) -> str:
    """`user_name` to `UserName`."""
    return _pascal(_words(s, "_"))


@builtin("snake_to_kebab(s: string) -> string", family="strings")
def snake_to_kebab(vm: Vm, s: str) -> str:
    """`user_name` to `user-name`."""
    return "-".join(_words(s, "_"))


@builtin("kebab_to_camel(s: string) -> string", family="strings")
def kebab_to_camel(vm: Vm, s: str) -> str:
    """`user-name` to `userName`."""
    return _camel(_words(s, "-"))


@builtin("kebab_to_snake(s: string) -> string", family="strings")
def kebab_to_snake(vm: Vm, s: str) -> str:
    """`user-name` to `user_name`."""
    return "_".join(_words(s, "-"))


@builtin("camel_to_snake(s: string) -> string", family="strings")
def camel_to_snake(vm: Vm, s: str) -> str:
    """`userName` to `user_name`, `HTTPServer` to `http_server`."""
    return "_".join(_humps(s))


@builtin("camel_to_kebab(s: string) -> string", family="strings")
def camel_to_kebab(vm: Vm, s: str) -> str:
    """`userName` to `user-name`."""
    return "-".join(_humps(s))


@builtin("camel_to_pascal(s: string) -> string", family="strings")
def camel_to_pascal(vm: Vm, s: str) -> str:
    """`userName` to `UserName`: only the first character changes."""
    return _upper_first(s)


@builtin("pascal_to_snake(s: string) -> string", family="strings")
def pascal_to_snake(vm: Vm, s: str) -> str:
    """`UserName` to `user_name`."""
    return "_".join(_humps(s))


@builtin("pascal_to_camel(s: string) -> string", family="strings")
def pascal_to_camel(vm: Vm, s: str) -> str:
    """`UserName` to `userName`: only the first character changes."""
    return _lower_first(s)


@builtin("uppercase_first(s: string) -> string", family="strings")
def uppercase_first(vm: Vm, s: str) -> str:
    """`s` with its first character in upper case."""
    return _upper_first(s)


@builtin("lowercase_first(s: string) -> string", family="strings")
def lowercase_first(vm: Vm, s: str) -> str:
    """`s` with its first character in lower case."""
    return _lower_first(s)


@builtin("title_case(s: string) -> string", family="strings")
def title_case(vm: Vm, s: str) -> str:
    """Every word with its first character in upper case and the rest in lower case."""
    return titled(s)
