"""The stored grammars are those that editors/grammars.py writes, and know every word of the language."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harnpy.syntax.lexer import RESERVED
from tests.support import ROOT

_TREE_SITTER = ROOT / "editors/tree-sitter-harn"


def written() -> dict[Path, str]:
    found: dict[Path, str] = runpy.run_path(str(ROOT / "editors/grammars.py"))["written"]()
    return found


def test_stored_files_are_up_to_date() -> None:
    old = [path.name for path, text in written().items() if path.read_text(encoding="utf-8") != text]
    assert old == [], "run `python editors/grammars.py`"


def test_tree_sitter_knows_every_reserved_word() -> None:
    nodes = json.loads((_TREE_SITTER / "src/node-types.json").read_text(encoding="utf-8"))
    assert {node["type"] for node in nodes} >= RESERVED


def test_the_stored_parser_is_the_grammars(tmp_path: Path) -> None:
    if shutil.which("tree-sitter") is None:
        pytest.skip("needs tree-sitter (`cargo install tree-sitter-cli`)")
    for name in ("grammar.js", "tree-sitter.json"):
        shutil.copy(_TREE_SITTER / name, tmp_path)
    shutil.copytree(_TREE_SITTER / "src", tmp_path / "src")
    subprocess.run(["tree-sitter", "generate"], cwd=tmp_path, check=True, timeout=300)
    for name in ("parser.c", "grammar.json", "node-types.json"):
        assert (tmp_path / "src" / name).read_bytes() == (_TREE_SITTER / "src" / name).read_bytes(), name


def test_a_new_reserved_word_reaches_the_grammars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harnpy.syntax.lexer.RESERVED", RESERVED | {"whenever"})
    found: dict[str, Any] = {path.name: text for path, text in written().items()}
    assert [name for name, text in found.items() if "whenever" not in text] == []
