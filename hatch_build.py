"""Builds what an installed package has instead of files of the repository, or beside them.

With the table of the grammar, it needs neither lark nor time; with the index of builtins, no program waits
for one; packed, the specification takes a quarter.
"""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Writes the parse table and the index of builtins and ships them, although git ignores them; ships
    docs/spec packed."""

    _made = ""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        sys.path.insert(0, self.root)
        try:
            from harnpy.builtins.catalog import INDEX_PATH, index
            from harnpy.syntax.build import build, save
            from harnpy.syntax.tables import grammar_key
        finally:
            sys.path.remove(self.root)
        grammar = (root / "grammar" / "harn.lark").read_bytes()
        table = build(grammar, grammar_key(grammar))
        save(table, root / "harnpy" / "syntax" / "harn.table")
        save(index(), INDEX_PATH)
        build_data["artifacts"] += ["/harnpy/syntax/harn.table", "/harnpy/builtins.index"]
        if self.target_name == "wheel" and version == "standard":  # an editable one reads the checkout's
            self._made = mkdtemp()
            archive = Path(self._made) / "spec.zip"
            pack(root / "docs" / "spec", archive)
            build_data["force_include"][str(archive)] = "harnpy/spec.zip"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._made:
            rmtree(self._made)


def pack(folder: Path, archive: Path) -> None:
    """Write the files of a folder to a zip archive, always the same for the same files."""
    with ZipFile(archive, "w") as packed:
        for file in sorted(folder.iterdir()):
            packed.writestr(ZipInfo(file.name), file.read_bytes(), ZIP_DEFLATED, 9)
