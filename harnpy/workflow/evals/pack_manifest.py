"""The manifest of an eval pack: every key, whatever its spelling. Spec: 08 §8.7 "Manifest"."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from harnpy.reading.dicts import read_toml
from harnpy.reading.strict import errors_after
from harnpy.workflow.documents import names_its_file, read_document
from harnpy.workflow.shapes import Field, Shape, all_of, list_of, read

if TYPE_CHECKING:
    from harnpy.workflow.evals.pack_types import (
        Case,
        Defaults,
        EvalPack,
        Package,
        PackFixture,
        Rubric,
        RubricAssertion,
        Thresholds,
    )
    from harnpy.world import World


_TEXT, _TEXTS, _NUMBER, _INT = Field("string"), Field("list of strings", []), Field("number"), Field("int")
_DICT, _MAYBE_DICT, _ANY = Field("dict", {}), Field("dict"), Field("any")

_THRESHOLDS: Shape[Thresholds] = Shape(
    {
        "severity": _TEXT,
        **all_of(_NUMBER, "min_score min_confidence max_cost_usd"),
        **all_of(_INT, "max_latency_ms max_tokens max_stage_count"),
    }
)
_LIMITS = Field("dict", {}, _THRESHOLDS)
_PACKAGE: Shape[Package] = Shape({**all_of(_TEXT, "name version source"), "templates": _TEXTS})
_DEFAULTS: Shape[Defaults] = Shape(
    {**all_of(_TEXT, "severity fixture_root"), "thresholds": _LIMITS, "judge": _MAYBE_DICT}
)
_FIXTURE: Shape[PackFixture] = Shape(
    {**all_of(_TEXT, "id kind path trace_id provider event_kind"), "inline": _ANY, "metadata": _DICT}
)
_ASSERTION: Shape[RubricAssertion] = Shape(
    {**all_of(_TEXT, "kind stage path op contains"), "expected": _ANY, "metadata": _DICT}
)
_RUBRIC: Shape[Rubric] = Shape(
    {
        **all_of(_TEXT, "id kind description prompt"),
        "assertions": list_of(_ASSERTION),
        "judge": _MAYBE_DICT,
        "calibration": _ANY,
        "thresholds": _LIMITS,
        "metadata": _DICT,
    }
)
_CASE: Shape[Case] = Shape(
    {
        **all_of(
            _TEXT,
            "id name description run run_path friction_events fixture fixture_path compare_to severity",
        ),
        "rubrics": _TEXTS,
        "thresholds": _LIMITS,
        "metadata": _DICT,
    }
)
_PACK: Shape[EvalPack] = Shape(
    {
        "version": _INT,
        **all_of(_TEXT, "id name description base_dir baseline"),
        "package": Field("dict", None, _PACKAGE),
        "defaults": Field("dict", {}, _DEFAULTS),
        "fixtures": list_of(_FIXTURE),
        "rubrics": list_of(_RUBRIC),
        "judge": _MAYBE_DICT,
        "cases": list_of(_CASE),
        "metadata": _DICT,
    }
)


def normalised(given: Any, world: World) -> EvalPack:
    """Return the manifest with every key. Raise `MisuseError`."""
    with errors_after("eval_pack_manifest parse error at "):
        pack = read(_PACK, _underscored(_PACK, given))
    pack["version"] = pack["version"] or 1
    if not pack["id"]:
        named = pack["name"] if (pack["name"] or "").strip() else None
        pack["id"] = named or f"eval_pack_{world.ids.new()}"
    return pack


@names_its_file
def load(path: str, world: World) -> EvalPack:
    """Return the manifest in a file: JSON if it ends in `.json`, else TOML. Its paths start at its folder.

    Raise `MisuseError`.
    """
    parse = None if path.endswith(".json") else read_toml
    pack = normalised(read_document(path, "eval pack", world, parse), world)
    return {**pack, "base_dir": os.path.join(os.path.dirname(path), pack["base_dir"] or "")}


def _underscored(shape: Shape[Any], given: Any) -> Any:
    """Return ``given`` with dashes in the keys of ``shape`` replaced by underscores."""
    if isinstance(given, list):
        return [_underscored(shape, item) for item in given]
    if not isinstance(given, dict):
        return given
    found = dict(given)
    for key, field in shape.fields.items():
        dashed = key.replace("_", "-")
        if key not in found and dashed in found:
            found[key] = found.pop(dashed)
        if field.part is not None and key in found:
            found[key] = _underscored(field.part, found[key])
    return found
