"""Characters to tokens. Spec: 01 §1, §2, §4.

A token is a kind, a value and two offsets. The kind is what the grammar calls it: a reserved word or
punctuation mark stands for itself, everything else is a class (`IDENT`, `STRING`, …). A contextual word
has the kind ``~word`` until the layout pass has decided. Blanks and comments yield nothing; a run of
line breaks is one `NL`.
"""

from __future__ import annotations

from itertools import compress

from harnpy.formats.patterns import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The inside of string literals: where they end, what they mean. Spec: 01 §4.3-§4.7.
#
# The pieces of an interpolated string are its texts and, for each ``${…}``, the offsets (start, end) of
# the source between the braces.


#: Open brackets, blocks and braces of one interpolation; deeper programs are refused, so that nothing
#: behind the parser has to defend its stack.
MAX_NESTING = 200

Piece = str | tuple[int, int]

# A `$` without brace is in an atomic group: before 3.11.5, CPython's possessive quantifiers go on from
# the wrong place when the last repetition fails in a lookahead (gh-106052).
_PLAIN = r'(?:[^"\\$\n]|\\[\s\S])*+'
#: What a string has up to its end or an interpolation.
TEXT = rf"{_PLAIN}(?>(?:\$(?!\{{){_PLAIN})*)"
_TEXT = compiled(rf'({TEXT})(?:(")|\$\{{)?')
_TRIPLE_STOP = compiled(r'"""|\$\{')
_BRACE = compiled(r"[{}]")
_ESCAPE = compiled(r'\\([nt\\"$])')
_ESCAPED = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "$": "$"}


class LexError(Exception):
    """``text`` (without position) is what is wrong at offset ``at``; it is a ``limit`` that was hit."""

    def __init__(self, text: str, at: int, limit: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.at = at
        self.limit = limit


def too_deep(at: int) -> LexError:
    return LexError(f"Nesting too deep (limit {MAX_NESTING} levels)", at, limit=True)


def unescape(text: str) -> str:
    """``text`` with its escapes replaced; an unknown escape keeps both characters."""
    return _ESCAPE.sub(lambda found: _ESCAPED[found[1]], text) if "\\" in text else text


def scan_string(source: str, at: int, end: int) -> tuple[list[Piece], int]:
    """The pieces of the ``"…"`` string that opens at ``at``, and the offset behind it."""
    pieces: list[Piece] = []
    begin = at + 1
    while True:
        found = _TEXT.match(source, begin, end)
        assert found is not None, "the pattern matches the empty text"
        pieces.append(unescape(found[1]))
        if found[2]:
            return pieces, found.end()
        begin = found.end()
        if begin == found.end(1):
            raise LexError("Unterminated string", at)
        close = closing_brace(source, begin, end, at)
        if not source[begin:close].strip():
            raise LexError("Unexpected character '}'", close + 1)
        pieces.append((begin, close))
        begin = close + 1


def scan_triple(source: str, at: int, end: int) -> tuple[list[Piece], int]:
    """The same for a triple-quoted string, dedent done."""
    pieces: list[Piece] = []
    begin = at + 3 + source.startswith("\n", at + 3)
    while True:
        found = _TRIPLE_STOP.search(source, begin, end)
        if found is None:
            raise LexError("Unterminated string", at)
        pieces.append(source[begin : found.start()])
        if found[0] == '"""':
            return _dedent(pieces), found.end()
        close = closing_brace(source, found.end(), end, at)
        pieces.append((found.end(), close))
        begin = close + 1


def closing_brace(source: str, begin: int, end: int, opening: int) -> int:
    """Return where the interpolation ends whose text begins at ``begin``: braces count, quotes don't."""
    depth = 1
    for found in _BRACE.finditer(source, begin, end):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.start()
        if depth > MAX_NESTING:
            raise too_deep(found.start())
    raise LexError("Unterminated string", opening)


def _dedent(pieces: list[Piece]) -> list[Piece]:
    texts = [piece for piece in pieces if isinstance(piece, str)]
    margin = _margin("".join(texts))
    if len(pieces) == 1:
        return [texts[0] if margin is None else _shift(texts[0], margin).removesuffix("\n")]
    if margin:
        return [
            _shift(piece, margin).removesuffix("\n") if isinstance(piece, str) else piece for piece in pieces
        ]
    if not texts[-1].strip():
        return pieces[:-1]
    return pieces


def _margin(text: str) -> int | None:
    """The least indentation of the lines that are not blank; None when all are."""
    return min((_indentation(line) for line in text.split("\n") if line.strip()), default=None)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _shift(text: str, margin: int) -> str:
    """Each line without up to ``margin`` blanks in front; a blank line becomes empty."""
    if margin == 0:
        return text
    return "\n".join(
        line[min(margin, _indentation(line)) :] if line.strip() else "" for line in text.split("\n")
    )


#: Reserved words (01 §2.1).
RESERVED = frozenset(
    """break catch continue deadline defer else emit enum eval_pack exclusive extends false finally fn for
    from guard if impl import in interface let match mutex nil override parallel pipeline pub require
    retry return select skill spawn struct throw to tool true try type var while yield""".split()
)
#: Identifiers that mean something in some places (01 §2.1).
CONTEXTUAL = frozenset(
    "gen each settle with as stream not where out description summarize timeout default".split()
)
#: Kinds of words other than `IDENT`; ``r`` may open a raw string.
_WORD_KINDS = {word: word for word in RESERVED} | {word: "~" + word for word in CONTEXTUAL | {"r"}}

INT_MAX = 2**63 - 1
_MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}

