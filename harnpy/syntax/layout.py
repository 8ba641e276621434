"""Which line breaks count, and what ``{ < ?`` and the contextual words are. Spec: 01 §3, §8.

One pass over the tokens, deciding from neighbours and the stack of open brackets. It makes the grammar
LALR(1); the parser sees only what is left.
"""

from __future__ import annotations

from harnpy.syntax.lexer import MAX_NESTING, RESERVED, Tokens, too_deep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Do type arguments and a call follow this ``<``? Spec: 01 §8.3.
#
# A look-ahead over undecided tokens. Deeply nested arguments are given up as a comparison, which bounds
# the work when thousands of ``<`` stand in a row.


_MAX_DEPTH = 24
_LITERALS = frozenset("nil true false STRING RAW_STRING INT".split())


def closes_type_args(kinds: list[str], i: int) -> bool:
    """Return True if ``type {, type} > (`` stands at token ``i``."""
    end = _type_list(kinds, i, ">", 0)
    return end >= 0 and kinds[end] == "("


def _skip(kinds: list[str], i: int) -> int:
    while kinds[i] == "NL":
        i += 1
    return i


def _type_list(kinds: list[str], i: int, closer: str, depth: int) -> int:
    """The token after the list and its closer, or -1."""
    while True:
        i = _type(kinds, _skip(kinds, i), depth + 1)
        if i < 0:
            return -1
        i = _skip(kinds, i)
        if kinds[i] == ",":
            i = _skip(kinds, i + 1)
        elif kinds[i] != closer:
            return -1
        if kinds[i] == closer:
            return i + 1


def _type(kinds: list[str], i: int, depth: int) -> int:
    """The token after the type at ``i``, or -1."""
    if depth > _MAX_DEPTH:
        return -1
    i = _atom(kinds, i, depth)
    while i >= 0 and kinds[i] == "|":
        i = _atom(kinds, _skip(kinds, i + 1), depth)
    return i


def _atom(kinds: list[str], i: int, depth: int) -> int:
    kind = kinds[i]
    if kind == "IDENT" or kind[:1] == "~":
        return _type_list(kinds, i + 2, ">", depth) if kinds[i + 1] == "<" else i + 1
    if kind in _LITERALS:
        return i + 1
    if kind == "-" and kinds[i + 1] == "INT":
        return i + 2
    if kind == "[":
        i = _type(kinds, _skip(kinds, i + 1), depth + 1)
        return i + 1 if i >= 0 and kinds[i] == "]" else -1
    if kind == "{":
        return _shape(kinds, _skip(kinds, i + 1), depth)
    if kind == "fn" and kinds[i + 1] == "(":
        empty = kinds[i + 2] == ")"
        i = i + 3 if empty else _type_list(kinds, i + 2, ")", depth)
        return _type(kinds, i + 1, depth + 1) if i >= 0 and kinds[i] == "->" else -1
    return -1


def _shape(kinds: list[str], i: int, depth: int) -> int:
    """The token after the shape whose first field is at ``i``, or -1."""
    while kinds[i] != "}":
        if kinds[i] == "$END":
            return -1
        i += 1
        if kinds[i] == "?":
            i += 1
        if kinds[i] != ":":
            return -1
        i = _type(kinds, _skip(kinds, i + 1), depth + 1)
        if i < 0:
            return -1
        while kinds[i] in (",", "NL"):
            i += 1
    return i + 1


OPEN_BRACES = frozenset(["LB", "LB_ARROW", "LB_ARROW1", "LB_STRUCT"])
MEMBER_WORDS = RESERVED - {"eval_pack", "finally", "require", "select", "skill"}
#: A line break before one of these does not count: the expression, list or statement goes on.
_CONTINUES = frozenset(
    "|> || && == != < > <= >= ?? + * / % ** . ?. , : ) ] } else catch finally NL $END".split()
)
#: Nor is one after these. ``>`` is missing: it also ends a type, and the grammar deals with it.
_EXPECTS_MORE = OPEN_BRACES | frozenset(
    """( LP_WHILE [ , ; : = += -= *= /= %= |> || && == != < <= >= ?? + - * / % ** . ?. -> | in NOT_IN ELLIPSIS
    LT_GEN EACH SETTLE
    if while for match guard throw emit require let var fn spawn try parallel mutex defer select pub
    pipeline override tool skill eval_pack enum struct interface impl type extends""".split()
)
TERNARY_FOLLOWS = frozenset("IDENT INT FLOAT STRING INTERP true false nil ( { ! - fn".split())
#: What an operand or a type can end with.
_OPERAND_ENDS = frozenset(
    "IDENT INT FLOAT DURATION STRING INTERP RAW_STRING true false nil ) ] } > Q_TRY exclusive".split()
)


