"""Eval packs in files: TOML, or JSON by the file's ending. Spec: 08 §8.7."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from harnpy.llm.errors import MisuseError
from harnpy.workflow.evals.manifest import normalised
from harnpy.workflow.fields import read_toml
from harnpy.workflow.records.files import names_its_file, reason

if TYPE_CHECKING:
    from harnpy.session.effects import Effects

    Dict = dict[str, Any]


@names_its_file
def load(path: str, effects: Effects) -> Dict:
    """The manifest in a file, whose folder is where its paths begin. Raises `MisuseError`."""
    try:
        text = effects.read_text(os.path.join(effects.cwd(), path))
    except (OSError, ValueError) as error:
        raise MisuseError(f"failed to read eval pack: {reason(error)}") from error
    try:
        given = effects.parse_json(text) if path.endswith(".json") else read_toml(text)
    except ValueError as error:
        raise MisuseError(f"failed to parse eval pack: {error}") from error
    pack = normalised(given, effects)
    return {**pack, "base_dir": os.path.join(os.path.dirname(path), pack["base_dir"] or "")}
