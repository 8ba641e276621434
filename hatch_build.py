"""Builds the parse table from the grammar, so that an installed package needs neither of lark and time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Writes harnpy/syntax/harn.table and ships it, although git ignores it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        try:
            from harnpy.syntax.build import build, save
            from harnpy.syntax.tables import grammar_key
        finally:
            sys.path.remove(self.root)
        root = Path(self.root)
        grammar = (root / "grammar" / "harn.lark").read_bytes()
        table = build(grammar, grammar_key(grammar))
        save(table, root / "harnpy" / "syntax" / "harn.table")
        build_data["artifacts"].append("/harnpy/syntax/harn.table")
