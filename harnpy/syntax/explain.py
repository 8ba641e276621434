"""A parser failure in the writer's words: expected X, got T. Spec: 01 §9.

X is read off the automaton: what the parser could have taken instead, and for a name the rule it would
have been in. Nothing here runs for a program that parses.
"""

from __future__ import annotations

from bisect import bisect_left

from harnpy.syntax.brackets import CLOSERS, innermost
from harnpy.syntax.diagnostic import Diagnostic, Related
from harnpy.syntax.errors import LexFault, SyntaxFault
from harnpy.syntax.habits import habit_for, help_for_text, is_reserved, lacking
from harnpy.syntax.lexer import RESERVED, Tokens
from harnpy.syntax.literals import LexError
from harnpy.syntax.recovery import STATEMENT_STARTS
from harnpy.syntax.refusal import SEPARATOR, Failure
from harnpy.syntax.span import Lines
from harnpy.syntax.tables import Table
from harnpy.text.secrets.literals import hidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.brackets import Unclosed

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
        """What stands before the token that should have been a separator."""
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
    """What `harnpy explain` knows the error by."""
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
