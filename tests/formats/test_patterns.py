"""Patterns that are compiled before: the same as `re` makes them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from harnpy.formats import patterns
from harnpy.syntax import lexer

SOURCE = Path(patterns.__file__)
_BEFORE = "CODES: dict[str, tuple[int, ...]] = {"
#: The modules whose patterns are compiled before.
MODULES = (lexer,)
PATTERNS = [value for module in MODULES for value in vars(module).values() if isinstance(value, re.Pattern)]


def _made(pattern: re.Pattern[str]) -> tuple[str, tuple[int, ...]]:
    """The pattern's name, and its entry as `re` makes it."""
    given = pattern.flags & ~re.UNICODE
    compiler: Any = re._compiler  # type: ignore[attr-defined]
    parsed = re._parser.parse(pattern.pattern, given)  # type: ignore[attr-defined]
    entry = (parsed.state.flags, parsed.state.groups - 1, *compiler._code(parsed, given))
    return patterns.name_of(pattern.pattern, given), tuple(map(int, entry))


def test_the_codes_are_those_that_re_makes() -> None:
    expected = dict(map(_made, PATTERNS))
    if os.environ.get("HARNPY_UPDATE_GOLDEN"):
        head = SOURCE.read_text().partition(_BEFORE)[0]
        SOURCE.write_text(f"{head}{_BEFORE}\n{''.join(map(_entry, expected.items()))}}}  # fmt: skip\n")
    else:
        again = f"HARNPY_UPDATE_GOLDEN=1 pytest {__file__}"
        assert expected == patterns.CODES, f"write them anew: {again}"


def _entry(item: tuple[str, tuple[int, ...]]) -> str:
    name, code = item
    lines = textwrap.wrap(", ".join(map(str, code)), 100)
    return f'    "{name}": (\n' + textwrap.indent("\n".join(lines), "        ") + ",\n    ),\n"


@pytest.mark.parametrize("matcher", [patterns._sre.MAGIC, 1])
def test_a_pattern_is_like_the_one_of_re(monkeypatch: pytest.MonkeyPatch, matcher: int) -> None:
    """With codes of its own, and where the matcher is one that nobody has seen."""
    monkeypatch.setattr(patterns._sre, "MAGIC", matcher)
    for pattern in PATTERNS:
        found = patterns.compiled(pattern.pattern, pattern.flags & ~re.UNICODE)
        assert found == re.compile(pattern.pattern, pattern.flags)
        assert (found.groups, found.groupindex) == (pattern.groups, pattern.groupindex)
        for text in ('a "b"', '"a\\n${b}', 'x """ ${', "// c\n 12ms", "{}", "/* */", 'r"c"', ""):
            assert [m.span() for m in found.finditer(text)] == [m.span() for m in pattern.finditer(text)]


def test_a_pattern_without_a_code_is_compiled() -> None:
    found = patterns.compiled("(?P<n>[a-c])+x", re.IGNORECASE)
    assert found == re.compile("(?P<n>[a-c])+x", re.IGNORECASE)


def test_the_lexer_works_without_re() -> None:
    code = (
        "import sys; from harnpy.syntax import lexer; "
        r"""lexer.lex('x = "a\\n${y}" + r"q" /* c */ + \"\"\"z\"\"\" + 2ms', 0, 45); """
        "print('re' in sys.modules)"
    )
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {str(SOURCE.parents[2])!r}); {code}",
    ]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"
