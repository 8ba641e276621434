"""`// harnpy: allow CODE` silences a finding where somebody knows better. Spec: 03 §1.2.

At the end of a line it speaks of that line, on a line of its own of the statement, declaration or entry that
the next one begins, and among the comments that a file begins with of all of it. Nothing here is loaded for a
file without findings or such comments.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from harnpy.check.findings import Finding
from harnpy.formats.suggestions import nearest_at_run_time
from harnpy.syntax.comments import Comment, comments_between
from harnpy.syntax.diagnostic import Edit, Fix
from harnpy.syntax.layout import arrange
from harnpy.syntax.lexer import LexError, Tokens, lex, shebang_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

#: What the specification's checker finds (03 §7–§10). Its errors hold; everything else can be silenced.
SPECIFIED = frozenset(
    """argument-count argument-type assignment-type attribute-target comparison-type deprecated emit-type
    flow-predicate generator-result immutable-assignment literal-pattern max-concurrent-type
    misplaced-emit misplaced-yield missing-struct-field non-exhaustive-match operand-type or-pattern
    return-type struct-field-type type-argument-count type-bound type-parameter-conflict undefined-call
    unhandled-type unknown-attribute unknown-interface-method unknown-method unknown-property
    unknown-struct unknown-struct-field unnarrowed-unknown unreachable-code unvalidated-access
    variance""".split()
)
#: Warnings of the specification's checker about what is sure to fail where it is reached: errors for a person
#: who is about to start the program (03 §1, §8.2).
CERTAIN = frozenset(["immutable-assignment"])
_ALLOW = re.compile(r"//\s*harnpy:\s*allow\b(.*)")
_WORD = re.compile(r"[^\s,]+")
#: What begins the reason for it.
_REASON = re.compile(r"\s(?:--|—|–)\s")
_OPENERS, _CLOSERS = frozenset("([{"), frozenset(")]}")


def is_own(code: str) -> bool:
    """Return True if a finding is harnpy's own: the language's specification knows nothing of it."""
    return code not in SPECIFIED


def silenced(source: str, findings: Sequence[Finding], parts: Sequence[int] = ()) -> list[Finding]:
    """Return what is left of the findings, and a warning for each code that is allowed but doesn't exist.

    ``parts`` are where parts of the text end that can be read by themselves, if anything in them can.
    """
    if "harnpy:" not in source:
        return list(findings)
    permits = list(_of_parts(source, parts) if parts else _permits(source))
    left = [each for each in findings if not any(permit.covers(each) for permit in permits)]
    return [*left, *_unknown(permits, {each.code for each in findings})]


class _Permit:
    """``code``, which stands at ``at``, is allowed in ``source[start:end]``."""

    __slots__ = ("at", "code", "end", "start")

    def __init__(self, code: str, at: int, start: int, end: int) -> None:
        self.code = code
        self.at = at
        self.start = start
        self.end = end

    def covers(self, finding: Finding) -> bool:
        holds = finding.severity == "error" and finding.code in SPECIFIED - CERTAIN
        return self.code == finding.code and self.start <= finding.start < self.end and not holds


def _of_parts(source: str, parts: Sequence[int]) -> Iterator[_Permit]:
    """Yield the permits of each part, which may speak of what the next one begins with."""
    start = 0
    for end, further in zip(parts, [*parts[1:], len(source)], strict=True):
        if source.find("harnpy:", start, end) >= 0:
            for permit in _readable(source[start:further]) or _readable(source[start:end]):
                if permit.at < end - start:
                    # What holds for all of the first part's text holds for the file.
                    whole = start == 0 and permit.start == 0 and permit.end > end
                    last = len(source) + 1 if whole else start + permit.end
                    yield _Permit(permit.code, start + permit.at, start + permit.start, last)
        start = end


def _readable(text: str) -> list[_Permit]:
    """Return the permits of a text; none where it can't be read."""
    try:
        return list(_permits(text))
    except LexError:
        return []


def _permits(source: str) -> Iterator[_Permit]:
    tokens = lex(source, 0, len(source))
    comments = comments_between(tokens, shebang_end(source))
    allowing = [(comment, found) for comment in comments if (found := _ALLOW.match(source, *comment[:2]))]
    if allowing:
        arrange(tokens)
    for comment, found in allowing:
        start, end = _reach(source, tokens, comment)
        codes = _REASON.split(found[1], maxsplit=1)[0]
        for word in _WORD.finditer(codes):
            code = word[0].removeprefix("lint[").removesuffix("]")
            yield _Permit(code, found.start(1) + word.start(), start, end)


def _reach(source: str, tokens: Tokens, comment: Comment) -> tuple[int, int]:
    """Return what a comment speaks of."""
    if comment.start < tokens.starts[0]:
        return 0, len(source) + 1
    line = source.rfind("\n", 0, comment.start) + 1
    if source[line : comment.start].strip():
        return line, comment.end
    first = min(bisect_left(tokens.starts, comment.end), len(tokens.starts) - 1)
    while tokens.kinds[first] == "NL":
        first += 1
    return tokens.starts[first], tokens.ends[_last(tokens, first)]


def _last(tokens: Tokens, first: int) -> int:
    """The last token of the statement, declaration or entry that begins with token ``first``."""
    depth, i = 0, first
    while not _is_end(tokens, i):
        kind = tokens.source[tokens.starts[i] : tokens.starts[i] + 1]
        if depth == 0 and (kind in ",;" or tokens.kinds[i] == "NL"):
            if tokens.kinds[first] != "@" or tokens.kinds[i] != "NL":
                break
            # An attribute stands above what it belongs to.
            first = i + 1
        depth += (kind in _OPENERS) - (kind in _CLOSERS)
        if depth < 0:
            break
        i += 1
    return max(i - 1, 0)


def _is_end(tokens: Tokens, i: int) -> bool:
    return tokens.kinds[i] == "$END"


def _unknown(permits: Sequence[_Permit], found: Collection[str]) -> Iterator[Finding]:
    """A warning for each code that nothing has."""
    strange = [permit for permit in permits if permit.code not in found and is_own(permit.code)]
    if not strange:
        return
    from harnpy.check.explanations import AT_RUN_TIME, explanations

    known = {code for code, found in explanations().items() if found.family != AT_RUN_TIME}
    for permit in strange:
        if permit.code not in known:
            near = nearest_at_run_time(permit.code, [*known, *SPECIFIED])
            help = f"did you mean `{near}`?" if near else "`harnpy explain` lists all codes"
            message = f"no diagnostic has the code `{permit.code}`"
            end = permit.at + len(permit.code)
            fix = Fix([Edit(permit.at, end, near)], safe=False) if near else None
            yield Finding("unknown-code", "warning", message, permit.at, end, help=help, fix=fix)
