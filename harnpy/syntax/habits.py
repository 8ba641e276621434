"""Helps for what other languages write differently: `elif`, `x => y`, `i++`. Spec: 01 §9.5.

Python and JavaScript are what most writers of Harn come from, and their habits end in a few errors of the
parser. Here those are told by the offending token, the one before it, and what was expected. Nothing here
runs for a program that parses.
"""

from __future__ import annotations

from bisect import bisect_left

from harnpy.syntax.lexer import RESERVED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.lexer import Tokens

#: What every help begins with: the one who reads it knows how it is written elsewhere.
_HERE = "in Harn, "
_SEPARATOR = "separator (`;` or newline)"
#: What is due behind an operand where no statement ends.
_BEHIND_OPERANDS = frozenset(["{", ")", "]", "}", ":", ","])

_FN = "functions are declared with `fn name(params) { … }`"
_STRUCT = "there are no classes: `struct` declares fields, `impl` methods"
_CLOSURE = "a closure is `{ x -> … }`"
_ARROW = "a closure is `{ x -> … }`, and an arm of a match `pattern -> { … }`"
_NO_ASYNC = "nothing is marked as asynchronous: calls wait by themselves, `spawn { … }` starts a task"
_VALUES = "values don't change: `d = d.remove(key)` makes a new one"
_BODY = "the body stands in braces: `{ … }`"
_NAMES = "arguments have no names: pass a dict, `f({name: value})`"
_ELSE_IF = "write `else if`"
_CATCH = "use `catch (e) { … }`"
_MATCH = "use `match value { pattern -> { … } }`"
_CALL = "a function is called with parentheses: `println(value)`"
_DECLARED = "a variable is declared with `let` or `var`, its type behind a colon: `let x: int = 5`"
_LOOPS = "loops are `for x in list { … }` and `while condition { … }`"
_VISIBLE = "what other files may use is marked with `pub`, all else is private"
_PATH = 'a module is named by its path: `import "lib/text"`, `import { name } from "lib/text"`'
_NO_COMPREHENSIONS = "there are no comprehensions: use `map` and `filter`"
_TYPE_ARGUMENTS = "a type's parameters stand in angle brackets: `list<int>`, `dict<string, int>`"
_COMMAS = "entries and items have commas between them"
_STATEMENT = "`{}` is a statement, it can't stand within an expression"

