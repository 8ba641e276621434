"""The tree-sitter grammar parses what we parse, and its colours are our lexer's.

The parser that is stored is compiled here, so it takes a C compiler.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from typing import Any

import pytest

from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.lexer import CONTEXTUAL
from harnpy.syntax.parser import parse
from tests.counts import COUNT
from tests.highlighting import Colour, disagreements
from tests.support import ROOT
from tests.syntax.programs import programs

_GRAMMAR = ROOT / "editors/tree-sitter-harn"

_COLOURS: dict[str, Colour] = {
    "attribute": "name",
    "comment": "comment",
    "constant.builtin": "word",
    "constructor": "name",
    "embedded": "plain",
    "function": "name",
    "keyword": "word",
    "keyword.operator": "word",
    "number": "number",
    "operator": "mark",
    "property": "name",
    "punctuation": "mark",
    "string": "string",
    "type": "name",
    "variable": "name",
}

#: What a program may do that no grammar would follow, each with the text by which its programs are known.
_ODDITIES = [
    # The code of an interpolation that is no expression is text; braces in its strings count (01 §4.7).
    'println("a${\'}b")',
    'println("<${1 +}>")',
    'let s = "<${f("}"',
    'println("${a b c}")',
    # A comment or a backslash with a line break in it stands for a separator (01 §3).
    "let a = 1 /* first\n*/ let b = 2",
    "let a = 1 \\\nlet b = 2",
    # A closing brace too many is passed over (01 §7).
    "println(1)\n}\nprintln(2)",
]


@pytest.fixture(scope="module")
def tree_sitter(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The parser and the queries that colour."""
    binding = pytest.importorskip("tree_sitter")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("tree-sitter") / "harn.so"
    sources = [_GRAMMAR / "src/parser.c", _GRAMMAR / "src/scanner.c"]
    command = [compiler, "-O1", "-fPIC", "-shared", f"-I{_GRAMMAR / 'src'}", *sources, "-o", library]
    subprocess.run(command, check=True, timeout=300)
    make = ctypes.CDLL(str(library)).tree_sitter_harn
    make.restype = ctypes.c_void_p
    capsule: Any = ctypes.pythonapi.PyCapsule_New
    capsule.restype = ctypes.py_object
    capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    language = binding.Language(capsule(make(), b"tree_sitter.Language", None))
    return binding.Parser(language), binding.Query(language, query("highlights")), binding


def query(name: str) -> str:
    return (_GRAMMAR / f"queries/{name}.scm").read_text(encoding="utf-8")


def colour(capture: str) -> Colour:
    while capture not in _COLOURS:
        capture = capture.rpartition(".")[0]
    return _COLOURS[capture]


def spans(source: str, tree_sitter: Any) -> list[tuple[int, int, Colour]]:
    """The colours of a program, the outer before the inner and the weaker before the stronger."""
    parser, highlights, binding = tree_sitter
    text = source.encode()
    tree = parser.parse(text)
    found = []
    for pattern, captures in binding.QueryCursor(highlights).matches(tree.root_node):
        for name, nodes in captures.items():
            found += [(node.start_byte, -node.end_byte, pattern, name) for node in nodes]
    at = {0: 0}
    offset = 0
    for i, character in enumerate(source, 1):
        offset += len(character.encode())
        at[offset] = i
    return [(at[start], at[-end], colour(name)) for start, end, _, name in sorted(found)]


def ours(source: str) -> bool:
    try:
        parse(source)
    except SyntaxFault:
        return False
    return not any(oddity in source for oddity in _ODDITIES)


def sample() -> list[str]:
    return [source for source in programs()[:: COUNT.coloured_share] if ours(source)]


def test_it_parses_what_we_parse(tree_sitter: Any) -> None:
    parser = tree_sitter[0]
    refused = [source for source in sample() if parser.parse(source.encode()).root_node.has_error]
    assert refused == []


def test_its_colours_are_our_lexers(tree_sitter: Any) -> None:
    found = [each for source in sample() for each in disagreements(source, spans(source, tree_sitter))]
    assert found == []


@pytest.mark.parametrize("name", ["folds", "indents", "injections", "locals"])
def test_the_other_queries_name_what_is_there(tree_sitter: Any, name: str) -> None:
    parser, _, binding = tree_sitter
    assert binding.Query(parser.language, query(name)).pattern_count > 0


def test_the_oddities_are_of_programs() -> None:
    everything = programs()
    assert [oddity for oddity in _ODDITIES if not any(oddity in source for source in everything)] == []


def test_the_scanner_knows_every_contextual_word() -> None:
    scanner = (_GRAMMAR / "src/scanner.c").read_text(encoding="utf-8")
    table = scanner[scanner.index("} CONTEXTUAL[]") :].partition("};")[0]
    assert set(re.findall(r'{"(\w+)"', table)) == set(CONTEXTUAL)
