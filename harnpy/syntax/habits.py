"""Helps for what other languages write differently: `elif`, `x => y`, `i++`. Spec: 01 §9.5.

Python and JavaScript are what most writers of Harn come from, and their habits end in a few errors of the
parser. Here those are told by the offending token, the one before it, and what was expected. Nothing here
runs for a program that parses.
"""

from __future__ import annotations

from harnpy.syntax.lexer import RESERVED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.lexer import Tokens

_FN = "functions are declared with `fn name(params) { … }`"
_STRUCT = "there are no classes: `struct` declares fields, `impl` methods"
_ARROW = "a closure is `{ x -> … }`, and an arm of a match `pattern -> { … }`"
_NO_ASYNC = "nothing is marked as asynchronous: calls wait by themselves, `spawn { … }` starts a task"
_VALUES = "values don't change: `d = d.remove(key)` makes a new one"
_BODY = "the body stands in braces: `{ … }`"
_NAMES = "arguments have no names: pass a dict, `f({name: value})`"

#: By the word before the offending token, where a statement should have ended.
_AFTER = {
    "def": _FN,
    "function": _FN,
    "func": _FN,
    "lambda": "a function without a name is a closure: `{ x -> x + 1 }`",
    "elif": "write `else if`",
    "elseif": "write `else if`",
    "const": "a constant is bound with `let`",
    "class": _STRUCT,
    "new": "there are no classes; a struct is made with `Name {field: value}`",
    "async": _NO_ASYNC,
    "await": "`await` is called: `await(task)`",
    "switch": "use `match value { pattern -> { … } }`",
    "except": "use `catch (e) { … }`",
    "raise": "use `throw`",
    "export": "what other files may use is marked with `pub`",
    "delete": _VALUES,
    "del": _VALUES,
    "assert": "`assert` is a function: `assert(condition, message)`",
    "not": "write `!`",
}
#: By the offending token, there as well.
_INSTEAD_OF_THE_END = {
    "elif": "write `else if`",
    "elseif": "write `else if`",
    "except": "use `catch (e) { … }`",
    "and": "write `&&`",
    "or": "write `||`",
    "is": "write `==`",
    "if": "a value that depends is `condition ? a : b`",
    "?": "a conditional within another one needs parentheses",
    "(": "only a name can be called: bind the function to one first",
}
#: By what was expected, and the token before the offending one.
_EXPECTED_AFTER = {
    ("{", "->"): _BODY,
    ("{", "try"): "`try` takes a block: `try { … }`",
    ("import path string", "import"): 'a module is named by its path: `import "lib/text"`',
}
#: By what was expected.
_LACKING = {"{": _BODY, "=": "a variable begins with a value: `var x = nil`"}
#: By what was expected, and the offending token.
_EXPECTED = {
    ("in", ","): "entries are taken apart by `for {key, value} in dict { … }`",
    ("{", "="): "write `==` to compare",
    ("{", "&&"): "leave out the parentheses around a part of the condition",
    ("{", "||"): "leave out the parentheses around a part of the condition",
    ("{", "->"): "a function without a name states no type of its result",
    (")", "="): _NAMES,
    (")", ":"): _NAMES,
    (")", ","): "there are no tuples: use a list, `[a, b]`",
    ("]", "for"): "there are no comprehensions: use `map` and `filter`",
    (":", "}"): "an entry has a key and a value: `{name: name}`",
    ("}", "="): "variants of an enum have no values",
    ("parameter name", "{"): "parameters are plain names: take the value apart in the body",
    ("parameter name", "["): "parameters are plain names: take the value apart in the body",
    ("variable name or destructuring pattern", "("): "use `let [a, b] = list`",
    ("pair pattern element", "let"): "loop over a range: `for i in 0 to n exclusive { … }`",
    ("pair pattern element", "var"): "loop over a range: `for i in 0 to n exclusive { … }`",
    ("member name", "."): "a range is `0 to 3`, or `0 to 3 exclusive` without its end",
    ("member name", "["): "write `x?[i]`",
    ("alias name", "["): "patterns don't nest: take the inner value apart in a second step",
    ("alias name", "{"): "patterns don't nest: take the inner value apart in a second step",
}
#: Names of Python and JavaScript, and what they are called here.
_NAMES_ELSEWHERE = {
    **dict.fromkeys(["None", "null", "undefined", "NULL"], "nil"),
    "True": "true",
    "False": "false",
    "this": "self",
    "dict": "{}",
    **dict.fromkeys(["str", "String"], "to_string"),
    **dict.fromkeys(["int", "parseInt"], "to_int"),
    **dict.fromkeys(["float", "Number", "parseFloat"], "to_float"),
    **dict.fromkeys(["list", "Array"], "to_list"),
    **dict.fromkeys(["typeof", "isinstance"], "type_of"),
    **dict.fromkeys(["console", "printf", "echo", "puts"], "println"),
    "JSON": "json_parse",
    "input": "prompt_user",
    "open": "read_file",
    "sorted": "value.sort(…)",
    "reversed": "value.reverse(…)",
    **{
        name: f"value.{name}(…)"
        for name in ("map", "filter", "reduce", "enumerate", "zip", "sum", "sort", "any", "all")
    },
}
#: By the characters that no token begins with.
_CHARACTERS = {
    "'": 'strings have double quotes: `"text"`',
    "`": 'strings have double quotes, and `"${x}"` inserts a value',
    "#": "a comment begins with `//`",
}