PLAIN_OPENERS = ("(", "[", "LP_WHILE")


def arrange(tokens: Tokens) -> None:
    """Classify and drop tokens, in place. Raises `LexError` where brackets nest too deep."""
    layout = _Layout(tokens)
    decision = _DECISIONS.get
    for i, kind in enumerate(tokens.kinds):
        decide = decision(kind)
        if decide is not None:
            decide(layout, i)
    tokens.drop_empty()


def is_identifier(kind: str) -> bool:
    return kind == "IDENT" or kind[:1] == "~"


class _Layout:
    def __init__(self, tokens: Tokens) -> None:
        self.kinds = tokens.kinds
        self.values = tokens.values
        self.tokens = tokens
        self.open: list[int] = []

    # Neighbours. ``before`` sees decided tokens only, ``after`` undecided ones.

    def before(self, i: int) -> str:
        """The kind of the last token kept before ``i``; ``""`` at the beginning."""
        i = self.previous(i)
        return self.kinds[i] if i >= 0 else ""

    def starts_line(self, i: int) -> bool:
        """Return True if token ``i`` begins a statement, field or item of a body."""
        before = self.before(i)
        return before in OPEN_BRACES or before in ("NL", ";")

    def previous(self, i: int) -> int:
        i -= 1
        while i >= 0 and not self.kinds[i]:
            i -= 1
        return i

    def declares(self, word: str) -> bool:
        """Return True if the innermost bracket is the body of a ``word NAME`` or ``word NAME "id"``."""
        if not self.open:
            return False
        name = self.previous(self.open[-1])
        return word in (self.before(name), self.before(self.previous(name)))

    def after(self, i: int) -> int:
        """The next token after ``i`` that is not a line break."""
        i += 1
        while self.kinds[i] == "NL":
            i += 1
        return i

    # Line breaks

    def line_break(self, i: int) -> None:
        before = self.before(i)
        expects_more = before in _EXPECTS_MORE and not self.negates(self.previous(i))
        if not before or expects_more or self.kinds[i + 1] in _CONTINUES or self.ends_param(i):
            self.kinds[i] = ""

    def ends_param(self, i: int) -> bool:
        """Return True if a closure's one name stands before the line break ``i``, and its arrow behind."""
        inside = self.kinds[self.open[-1]] if self.open else ""
        return inside == "LB_ARROW1" and self.kinds[i + 1] == "->"

    def negates(self, i: int) -> bool:
        """Return True if token ``i`` is a sign; its operand must stand on the same line."""
        return self.kinds[i] == "-" and self.before(i) not in _OPERAND_ENDS

    # Brackets

    def push(self, i: int) -> None:
        if len(self.open) == MAX_NESTING:
            raise too_deep(self.tokens.starts[i])
        self.open.append(i)

    def parenthesis(self, i: int) -> None:
        self.push(i)
        if self.before(i) == "while":
            # The condition ends where this one closes (01 §7.6).
            self.kinds[i] = "LP_WHILE"

    def close(self, i: int) -> None:
        if self.open and self.kinds[self.open[-1]] in PLAIN_OPENERS:
            self.open.pop()

    def close_brace(self, i: int) -> None:
        while self.open and self.kinds[self.open.pop()] in PLAIN_OPENERS:
            pass

    def brace(self, i: int) -> None:
        self.kinds[i] = self.brace_class(i)
        self.push(i)

    def brace_class(self, i: int) -> str:
        first = self.after(i)
        kind = self.kinds[first]
        if i and self.kinds[i - 1] == "IDENT" and self.may_name_struct(i - 1):
            key = kind == "STRING" or is_identifier(kind)
            if kind == "}" or (key and self.kinds[self.after(first)] == ":"):
                return "LB_STRUCT"
        if is_identifier(kind) and self.kinds[self.after(first)] == "->":
            return "LB_ARROW1"
        return "LB"

    def may_name_struct(self, i: int) -> bool:
        # The name of a skill's field is not an operand: its value begins with the brace.
        return self.values[i][0].isupper() and not (self.starts_line(i) and self.declares("skill"))

    def arrow(self, i: int) -> None:
        if self.open and self.kinds[self.open[-1]] == "LB":
            self.kinds[self.open[-1]] = "LB_ARROW"

    # Punctuation with several readings

    def dot(self, i: int) -> None:
        name = self.after(i)
        if self.kinds[name] in MEMBER_WORDS or is_identifier(self.kinds[name]):
            self.kinds[name] = "IDENT"

    def less(self, i: int) -> None:
        bare = i and self.kinds[i - 1] == "IDENT" and self.before(i - 1) not in (".", "?.")
        if bare and closes_type_args(self.kinds, i + 1):
            self.kinds[i] = "LT_GEN"

    def question(self, i: int) -> None:
        following = self.kinds[i + 1]
        if following == "[":
            self.kinds[i] = "Q_IDX"
        elif following in TERNARY_FOLLOWS or is_identifier(following):
            self.kinds[i] = "Q_TERN"
        else:
            self.kinds[i] = "Q_TRY"

    # Contextual words

    def decide(self, i: int, special: bool, kind: str) -> None:
        self.kinds[i] = kind if special else "IDENT"

    def gen(self, i: int) -> None:
        self.decide(i, self.kinds[i + 1] == "fn", "GEN")

    def mode(self, i: int) -> None:
        self.decide(i, self.before(i) == "parallel", self.kinds[i][1:].upper())

    def with_(self, i: int) -> None:
        self.decide(i, self.before(i) in _OPERAND_ENDS and self.kinds[i + 1] == "{", "WITH")

    def as_(self, i: int) -> None:
        self.decide(i, self.before(i) == "}", "AS")

    def stream(self, i: int) -> None:
        self.decide(i, self.before(i) == "AS", "STREAM")

    def not_(self, i: int) -> None:
        if self.kinds[i + 1] == "in":
            self.kinds[i + 1] = ""
            self.values[i] = "not in"
            self.tokens.ends[i] = self.tokens.ends[i + 1]
        self.decide(i, not self.kinds[i + 1], "NOT_IN")

    def where(self, i: int) -> None:
        bound = is_identifier(self.kinds[i + 1]) and self.kinds[i + 2] == ":"
        self.decide(i, bound and self.before(i) in _OPERAND_ENDS, "WHERE")

    def out(self, i: int) -> None:
        listed = self.before(i) in ("<", "LT_GEN", ",")
        self.decide(i, listed and is_identifier(self.kinds[i + 1]), "OUT")

    def description(self, i: int) -> None:
        begins = self.before(i) in OPEN_BRACES and self.kinds[i + 1] == "STRING"
        self.decide(i, begins and not self.declares("skill"), "DESCRIPTION")

    def summarize(self, i: int) -> None:
        block = self.starts_line(i) and self.kinds[self.after(i)] == "{"
        self.decide(i, block and self.declares("eval_pack"), "SUMMARIZE")

    def case(self, i: int) -> None:
        in_select = bool(self.open) and self.before(self.open[-1]) == "select"
        starts = self.before(i) in OPEN_BRACES or self.before(i) in ("NL", "}")
        self.decide(i, in_select and starts, self.kinds[i][1:].upper())


_DECISIONS: dict[str, Callable[[_Layout, int], None]] = {
    "NL": _Layout.line_break,
    "{": _Layout.brace,
    "(": _Layout.parenthesis,
    "[": _Layout.push,
    ")": _Layout.close,
    "]": _Layout.close,
    "}": _Layout.close_brace,
    "->": _Layout.arrow,
    ".": _Layout.dot,
    "?.": _Layout.dot,
    "<": _Layout.less,
    "?": _Layout.question,
    "~gen": _Layout.gen,
    "~each": _Layout.mode,
    "~settle": _Layout.mode,
    "~with": _Layout.with_,
    "~as": _Layout.as_,
    "~stream": _Layout.stream,
    "~not": _Layout.not_,
    "~where": _Layout.where,
    "~out": _Layout.out,
    "~description": _Layout.description,
    "~summarize": _Layout.summarize,
    "~timeout": _Layout.case,
    "~default": _Layout.case,
}
