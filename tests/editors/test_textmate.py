"""The TextMate grammar colours every program as our own lexer reads it.

VS Code's own engine makes the colours, so this runs where the packages of
editors/vscode are installed (`npm ci` there).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable

import pytest

from harnpy.syntax.lexer import LexError
from tests.counts import COUNT
from tests.highlighting import Colour, disagreements
from tests.support import ROOT
from tests.syntax.programs import programs

_PACKAGES = ROOT / "editors/vscode/node_modules/vscode-textmate"

#: Ours for the innermost scope that one of these begins.
_COLOURS: dict[str, Colour] = {
    "comment": "comment",
    "constant.numeric": "number",
    "constant.language": "word",
    "constant.character.escape": "string",
    "string": "string",
    "keyword.operator.expression": "word",
    "keyword.operator": "mark",
    "keyword": "word",
    "storage": "word",
    "entity.name": "name",
    "variable": "name",
    "punctuation.definition.string": "string",
    "punctuation": "mark",
}


def colour(scopes: str) -> Colour:
    for scope in reversed(scopes.split()):
        if scope == "meta.embedded.expression.harn":
            return "plain"
        for prefix, found in _COLOURS.items():
            if scope == prefix or scope.startswith(prefix + "."):
                return found
    return "plain"


def coloured(sources: Iterable[str]) -> list[list[tuple[int, int, Colour]]]:
    """Colour each program with the engine of VS Code."""
    asked = "".join(json.dumps({"source": source}) + "\n" for source in sources)
    done = subprocess.run(
        ["node", ROOT / "editors/check.mjs"], input=asked, capture_output=True, encoding="utf-8", check=True
    )
    return [
        [(start, end, colour(scopes)) for start, end, scopes in json.loads(line)]
        for line in done.stdout.split("\n")[:-1]
    ]


@pytest.mark.skipif(
    shutil.which("node") is None or not _PACKAGES.is_dir(), reason="needs node and `npm ci` in editors/vscode"
)
def test_the_colours_of_programs_are_the_lexers() -> None:
    sample = programs()[:: COUNT.coloured_share]
    found = []
    for source, spans in zip(sample, coloured(sample), strict=True):
        try:
            found += disagreements(source, spans)
        except LexError:
            continue
    assert found == []