#: By the word before the offending token, where a statement should have ended.
_AFTER = {
    **dict.fromkeys(["def", "function", "func"], _FN),
    "lambda": "a function without a name is a closure: `{ x -> x + 1 }`",
    **dict.fromkeys(["elif", "elseif", "elsif"], _ELSE_IF),
    "const": "a constant is bound with `let`",
    "mut": "what changes is declared with `var`",
    **dict.fromkeys(["class", "trait"], _STRUCT),
    "new": "there are no classes; a struct is made with `Name {field: value}`",
    "async": _NO_ASYNC,
    "await": "`await` is called: `await(task)`",
    "go": "a task is started with `spawn { … }`",
    **dict.fromkeys(["switch", "case"], _MATCH),
    **dict.fromkeys(["except", "rescue"], _CATCH),
    "raise": "use `throw`",
    **dict.fromkeys(["export", "public", "private", "protected", "static"], _VISIBLE),
    **dict.fromkeys(["delete", "del"], _VALUES),
    "assert": "`assert` is a function: `assert(condition, message)`",
    "not": "write `!`",
    "typeof": "the type is what `type_of(value)` returns",
    **dict.fromkeys(["print", "println", "printf", "echo", "puts", "len"], _CALL),
    **dict.fromkeys("int string bool float double char str auto local global nonlocal".split(), _DECLARED),
    **dict.fromkeys(["foreach", "loop", "repeat", "do", "unless", "until"], _LOOPS),
    **dict.fromkeys(["with", "using"], "what must happen in the end stands in `defer { … }`"),
    **dict.fromkeys(["use", "package", "include"], _PATH),
    "typedef": "types are declared with `type Name = …`",
    "goto": _LOOPS,
}
#: By the offending token, where an operator could stand.
_OPERATORS = {
    "and": "write `&&`",
    "or": "write `||`",
    "is": "write `==`",
    "instanceof": 'compare the type: `type_of(value) == "list"`',
    "mod": "write `%`",
    "|": "write `||`; there are no operators for bits",
    "as": "values are converted by functions: `to_int(x)`, `to_string(x)`",
}
#: By the offending token, where a statement should have ended.
_INSTEAD_OF_THE_END = {
    **_OPERATORS,
    **dict.fromkeys(["elif", "elseif", "elsif"], _ELSE_IF),
    **dict.fromkeys(["except", "rescue"], _CATCH),
    "if": "a value that depends is `condition ? a : b`",
    "?": "a conditional within another one needs parentheses",
    "(": "only a name can be called: bind the function to one first",
    ",": "one statement binds one variable: take several from a list with `let [a, b] = list`",
    "!": "nothing stands behind a value to unwrap it: `value ?? default`",
}
#: By what was expected, and the token before the offending one.
_EXPECTED_AFTER = {
    ("{", "->"): _BODY,
    ("{", "try"): "`try` takes a block: `try { … }`",
    ("{", "spawn"): "`spawn` takes a block: `spawn { … }`",
    ("{", "defer"): "`defer` takes a block: `defer { … }`",
    ("{", "not"): "write `!`",
    ("{", "typeof"): "the type is what `type_of(value)` returns",
    ("import path string", "import"): _PATH,
    ("=", "mut"): "what changes is declared with `var`",
    (":", "for"): _NO_COMPREHENSIONS,
    ("->", "case"): "an arm of a match is `pattern -> { … }`, without `case`",
    ("parameter name", "*"): "all other arguments are `...rest`",
}
#: By what was expected.
_LACKING = {"{": _BODY, "=": "a variable begins with a value: `var x = nil`"}
#: By what was expected, and the offending token.
_EXPECTED = {
    ("in", ","): "entries are taken apart by `for {key, value} in dict { … }`",
    ("in", "of"): "write `for x in list`",
    ("in", "extends"): "what a type parameter must have stands behind: `where T: Named`",
    ("{", "="): "write `==` to compare",
    ("{", "&&"): "leave out the parentheses around a part of the condition",
    ("{", "||"): "leave out the parentheses around a part of the condition",
    ("{", "->"): "a function without a name states no type of its result",
    ("{", ":"): "the body stands in braces, without a colon: `{ … }`",
    ("{", "then"): "the body stands in braces, without `then`: `{ … }`",
    ("{", "for"): "methods are declared in `impl Name { … }`; interfaces are satisfied by having the methods",
    (")", "="): _NAMES,
    (")", ":"): _NAMES,
    (")", ","): "there are no tuples: use a list, `[a, b]`",
    (")", "?"): "a parameter that may be left out has a default: `x = nil`",
    ("]", "for"): _NO_COMPREHENSIONS,
    ("]", ";"): _COMMAS,
    ("}", ";"): _COMMAS,
    (":", "}"): "an entry has a key and a value: `{name: name}`",
    (":", "="): "an entry is `key: value`",
    ("}", "="): "variants of an enum and fields of a struct have no values",
    ("=", ","): "take several values from a list with `let [a, b] = list`",
    ("=", "["): _TYPE_ARGUMENTS,
    ("=", "?"): "a type that may be nil is `int | nil`",
    ("=", "-"): "names have letters, digits and `_`",
    ("->", ":"): "an arm of a match is `pattern -> { … }`",
    ("expression", "@"): "names begin with a letter or `_`",
    ("expression", "else"): "`else` follows the `}` of its `if`, with no `;` between",
    ("expression", "catch"): "`catch` follows the `}` of its `try`, with no `;` between",
    ("expression", "from"): _PATH,
    ("expression", "|"): _CLOSURE,
    ("dict key", "|"): _CLOSURE,
    ("parameter name", "*"): "all other arguments are `...rest`",
    ("parameter name", "{"): "parameters are plain names: take the value apart in the body",
    ("parameter name", "["): "parameters are plain names: take the value apart in the body",
    ("variable name or destructuring pattern", "("): "use `let [a, b] = list`",
    ("pair pattern element", "let"): "loop over a range: `for i in 0 to n exclusive { … }`",
    ("pair pattern element", "var"): "loop over a range: `for i in 0 to n exclusive { … }`",
    ("member name", "."): "a range is `0 to 3`, or `0 to 3 exclusive` without its end",
    ("member name", "["): "write `x?[i]`",
    ("alias name", "["): "patterns don't nest: take the inner value apart in a second step",
    ("alias name", "{"): "patterns don't nest: take the inner value apart in a second step",
    **{("expression", word): _STATEMENT.format(word) for word in ("return", "throw", "yield", "break")},
}
#: By what begins at the offending token or the one before it, with nothing between; where any is expected.
_SIGNS = {
    ":=": "a variable is declared with `let x = 5`, or `var` if it changes",
    "::": "members stand behind a dot: `x.y`",
    "<>": "write `!=`",
    "!==": "`!=` never converts: there is no `!==`",
    "<<": "there are no operators for bits",
    ">>": "there are no operators for bits",
}
#: Names of Python and JavaScript, and what they are called here.
_NAMES_ELSEWHERE = {
    **dict.fromkeys(["None", "null", "undefined", "NULL", "nullptr", "Nil", "pass"], "nil"),
    **dict.fromkeys(["True", "TRUE", "yes"], "true"),
    **dict.fromkeys(["False", "FALSE"], "false"),
    "end": "}",
    "begin": "{",
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
    **dict.fromkeys(["length", "size", "count", "strlen"], "len"),
    **dict.fromkeys(["fetch", "requests", "axios"], "http_get"),
    **dict.fromkeys(["setTimeout", "delay"], "sleep"),
    **dict.fromkeys(["process", "os"], "env"),
    "Math": "floor",
    "quit": "exit",
    "sorted": "value.sort(…)",
    "reversed": "value.reverse(…)",
    **{
        name: f"value.{name}(…)"
        for name in ("map", "filter", "reduce", "enumerate", "zip", "sum", "sort", "any", "all")
    },
}
#: Types of Python, JavaScript and others, and what they are called here.
_TYPES_ELSEWHERE = {
    **dict.fromkeys(["str", "String", "char", "text", "Str"], "string"),
    **dict.fromkeys(["integer", "Int", "Integer", "long", "i32", "i64", "usize"], "int"),
    **dict.fromkeys(["number", "double", "Float", "Number", "f32", "f64", "decimal"], "float"),
    **dict.fromkeys(["boolean", "Bool", "Boolean"], "bool"),
    **dict.fromkeys(["void", "null", "None", "undefined", "unit", "Nil"], "nil"),
    **dict.fromkeys(["List", "Array", "array", "Vec", "tuple", "Tuple"], "list"),
    **dict.fromkeys(["Dict", "object", "Object", "map", "Map", "Record", "HashMap"], "dict"),
    **dict.fromkeys(["Set", "HashSet"], "set"),
    **dict.fromkeys(["function", "Function", "Callable", "callable"], "closure"),
    **dict.fromkeys(["Any", "dynamic"], "any"),
}
#: By the characters that no token begins with.
_CHARACTERS = {
    "'": 'strings have double quotes: `"text"`',
    "`": 'strings have double quotes, and `"${x}"` inserts a value',
    **dict.fromkeys("“”„‟«»", 'strings have straight double quotes: `"text"`'),
    **dict.fromkeys("‘’‚‛", 'strings have straight double quotes: `"text"`'),
    "#": "a comment begins with `//`",
    "&": "write `&&`; there are no operators for bits",
    "^": "the power is `**`; there are no operators for bits",
    "~": "write `!`; there are no operators for bits",
    "$": "names have no `$` before them",
    **dict.fromkeys("\xa0\u2007\u202f\u3000", "blanks are spaces and tabs: this is another character"),
    **dict.fromkeys("\u200b\u2060\ufeff\u200e\u200f", "this character can't be seen: delete it"),
    **dict.fromkeys("–—−", "minus is `-`"),
    "×": "write `*`",
    "÷": "write `/`",
    "≠": "write `!=`",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "→": "write `->`",
    "…": "write `...`",
}