#: As `re` has them, which a cold start does without.
_DOTALL, _VERBOSE = 16, 64
_TOKEN = compiled(
    r"""
    (?:[ \t\r]|\\\n|//[^\n]*+)*+                            # blanks, joined lines, line comments
    (?:([A-Za-z_]\w*+)                                      # 1: word
    |(\n(?:[ \t\r\n]|\\\n|//[^\n]*+)*+)                     # 2: line breaks
    |(\.[ \t\r]*+\.[ \t\r]*+\.)                             # 3: ellipsis
    |(==|!=|&&|\|[|>]?|\?[?.]?|\*[*=]?|->|[-+%<>]=?|/=|/(?!\*)|[{}()\[\],:;.=!@])   # 4: punctuation
    |"(?!"")(TEXT)"                                         # 5: string without interpolation
    |([0-9]+)(?:(\.[0-9]+)|(ms|[smhdw](?![^\W_])))?         # 6: int, 7: float, 8: duration
    |([^\W\d]\w*+)                                          # 9: word that begins beyond ASCII
    |(.)                                                    # 10: what needs a closer look
    )?""".replace("TEXT", TEXT),
    _VERBOSE | _DOTALL,
)
_WORD, _BREAKS, _ELLIPSIS, _PUNCTUATION, _STRING, _INT, _FLOAT, _DURATION, _FOREIGN_WORD = range(1, 10)
_RAW = compiled(r'"([^"\n]*+)"')
_COMMENT_MARK = compiled(r"/\*|\*/")


class Tokens:
    """Parallel lists; the last token is ``$END``, at the end of the text."""

    __slots__ = ("ends", "kinds", "source", "starts", "values")

    def __init__(self, source: str) -> None:
        self.source = source
        self.kinds: list[str] = []
        self.values: list[Any] = []
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, kind: str, value: Any, start: int, end: int) -> None:
        self.kinds.append(kind)
        self.values.append(value)
        self.starts.append(start)
        self.ends.append(end)

    def breaks_line(self, i: int) -> bool:
        """Return True if token ``i`` starts on a later line than the token before it ends."""
        return self.source.find("\n", self.ends[i - 1], self.starts[i]) >= 0

    def insert(self, i: int, kind: str, value: Any, at: int) -> None:
        """Put a token before token ``i`` that the source lacks, at offset ``at``."""
        self.kinds.insert(i, kind)
        self.values.insert(i, value)
        self.starts.insert(i, at)
        self.ends.insert(i, at)

    def copy(self) -> Tokens:
        copied = Tokens(self.source)
        copied.kinds, copied.values = self.kinds.copy(), self.values.copy()
        copied.starts, copied.ends = self.starts.copy(), self.ends.copy()
        return copied

    def drop_empty(self) -> None:
        """Remove the tokens whose kind is ``""``."""
        self.values = list(compress(self.values, self.kinds))
        self.starts = list(compress(self.starts, self.kinds))
        self.ends = list(compress(self.ends, self.kinds))
        self.kinds = list(filter(None, self.kinds))