def habit_for(source: str, tokens: Tokens, at: int, expected: str) -> str | None:
    """Return what to write instead of the token ``at``, where ``expected`` was due; None if unknown."""
    before, got = _text(source, tokens, at - 1), _text(source, tokens, at)
    is_end = expected.endswith("separator (`;` or newline)")
    found = _split_in_two(source, tokens, at, expected)
    found = found or _EXPECTED.get((expected, got)) or _EXPECTED_AFTER.get((expected, before))
    if found is None and is_end:
        found = _AFTER.get(before) or _INSTEAD_OF_THE_END.get(got)
    return found


def is_reserved(tokens: Tokens, at: int, expected: str) -> bool:
    """Whether token ``at`` is a word of the language where a name was ``expected``."""
    return tokens.kinds[at] in RESERVED and ("name" in expected or expected.endswith("variable"))


def lacking(expected: str) -> str | None:
    """Return what to say when no more is known than that something was ``expected``; None if nothing."""
    return _LACKING.get(expected)


def _split_in_two(source: str, tokens: Tokens, at: int, expected: str) -> str | None:
    """The help for what is one token elsewhere and two or three here, with nothing between them."""
    before, got = _text(source, tokens, at - 1), _text(source, tokens, at)
    is_end = expected.endswith("separator (`;` or newline)")
    if got == "=" and source.startswith("=>", tokens.starts[at]):
        return _ARROW
    if expected == "expression" and before == "==" and got == "=":
        return "`==` never converts: there is no `===`"
    for sign, first in ("+", at - 1), ("-", at - 2):
        if expected == "expression" and first > 0 and source.startswith(sign * 2, tokens.starts[first]):
            name = _text(source, tokens, first - 1)
            return f"write `{name if name.isidentifier() else 'x'} {sign}= 1`"
    if is_end and at > 0 and tokens.ends[at - 1] == tokens.starts[at]:
        if tokens.kinds[at - 1] in ("INT", "FLOAT"):
            return "numbers have decimal digits only: no `_`, no exponent, no `0x`"
        if before == "f":
            return 'every string takes values, without an `f` before it: `"${x}"`'
    return None


def _text(source: str, tokens: Tokens, i: int) -> str:
    return source[tokens.starts[i] : tokens.ends[i]] if 0 <= i < len(tokens.kinds) else ""


def help_for_text(source: str, at: int) -> str | None:
    """Return what to write instead of the characters at ``at``, which make no token; None if unknown."""
    line = source[source.rfind("\n", 0, at) + 1 : at + 2]
    if '\\"' in line and 'r"' in line:
        return 'a raw string ends at its first quote: use `"""…"""`, which keeps backslashes as well'
    return _CHARACTERS.get(source[at : at + 1])


def name_for(name: str) -> str | None:
    """Return what a name of Python or JavaScript is called here; None if unknown."""
    return _NAMES_ELSEWHERE.get(name)