def habit_for(source: str, tokens: Tokens, at: int, expected: str) -> str | None:
    """Return what to write instead of the token ``at``, where ``expected`` was due; None if unknown."""
    found = _split_in_two(source, tokens, at, expected) or _of_words(source, tokens, at, expected)
    return f"{_HERE}{found}" if found else None


def _of_words(source: str, tokens: Tokens, at: int, expected: str) -> str | None:
    before, got = _text(source, tokens, at - 1), _text(source, tokens, at)
    if (expected, before, got) == ("{", ")", ":") and "fn" in _line(source, tokens, at):
        return "the type of the result stands behind an arrow: `fn f(x) -> int { … }`"
    found = _EXPECTED.get((expected, got)) or _EXPECTED_AFTER.get((expected, before))
    if found is None and expected.endswith(_SEPARATOR):
        found = _AFTER.get(before) or _INSTEAD_OF_THE_END.get(got)
        if found is None and got == "{" and before == ")":
            found = _CLOSURE if "function" in _line(source, tokens, at) else None
        if found is None and got == "{" and tokens.kinds[at - 1] == "IDENT":
            found = "a closure is an argument as any other: `f({ x -> … })`"
    if found is None and expected in _BEHIND_OPERANDS:
        found = _OPERATORS.get(got)
    if found is None and expected == "(" and before == "fn" and got not in RESERVED:
        found = _CLOSURE
    if found is None and got.startswith('"') and expected == "member name":
        found = "texts are joined with `+`"
    return found