def shebang_end(source: str) -> int:
    """Return where the program begins: behind the text of a first line ``#!…``, before its line break."""
    if not source.startswith("#!"):
        return 0
    end = source.find("\n")
    return end if end >= 0 else len(source)


def lex(source: str, start: int, end: int) -> Tokens:
    """The tokens of ``source[start:end]``; raises `LexError` at the first character that begins none."""
    tokens = Tokens(source)
    read(tokens, start, end)
    tokens.add("$END", "", end, end)
    return tokens


def read(tokens: Tokens, start: int, end: int) -> None:
    """Append the tokens of ``source[start:end]``; `LexError` leaves those before the character it names."""
    source = tokens.source
    add_kind, add_value = tokens.kinds.append, tokens.values.append
    add_start, add_end = tokens.starts.append, tokens.ends.append
    word_kind = _WORD_KINDS.get
    matches = _TOKEN.finditer(source, start or min(shebang_end(source), end), end)
    while (found := next(matches, None)) is not None:
        group = found.lastindex
        if group is None:
            break
        text = found[group]
        begin, stop = found.span(group)
        if group == _WORD:
            kind, value = word_kind(text, "IDENT"), text
            if kind == "~r":
                kind = "IDENT"
                raw = _RAW.match(source, stop, end)
                if raw is not None:
                    kind, value, stop = "RAW_STRING", raw[1], raw.end()
                    matches = _TOKEN.finditer(source, stop, end)
                elif source.startswith('"', stop, end):
                    raise LexError("Unterminated string", begin)
        elif group == _PUNCTUATION:
            kind = value = text
        elif group == _BREAKS:
            kind, value, stop = "NL", "\n", begin + 1
        elif group == _STRING:
            kind, value, begin, stop = "STRING", unescape(text), begin - 1, stop + 1
        elif group in (_INT, _FLOAT, _DURATION):
            begin = found.start(_INT)
            kind, value = _number(found[_INT], found[_FLOAT], found[_DURATION])
        elif group == _ELLIPSIS:
            kind, value = "ELLIPSIS", "."
        elif group == _FOREIGN_WORD and text[0].isalpha():
            kind, value = "IDENT", text
        else:
            kind, value, stop = _closer_look(source, begin, end)
            matches = _TOKEN.finditer(source, stop, end)
            if not kind:
                continue
        add_kind(kind)
        add_value(value)
        add_start(begin)
        add_end(stop)


def _number(digits: str, fraction: str | None, unit: str | None) -> tuple[str, Any]:
    if fraction is not None:
        return "FLOAT", float(digits + fraction)
    # Python refuses to read thousands of digits as an int; all that matters is that it is too large.
    value = int(digits) if len(digits) < 30 else INT_MAX + 1
    if unit is not None:
        return "DURATION", value * _MILLISECONDS[unit]
    return ("INT", value) if value <= INT_MAX else ("FLOAT", float(digits))


def _closer_look(source: str, at: int, end: int) -> tuple[str, Any, int]:
    """Kind, value and end of the token at ``at``; a comment has the kind ``""``."""
    if source.startswith("/*", at, end):
        return "", None, comment_end(source, at, end)
    if not source.startswith('"', at, end):
        raise LexError(f"Unexpected character '{source[at]}'", at)
    scan = scan_triple if source.startswith('"""', at, end) else scan_string
    pieces, stop = scan(source, at, end)
    if all(isinstance(piece, str) for piece in pieces):
        return "STRING", "".join(str(piece) for piece in pieces), stop
    return "INTERP", pieces, stop


def comment_end(source: str, at: int, end: int) -> int:
    """Behind the ``/* … */`` that opens at ``at``; raises `LexError` when it is still open at ``end``."""
    depth = 0
    for found in _COMMENT_MARK.finditer(source, at, end):
        depth += 1 if found[0] == "/*" else -1
        if depth == 0:
            return found.end()
    raise LexError("Unterminated block comment", at)
