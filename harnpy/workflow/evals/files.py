"""Eval packs in files: TOML, or JSON by the file's ending. Spec: 08 §8.7."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

from harnpy.workflow.documents import names_its_file, read_document
from harnpy.workflow.evals.manifest import normalised
from harnpy.workflow.fields import read_toml

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.session.effects import Effects


@names_its_file
def load(path: str, effects: Effects) -> Dict:
    """The manifest in a file, whose folder is where its paths begin. Raises `MisuseError`."""
    parse = None if path.endswith(".json") else read_toml
    pack = normalised(read_document(path, "eval pack", effects, parse), effects)
    return {**pack, "base_dir": os.path.join(os.path.dirname(path), pack["base_dir"] or "")}
