"""Eval suites: runs judged by their fixtures, and by baselines if there are any. Spec: 08 §8.2–8.3."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.reading.strict import errors_after
from harnpy.workflow.documents import names_its_file, read_document
from harnpy.workflow.records.record import normalised
from harnpy.workflow.records.record_diff import baseline_failure, diff
from harnpy.workflow.records.record_files import load
from harnpy.workflow.records.replay_fixture import evaluate, fixture_of, read_fixture
from harnpy.workflow.shapes import Field, Shape, all_of, list_of, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.reading.dicts import Dict
    from harnpy.workflow.records.record_types import ReplayFixture, RunRecord, SuiteCase, SuiteManifest
    from harnpy.world import World


MANIFEST = "eval_suite_manifest"
_CASE: Shape[SuiteCase] = Shape(
    {**all_of(Field("string"), "label fixture_path compare_to"), "run_path": Field("string", "")}
)
_MANIFEST: Shape[SuiteManifest] = Shape(
    {
        "_type": Field("string", MANIFEST),
        "id": Field("string", ""),
        **all_of(Field("string"), "name base_dir"),
        "cases": list_of(_CASE),
    }
)


def read_manifest(given: Any, caller: str, world: World) -> SuiteManifest:
    """Return a manifest with every key. Raise `MisuseError`, which names ``caller``."""
    with errors_after(f"{caller} parse error at "):
        manifest = read(_MANIFEST, given)
    return {**manifest, "_type": MANIFEST, "id": manifest["id"] or f"eval_suite_{world.ids.new()}"}


def run_manifest(manifest: SuiteManifest, world: World) -> Dict:
    """Return the report on a manifest's cases. Raise `MisuseError` for an unreadable file."""
    return report([_manifest_case(case, manifest["base_dir"], world) for case in manifest["cases"]])


def evaluate_suite(items: Sequence[Any], world: World) -> Dict:
    """Return the report on records, or on `{run, fixture?, path?}`. Raise `MisuseError`."""
    return report([_item_case(item, world) for item in items])


def report(cases: list[Dict]) -> Dict:
    """Return `{pass, total, passed, failed, cases}` for the reports on cases."""
    passed = sum(case["pass"] for case in cases)
    failed = len(cases) - passed
    return {"pass": not failed, "total": len(cases), "passed": passed, "failed": failed, "cases": cases}


@names_its_file
def load_fixture(path: str, world: World) -> ReplayFixture:
    """Return the replay fixture in a file. Raise `MisuseError`."""
    given = read_document(path, "replay fixture", world)
    with errors_after("failed to parse replay fixture: "):
        return read_fixture(given, "replay fixture")


def own_fixture(run: RunRecord, world: World) -> ReplayFixture:
    """Return the fixture that a record keeps, else the one derived from it."""
    stored = run["replay_fixture"]
    return fixture_of(run, world) if stored is None else stored


def _item_case(item: Any, world: World) -> Dict:
    given: Dict = item if isinstance(item, dict) and "run" in item else {"run": item}
    run = normalised(given["run"], world)
    fixture = given.get("fixture")
    known = own_fixture(run, world) if fixture is None else read_fixture(fixture, "run_record_eval_suite")
    path = given.get("path")
    return case_report(run, known, None, path if isinstance(path, str) else run["persisted_path"])


def _manifest_case(case: SuiteCase, base: str | None, world: World) -> Dict:
    if not case["run_path"]:
        raise MisuseError("eval suite case is missing run_path")

    def place(path: str) -> str:
        return os.path.join(base or "", path)

    path, fixture_path, baseline = place(case["run_path"]), case["fixture_path"], case["compare_to"]
    run = load(path, world)
    fixture = load_fixture(place(fixture_path), world) if fixture_path else own_fixture(run, world)
    judged = case_report(run, fixture, case["label"], path)
    if not baseline:
        return judged
    comparison = diff(load(place(baseline), world), run, world)
    failures = judged["failures"] + baseline_failure(baseline, comparison)
    return {**judged, "pass": not failures, "failures": failures, "comparison": comparison}


def case_report(run: RunRecord, fixture: ReplayFixture, label: str | None, path: str | None) -> Dict:
    """Judge one run."""
    return {
        "run_id": run["id"],
        "workflow_id": run["workflow_id"],
        "label": label,
        **evaluate(run, fixture),
        "source_path": path,
        "comparison": None,
    }
