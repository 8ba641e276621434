"""A parser's failure: the message, the unclosed bracket, and where parsing resumes. Spec: 01 §9.

The message is in the writer's words: expected X, got T. X is read off the automaton: what the parser could
have taken instead, and for a name the rule it would have been in. Nothing here runs for a program that
parses.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from harnpy.formats.secrets.forms import hidden
from harnpy.syntax.diagnostic import Diagnostic, LexFault, Lines, Related, SyntaxFault
from harnpy.syntax.habits import habit_for, help_for_text, is_reserved, lacking
from harnpy.syntax.layout import OPEN_BRACES, PLAIN_OPENERS
from harnpy.syntax.lexer import RESERVED, LexError, Tokens
from harnpy.syntax.nodes import SEPARATOR, Failure
from harnpy.syntax.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

# Which bracket is never closed: the indentation tells, where one kind of bracket or another is left over.
#
# A bracket's content is indented deeper than the line of its opener, or stands on that line; what begins a
# line no deeper is behind it. Works on the tokens before the layout pass. Spec: 01 §9.6.


CLOSERS = {"(": ")", "[": "]", "{": "}"}
_OPENERS = {closer: opener for opener, closer in CLOSERS.items()}
#: What can begin a line at the depth of an opener before its content only if that is closed.
_DECLARES = frozenset("fn pub tool skill eval_pack pipeline struct enum interface impl import".split())


class Unclosed(NamedTuple):
    """The bracket at token ``opener`` should have been closed before token ``before``."""

    opener: int
    before: int


class _Open(NamedTuple):
    kind: str
    at: int
    #: How far the line that the bracket is on is indented, in characters; `_UNKNOWN` if that tells nothing.
    indent: int


_UNKNOWN = -1


def unclosed(tokens: Tokens) -> int:
    """Return how many brackets are opened and not closed."""
    found, open_ = 0, list[str]()
    for kind in tokens.kinds:
        if kind in CLOSERS:
            open_.append(kind)
        elif kind in _OPENERS and _OPENERS[kind] in open_:
            while open_.pop() != _OPENERS[kind]:
                found += 1
    return found + len(open_)


def suspects(tokens: Tokens) -> Iterator[Unclosed]:
    """The brackets that seem not to be closed where they should be, in the order in which that shows."""
    open_: list[_Open] = []
    indent = 0
    for i, kind in enumerate(tokens.kinds):
        begins_line = i == 0 or tokens.kinds[i - 1] == "NL"
        if begins_line:
            indent = _column(tokens, i)
        if kind in CLOSERS:
            if begins_line:
                yield from _left(tokens, open_, i, indent)
            open_.append(_Open(kind, i, indent))
        elif kind in _OPENERS:
            yield from _closing(open_, i, indent if begins_line else None, _OPENERS[kind])
        elif begins_line and kind not in ("NL", "$END"):
            yield from _left(tokens, open_, i, indent)


def innermost(tokens: Tokens, at: int, closer: str) -> int | None:
    """The innermost bracket that is open at token ``at``, if it is one that ``closer`` closes."""
    open_: list[int] = []
    for i, start in enumerate(tokens.starts[:at]):
        kind = tokens.source[start : tokens.ends[i]]
        if kind in CLOSERS:
            open_.append(i)
        elif kind in _OPENERS:
            while open_ and _kind(tokens, open_.pop()) != _OPENERS[kind]:
                pass
    return open_[-1] if open_ and CLOSERS[_kind(tokens, open_[-1])] == closer else None


def _kind(tokens: Tokens, i: int) -> str:
    return tokens.source[tokens.starts[i] : tokens.ends[i]]


def closed(tokens: Tokens, found: Unclosed) -> Tokens:
    """The tokens with the bracket closed there; the closer takes no room in the source."""
    at = found.before
    while tokens.kinds[at - 1] == "NL":
        at -= 1
    mended = tokens.copy()
    closer, offset = CLOSERS[tokens.kinds[found.opener]], tokens.ends[at - 1]
    mended.insert(at, closer, closer, offset)
    return mended


def _left(tokens: Tokens, open_: list[_Open], i: int, indent: int) -> Iterator[Unclosed]:
    """The innermost bracket, if a line that begins with token ``i`` is not inside it."""
    while open_ and indent <= open_[-1].indent:
        innermost = open_[-1]
        if _shows_nothing(tokens, innermost, i):
            open_[-1] = innermost._replace(indent=_UNKNOWN)
            return
        open_.pop()
        yield Unclosed(innermost.at, i)


def _shows_nothing(tokens: Tokens, bracket: _Open, i: int) -> bool:
    """Return True if token ``i`` is the first one inside, not indented as it should be."""
    return bracket.at == i - 2 and tokens.kinds[i] not in _DECLARES


def _closing(open_: list[_Open], i: int, indent: int | None, opener: str) -> Iterator[Unclosed]:
    """Close the bracket that token ``i`` belongs to, by its indentation if it begins a line."""
    partners = [n for n, each in enumerate(open_) if each.kind == opener]
    if not partners:
        return
    same = [n for n in partners if open_[n].indent == indent]
    partner = same[-1] if same and open_[-1].indent != indent else partners[-1]
    yield from (Unclosed(each.at, i) for each in reversed(open_[partner + 1 :]))
    del open_[partner:]


def _column(tokens: Tokens, i: int) -> int:
    return tokens.starts[i] - tokens.source.rfind("\n", 0, tokens.starts[i]) - 1


# Where reading goes on after an error: behind the characters or the statement at fault. Spec: 01 §9.4.


STATEMENT_STARTS = frozenset(
    """let var if for while match retry return throw fn pub try select pipeline import parallel enum eval_pack
    struct interface emit guard require deadline yield mutex defer break continue tool skill impl""".split()
)


def blanked(text: str, error: LexError) -> str | None:
    """``text`` with blanks from a character that begins no token to the end of its line.

    None where an error is of another kind: what is behind it can't be told.
    """
    if error.text != f"Unexpected character '{text[error.at : error.at + 1]}'":
        return None
    end = text.find("\n", error.at)
    end = len(text) if end < 0 else end
    return text[: error.at] + " " * (end - error.at) + text[end:]


def recover(table: Table, tokens: Tokens, failure: Failure) -> int:
    """Make the innermost statement with the failure a `nil`; the token to go on from.

    The stacks of the failure are then those before the statement.
    """
    keep = next(n for n in range(len(failure.states), 0, -1) if table.accepts(failure.states[:n], "let"))
    begun = failure.begins[keep - 1 : keep]
    first = bisect_left(tokens.starts, begun[0]) if begun else failure.at
    del failure.states[keep:], failure.values[keep - 1 :], failure.begins[keep - 1 :]
    at = _end(tokens, min(first, failure.at), failure.at)
    tokens.insert(at, "nil", "nil", tokens.ends[at - 1] if at else 0)
    return at


def next_item(tokens: Tokens, at: int) -> int:
    """The next token behind token ``at`` that begins a statement at the margin; the last one if none does."""
    last = len(tokens.kinds) - 1
    return next(
        (i for i in range(at + 1, last) if _begins(tokens, i, 0) and tokens.kinds[i - 1] == "NL"), last
    )


def _end(tokens: Tokens, first: int, failed: int) -> int:
    """The token behind the statement that begins with token ``first``, at token ``failed`` or later."""
    open_: list[str] = []
    indent = _column(tokens, first)
    for i in range(first, len(tokens.kinds)):
        kind = tokens.kinds[i]
        if kind in PLAIN_OPENERS or kind in OPEN_BRACES:
            open_.append(kind)
        elif kind in (")", "]"):
            if open_ and open_[-1] in PLAIN_OPENERS:
                open_.pop()
        elif kind == "}":
            while open_ and open_[-1] in PLAIN_OPENERS:
                open_.pop()
            if open_:
                open_.pop()
            elif i >= failed:
                return i
        elif i >= failed and kind in ("NL", ";") and (not open_ or _begins(tokens, i + 1, indent)):
            return i
    return len(tokens.kinds) - 1


def _begins(tokens: Tokens, i: int, indent: int) -> bool:
    """Return True if a statement begins at token ``i`` that stands no deeper than ``indent``."""
    return tokens.kinds[i] in STATEMENT_STARTS and _column(tokens, i) <= indent


SEPARATED = "separator (`;` or newline)"
TOP_SEPARATOR = f"top-level item {SEPARATED}"
#: What an identifier is called in each rule of the grammar that takes one. The first that fits counts.
_ROLES = {
    "fn_decl": "function name",
    "pipeline_decl": "pipeline name",
    "extends": "parent pipeline name",
    "override_decl": "override name",
    "tool_decl": "tool name",
    "skill_decl": "skill name",
    "skill_field": "skill field name",
    "eval_name": "eval_pack name or string id",
    "enum_decl": "enum name",
    "variant": "variant name",
    "struct_decl": "struct name",
    "field": "field name",
    "shape_field": "field name",
    "interface_decl": "interface name",
    "impl_decl": "type name",
    "type_decl": "type name",
    "type_param": "type parameter name",
    "bound": "type parameter name",
    "bound_type": "type bound",
    "method": "method name",
    "method_sig": "method name",
    "assoc_type": "associated type name",
    "bare_params": "parameter name",
    "param": "parameter name",
    "import_names": "import name",
    "attribute": "attribute name",
    "attr_arg": "attribute argument value (literal or identifier)",
    "attr_item": "attribute argument value (literal or identifier)",
    "binding": "variable name or destructuring pattern",
    "for_pattern": "variable name or destructuring pattern",
    "pair_name": "pair pattern element",
    "dict_name": "field name",
    "alias": "alias name",
    "list_name": "element name",
    "pattern_rest": "rest variable name",
    "case": "select case variable",
    "error_name": "error variable",
    "option_name": "option name in `parallel ... with { ... }` block",
    "member": "member name",
    "type_atom": "type name",
    "key": "dict key",
}
#: Where a reserved word is shown as what it is, not as a misplaced name.
_NOT_PLAIN_NAMES = frozenset(["member name", "dict key", "attribute argument value (literal or identifier)"])
_CLOSERS = frozenset(")]}")
_LEXICAL_CODES = {
    "Unexpected character": "unexpected-character",
    "Unterminated string": "unterminated-string",
    "Unterminated block comment": "unterminated-comment",
    "Nesting too deep": "nesting-too-deep",
}
_AFTER_PUB = "fn, tool, skill, eval_pack, struct, enum, pipeline, or import after pub"
_HELPS = {
    "}": "add a closing `}` to finish this block",
    ")": "add a closing `)` to finish this expression or parameter list",
    "]": "add a closing `]` to finish this list or subscript",
    _AFTER_PUB: "use `pub fn`, `pub pipeline`, `pub enum`, or `pub struct`",
}
_HEREDOC = (
    "an expression — heredocs are only valid inside LLM tool-call argument JSON; for multiline strings "
    'in source code use triple-quoted `"""..."""`'
)
#: How messages show a token, by its kind; ``{}`` is its value.
_FORMS = {
    "STRING": "str({})",
    "RAW_STRING": "rstr({})",
    "INTERP": "istr(...)",
    "INT": "int({})",
    "DURATION": "duration({}ms)",
    "NL": "\\n",
    "NOT_IN": "id(not)",
}
#: Longer tokens are shown in part, in characters.
_LONGEST_TOKEN = 80
#: Required tokens by what they are called; the closest to the offending token first.
_REQUIRED = {
    **{kind: kind for kind in ") ] }".split()},
    "STRING": "import path string",
    "LB": "{",
    "LB_ARROW1": "{",
    **{kind: kind for kind in "-> = in else from ( > : , fn".split()},
    "STREAM": "`stream` after `parallel each ... as`",
}


class Explainer:
    """Collects the errors of one source."""

    def __init__(self, table: Table, source: str, file: str) -> None:
        self.table = table
        self.source = source
        self.file = file
        self.lines = Lines(source)
        #: Each with its message form, by its offset.
        self.diagnostics: dict[int, tuple[Diagnostic, str]] = {}

    def fault(self) -> SyntaxFault:
        """All errors in source order."""
        found = [self.diagnostics[start] for start in sorted(self.diagnostics)]
        return SyntaxFault(found[0][1], [each for each, _ in found], self.source, self.file)

    def lexical_fault(self) -> SyntaxFault:
        """The errors of the lexer, which are reported without those of the parser."""
        fault = self.fault()
        return LexFault(fault.message, fault.diagnostics, self.source, self.file)

    def add_lexical(self, error: LexError) -> None:
        """Report an error of the lexer."""
        span = self.lines.span(error.at, error.at)
        message = f"{error.text} at {span.line}:{span.column}"
        help = help_for_text(self.source, error.at)
        code = next(code for text, code in _LEXICAL_CODES.items() if error.text.startswith(text))
        if help is not None:
            code = "foreign-syntax"
        self.diagnostics[error.at] = Diagnostic("error", message, span, "here", help, code=code), message

    def add(self, tokens: Tokens, failure: Failure) -> None:
        """Report a failure."""
        at, got, reject = failure.at, "", failure.reject
        if reject is None or reject.expected == SEPARATOR:
            expected = self.expected(tokens, failure)
        else:
            expected, got = reject.expected, reject.got
            if reject.at is not None:
                at = bisect_left(tokens.starts, reject.at) + reject.skip
        if expected == _HEREDOC:
            got = "`<<` heredoc-like syntax"
        self._report(tokens, at, expected, got)

    def add_unclosed(self, tokens: Tokens, found: Unclosed) -> None:
        """Report that a bracket should have been closed before a token."""
        self._report(tokens, found.before, CLOSERS[tokens.kinds[found.opener]], "", found.opener)

    def _report(self, tokens: Tokens, at: int, expected: str, got: str, opener: int | None = None) -> None:
        """Add the error that ``expected`` was due at token ``at``; ``opener`` is the bracket it is about."""
        span = self.lines.span(tokens.starts[at], tokens.ends[at])
        code, help = self._advice(tokens, at, expected)
        if opener is None and expected in _CLOSERS:
            opener = innermost(tokens, at, expected)
        if tokens.kinds[at] == "$END" and not got:
            text, label = f"end of file, expected {expected}", "file ends here"
            message, headline = "Unexpected " + text, "unexpected " + text
        else:
            got = got or _shown(tokens, at, expected)
            label = "line break not allowed here" if tokens.kinds[at] == "NL" else "unexpected token"
            message = f"Expected {expected}, got {got} at {span.line}:{span.column}"
            headline = f"expected {expected}, found {got}"
        related = () if opener is None else self._opened(tokens, opener, span.line)
        if related:
            code = "unclosed-bracket"
        found = Diagnostic("error", headline, span, label, help, code=code, related=related)
        self.diagnostics.setdefault(span.start, (found, message))

    def _opened(self, tokens: Tokens, opener: int, line: int) -> tuple[Related, ...]:
        """The place of a bracket on another line."""
        span = self.lines.span(tokens.starts[opener], tokens.ends[opener])
        return () if span.line == line else (Related("opened here, never closed", span),)

    def _advice(self, tokens: Tokens, at: int, expected: str) -> tuple[str, str | None]:
        """The code of the error that ``expected`` was due at token ``at``, and what to do about it."""
        habit = habit_for(self.source, tokens, at, expected)
        if habit is not None:
            return "foreign-syntax", habit
        if is_reserved(tokens, at, expected):
            word = tokens.kinds[at]
            return "reserved-word", f"`{word}` is a word of the language: take another name"
        return _code(tokens.kinds[at], expected), lacking(expected) or _HELPS.get(expected)

    # --- what was expected ------------------------------------------------------------------------

    def expected(self, tokens: Tokens, failure: Failure) -> str:
        kinds, at, states = tokens.kinds, failure.at, failure.states
        viable = {kind for kind in self.table.row(states[-1]) if self.table.accepts(states, kind)}
        after_item = "+" in viable or "," in viable
        if kinds[at] == "$END":
            for closer in ") ] }".split():
                if closer in viable:
                    return closer
        if not after_item:
            if "DURATION" in viable:
                heredoc = kinds[at : at + 3] == ["<", "<", "IDENT"]
                return _HEREDOC if heredoc else "expression"
            name = self._name(viable, states)
            if name:
                return name
        if ";" in viable and "NL" in viable:
            return self._separator(tokens, at, states, viable)
        return next((text for kind, text in _REQUIRED.items() if kind in viable), "expression")

    def _name(self, viable: set[str], states: list[int]) -> str:
        taken = self.table.trial(states, "IDENT")
        if taken is not None:
            roles = self.table.roles(taken[0][-1])
            return next((text for role, text in _ROLES.items() if role in roles), "")
        if "fn" in viable:
            return _AFTER_PUB if "eval_pack" in viable else "fn"
        return "number after '-' in attribute argument" if viable == {"INT", "FLOAT"} else ""

    def _separator(self, tokens: Tokens, at: int, states: list[int], viable: set[str]) -> str:
        if "$END" in viable:
            return TOP_SEPARATOR
        return f"{self._separated(tokens, at, states)} {SEPARATED}"

    def _separated(self, tokens: Tokens, at: int, states: list[int]) -> str:
        """Return what stands before the token that should have been a separator."""
        if tokens.kinds[at - 2 : at] == ["DESCRIPTION", "STRING"]:
            return "tool body item"
        taken = self.table.trial(states, "NL")
        completed = taken[1] if taken is not None else set()
        if "skill_field" in completed:
            return "skill field"
        if "eval_field" in completed:
            return "eval_pack field"
        if "summary" in completed:
            return "eval_pack item"
        return "eval_pack body statement" if "eval_items" in completed else "statement"


def _code(got: str, expected: str) -> str:
    """Return what `harnpy explain` knows the error by."""
    if expected == "expression":
        return "missing-expression"
    if expected.endswith(SEPARATED):
        return "missing-separator"
    if expected in _ROLES.values():
        return "missing-name"
    if expected in _CLOSERS and (got == "$END" or got in _CLOSERS or got in STATEMENT_STARTS):
        return "unclosed-bracket"
    return "unexpected-end" if got == "$END" else "unexpected-token"


def _shown(tokens: Tokens, at: int, expected: str) -> str:
    """A token as messages name it (01 §9.1)."""
    kind, value = tokens.kinds[at], tokens.values[at]
    if isinstance(value, str):
        value = hidden(value)
        value = value if len(value) <= _LONGEST_TOKEN else f"{value[:_LONGEST_TOKEN]}…"
    if kind in _FORMS:
        return _FORMS[kind].format(value)
    if kind == "FLOAT":
        return f"float({int(value) if value.is_integer() else value})"
    if kind in RESERVED:
        plain_name = expected in _ROLES.values() and expected not in _NOT_PLAIN_NAMES
        return f"'{kind}' (reserved keyword)" if plain_name else kind
    if kind == "IDENT" or str(value).isidentifier():
        return f"id({value})"
    return str(value)