def is_reserved(tokens: Tokens, at: int, expected: str) -> bool:
    """Return True if token ``at`` is a word of the language where a name was ``expected``."""
    return tokens.kinds[at] in RESERVED and ("name" in expected or expected.endswith("variable"))


def lacking(expected: str) -> str | None:
    """Return what to say when no more is known than that something was ``expected``; None if nothing."""
    found = _LACKING.get(expected)
    return f"{_HERE}{found}" if found else None


def _split_in_two(source: str, tokens: Tokens, at: int, expected: str) -> str | None:
    """The help for what is one token elsewhere and two or three here, with nothing between them."""
    before, got = _text(source, tokens, at - 1), _text(source, tokens, at)
    is_end = expected.endswith(_SEPARATOR)
    start, last = tokens.starts[at], tokens.starts[max(at - 1, 0)]
    if source.startswith("=>", start):
        return "an entry is `key: value`" if expected == ":" else _ARROW
    if expected == "expression" and before == "==" and got == "=":
        return "`==` never converts: there is no `===`"
    for sign, first in ("+", at - 1), ("-", at - 2):
        if expected == "expression" and first > 0 and source.startswith(sign * 2, tokens.starts[first]):
            name = _text(source, tokens, first - 1)
            return f"write `{name if name.isidentifier() else 'x'} {sign}= 1`"
    if expected == "expression" and source.startswith("++", start):
        return "write `x += 1`"
    if expected in ("expression", "member name") and (digits := _bare_fraction(source, tokens, at, expected)):
        return digits
    if expected == "expression" and got == "*" and before in ("(", ","):
        return "the items of a list are arguments with `...list`"
    if is_end and source.startswith("?:", last):
        return "a default is `value ?? default`"
    for sign, help in _SIGNS.items():
        if source.startswith(sign, start) or (source.startswith(sign, last) and last + len(sign) > start):
            return help
    if is_end and at > 0 and tokens.ends[at - 1] == start:
        if tokens.kinds[at - 1] in ("INT", "FLOAT") and got.isidentifier():
            return "numbers have decimal digits only: no `_`, no exponent, no `0x`"
        if before in ("f", "b", "u") and got.startswith('"'):
            return 'every string takes values, without a letter before it: `"${x}"`'
    return None


def _bare_fraction(source: str, tokens: Tokens, at: int, expected: str) -> str | None:
    """The help for `.5` and `5.`."""
    got, behind = _text(source, tokens, at), source[tokens.ends[at] : tokens.ends[at] + 1]
    if expected == "expression" and got == "." and behind.isdigit():
        return "a number begins with a digit: `0.5`"
    is_fraction = at > 1 and tokens.kinds[at - 2] == "INT" and _text(source, tokens, at - 1) == "."
    if is_fraction and expected == "member name" and got != ".":
        return "a number ends with a digit: `5.0`"
    return None


def _line(source: str, tokens: Tokens, at: int) -> list[str]:
    """The tokens before token ``at`` on its line."""
    line = source.rfind("\n", 0, tokens.starts[at]) + 1
    return [_text(source, tokens, i) for i in range(bisect_left(tokens.starts, line), at)]


def _text(source: str, tokens: Tokens, i: int) -> str:
    return source[tokens.starts[i] : tokens.ends[i]] if 0 <= i < len(tokens.kinds) else ""


def help_for_text(source: str, at: int) -> str | None:
    """Return what to write instead of the characters at ``at``, which make no token; None if unknown."""
    line = source[source.rfind("\n", 0, at) + 1 : at + 2]
    if '\\"' in line and 'r"' in line:
        found: str | None = (
            'a raw string ends at its first quote: use `"""…"""`, which keeps backslashes as well'
        )
    elif source.startswith("\\", at) and source[at + 1 : at + 2].isalpha():
        found = _CLOSURE
    else:
        found = _CHARACTERS.get(source[at : at + 1])
    return f"{_HERE}{found}" if found else None


def name_for(name: str) -> str | None:
    """Return what a name of Python or JavaScript is called here; None if unknown."""
    return _NAMES_ELSEWHERE.get(name)


#: What servers give to programs (11 §1.1), and which command does.
_FROM_SERVERS = {"prompt": "serve", "session_id": "serve", "mcp_servers": "acp"}


def giver_of(name: str) -> str | None:
    """Return who gives a pipeline the parameter of that name, and how to take it; None for other names."""
    command = _FROM_SERVERS.get(name)
    return command and f"`harnpy {command}` gives it to a pipeline that names it: `pipeline main({name})`"


def type_for(name: str) -> str | None:
    """Return what a type of another language is called here; None if unknown."""
    return _TYPES_ELSEWHERE.get(name)
