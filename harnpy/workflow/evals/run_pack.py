"""Running an eval pack: judging every case, and the report. Spec: 08 §8.7 "Run"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.faults import MisuseError
from harnpy.workflow.evals import rubrics, thresholds
from harnpy.workflow.evals.pack_sources import Sources
from harnpy.workflow.evals.thresholds import BLOCKING, INFORMATIONAL, WARNING
from harnpy.workflow.friction import friction_fixture as friction
from harnpy.workflow.records.eval_suite import own_fixture
from harnpy.workflow.records.record_diff import baseline_failure, diff
from harnpy.workflow.records.replay_fixture import evaluate

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.evals.pack_types import Case, EvalPack
    from harnpy.workflow.records.record_types import ReplayFixture, RunRecord
    from harnpy.world import World


def run_pack(pack: EvalPack, world: World) -> Dict:
    """Return the report on a normalised manifest's cases. Raise `MisuseError` for what can't be judged."""
    sources = Sources(pack, world)
    numbered = enumerate(pack["cases"], 1)
    cases = [_Case(pack, case, number, sources, world).report() for number, case in numbered]
    passed = sum(case["pass"] for case in cases)
    blocking = sum(case["blocking"] and bool(case["failures"]) for case in cases)
    return {
        "pack_id": pack["id"],
        "pass": blocking == 0,
        "total": len(cases),
        "passed": passed,
        "failed": len(cases) - passed,
        "blocking_failed": blocking,
        "warning_failed": sum(bool(case["warnings"]) for case in cases),
        "informational_failed": sum(bool(case["informational"]) for case in cases),
        "cases": cases,
    }


class _Case:
    """One case while it is judged."""

    def __init__(self, pack: EvalPack, case: Case, number: int, sources: Sources, world: World) -> None:
        self.pack = pack
        self.case = case
        self.sources = sources
        self.world = world
        self.id = case["id"] or f"case_{number}"
        defaults = pack["defaults"]
        self.severity = thresholds.severity(
            case["severity"],
            case["thresholds"]["severity"],
            defaults["severity"],
            defaults["thresholds"]["severity"],
        )
        self.failures: list[str] = []
        self.warnings: list[str] = []

    def report(self) -> Dict:
        events = self.case["friction_events"]
        about = self.judge_friction(events) if events else self.judge_run()
        blocking = self.severity == BLOCKING
        lesser = {WARNING: self.warnings, INFORMATIONAL: []}
        if not blocking:
            lesser[self.severity] += self.failures
        return {
            "id": self.id,
            "label": self.case["name"] or self.id,
            "severity": self.severity,
            "pass": not blocking or not self.failures,
            "blocking": blocking,
            **about,
            "failures": self.failures if blocking else [],
            "warnings": lesser[WARNING],
            "informational": lesser[INFORMATIONAL],
        }

    def judge_run(self) -> Dict:
        name = self.case["run"] or self.case["run_path"]
        if not name:
            raise MisuseError("eval pack case is missing run or run_path")
        run, path = self.sources.run(name)
        replayed = evaluate(run, self.replay_fixture(run))
        self.failures += replayed["failures"]
        for limits in (self.pack["defaults"]["thresholds"], self.case["thresholds"]):
            self.failures += thresholds.failures(limits, run)
        comparison = self.compare(run)
        self.apply_rubrics(run)
        return {
            "run_id": run["id"],
            "workflow_id": run["workflow_id"],
            "source_path": path,
            "stage_count": replayed["stage_count"],
            "comparison": comparison,
        }

    def replay_fixture(self, run: RunRecord) -> ReplayFixture:
        """Return the given fixture, else the run's own."""
        name = self.case["fixture"] or self.case["fixture_path"]
        return self.sources.replay_fixture(name) if name else own_fixture(run, self.world)

    def compare(self, run: RunRecord) -> Dict | None:
        """Compare the run with its baseline, if it has one."""
        name = self.case["compare_to"] or self.pack["baseline"]
        if not name:
            return None
        baseline, _ = self.sources.run(name)
        found = diff(baseline, run, self.world)
        self.failures += baseline_failure(name, found)
        return found

    def apply_rubrics(self, run: RunRecord | None) -> None:
        known = {rubric["id"]: rubric for rubric in self.pack["rubrics"]}
        for name in self.case["rubrics"]:
            if name not in known:
                self.failures.append(f"case references unknown rubric '{name}'")
                continue
            verdict = rubrics.apply(known[name], run, self.severity)
            self.failures += verdict.failures
            self.warnings += verdict.warnings

    def judge_friction(self, events: str) -> Dict:
        """Judge a case about friction events: do they suggest the right context packs? (08 §8.8)"""
        given, path = self.sources.friction(events)
        self.failures += friction.evaluate(given, self.world)["failures"]
        self.apply_rubrics(None)
        about = dict.fromkeys(("run_id", "workflow_id", "comparison"))
        return {**about, "source_path": path, "stage_count": 0}
