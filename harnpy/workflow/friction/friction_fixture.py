"""Checking whether friction events suggest the expected context packs. Spec: 08 §8.8 "Expectation keys"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.reading.strict import read_fields
from harnpy.text.json.writer import to_json
from harnpy.workflow.friction.friction_event import read_events
from harnpy.workflow.friction.suggestions import suggestions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.reading.dicts import Dict
    from harnpy.world import World


_FIELDS = {"options": "dict", "expected_suggestions": "list"}
_EXPECTATION = {
    "min_suggestions": "int", "recommended_artifact": "string", "title_contains": "string",
    "manifest_name_contains": "string", "required_capability": "string", "required_output_slot": "string",
}  # fmt: skip
_WHAT = "friction_eval_fixture"


def evaluate(given: Any, world: World) -> Dict:
    """Return the report on a fixture: events, options and expectations. Raise `MisuseError`."""
    events = read_events(given, world)
    fixture = read_fields(given if isinstance(given, dict) else {}, _FIELDS, "", what=_WHAT)
    found = suggestions(events, fixture["options"], world)
    failures: list[str] = []
    for index, item in enumerate(fixture["expected_suggestions"] or []):
        expectation = read_fields(item, _EXPECTATION, f"expected_suggestions[{index}]", what=_WHAT)
        wanted = {key: value for key, value in expectation.items() if value is not None}
        failures += _failures(wanted, found)
    return {
        "pass": not failures,
        "failures": failures,
        "event_count": len(events),
        "suggestion_count": len(found),
        "suggestions": found,
    }


def _failures(wanted: Dict, found: Sequence[Dict]) -> list[str]:
    failures = []
    least = wanted.get("min_suggestions", 0)
    if len(found) < least:
        failures.append(f"expected at least {least} context-pack suggestion(s), got {len(found)}")
    described = wanted.keys() - {"min_suggestions"}
    if described and not any(_matches(suggestion, wanted) for suggestion in found):
        failures.append(f"no context-pack suggestion matched expectation {to_json(wanted)}")
    return failures


def _matches(suggestion: Dict, wanted: Dict) -> bool:
    manifest = suggestion["candidate_manifest"]
    capabilities = {*manifest["capabilities"], *(tool["capability"] for tool in manifest["included_tools"])}
    slots = {slot["name"] for slot in manifest["output_slots"]}
    return (
        wanted.get("recommended_artifact") in (None, suggestion["recommended_artifact"])
        and wanted.get("title_contains", "").lower() in suggestion["title"].lower()
        and wanted.get("manifest_name_contains", "").lower() in manifest["name"].lower()
        and ("required_capability" not in wanted or wanted["required_capability"] in capabilities)
        and ("required_output_slot" not in wanted or wanted["required_output_slot"] in slots)
    )
