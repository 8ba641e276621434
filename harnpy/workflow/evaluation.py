"""Evaluations: suites of runs with fixtures and baselines, and eval packs with rubrics and thresholds.

Spec: 08 §8.2–8.3, §8.7.
"""

from __future__ import annotations

import os.path
from functools import partial, reduce
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypedDict

from harnpy.faults import MisuseError
from harnpy.formats.dicts import Dict, errors_after, read_toml
from harnpy.formats.json import parse_json
from harnpy.formats.shapes import fields_of, read
from harnpy.workflow import friction as friction
from harnpy.workflow.judge import Judgement, Limits, Usage, judgement
from harnpy.workflow.records.differences import baseline_failure, run_diff
from harnpy.workflow.records.record import derive_run, normalised_run, read_run
from harnpy.workflow.records.record_files import load_run, names_its_file, read_document
from harnpy.workflow.records.replay_fixture import evaluate_fixture, fixture_of, read_fixture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from harnpy.llm.call import Models
    from harnpy.workflow.records.record_shapes import ReplayFixture, RunRecord
    from harnpy.world import World

# Eval suites: runs judged by their fixtures, and by baselines if there are any. Spec: 08 §8.2–8.3.


SUITE_MANIFEST = "eval_suite_manifest"


class SuiteCase(TypedDict):
    """A run of a suite, and the files to judge it by."""

    label: str | None
    fixture_path: str | None
    compare_to: str | None
    run_path: str


class SuiteManifest(TypedDict):
    _type: Annotated[str, SUITE_MANIFEST]
    id: str
    name: str | None
    base_dir: str | None
    cases: list[SuiteCase]


def read_suite_manifest(given: Any, caller: str, world: World) -> SuiteManifest:
    """Return a manifest with every key. Raise `MisuseError`, which names ``caller``."""
    with errors_after(f"{caller} parse error at "):
        manifest = read(SuiteManifest, given)
    return {**manifest, "_type": SUITE_MANIFEST, "id": manifest["id"] or f"eval_suite_{world.ids.new()}"}


def run_suite_manifest(manifest: SuiteManifest, world: World) -> Dict:
    """Return the report on a manifest's cases. Raise `MisuseError` for an unreadable file."""
    return suite_report([_manifest_case(case, manifest["base_dir"], world) for case in manifest["cases"]])


def evaluate_suite(items: Sequence[Any], world: World) -> Dict:
    """Return the report on records, or on `{run, fixture?, path?}`. Raise `MisuseError`."""
    return suite_report([_item_case(item, world) for item in items])


def suite_report(cases: list[Dict]) -> Dict:
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
    run = normalised_run(given["run"], world)
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
    run = load_run(path, world)
    fixture = load_fixture(place(fixture_path), world) if fixture_path else own_fixture(run, world)
    judged = case_report(run, fixture, case["label"], path)
    if not baseline:
        return judged
    comparison = run_diff(load_run(place(baseline), world), run, world)
    failures = judged["failures"] + baseline_failure(baseline, comparison)
    return {**judged, "pass": not failures, "failures": failures, "comparison": comparison}


def case_report(run: RunRecord, fixture: ReplayFixture, label: str | None, path: str | None) -> Dict:
    """Judge one run."""
    return {
        "run_id": run["id"],
        "workflow_id": run["workflow_id"],
        "label": label,
        **evaluate_fixture(run, fixture),
        "source_path": path,
        "comparison": None,
    }


class Thresholds(TypedDict):
    severity: str | None
    min_score: float | None
    min_confidence: float | None
    max_cost_usd: float | None
    max_latency_ms: int | None
    max_tokens: int | None
    max_stage_count: int | None


class Package(TypedDict):
    name: str | None
    version: str | None
    source: str | None
    templates: list[str]


class Defaults(TypedDict):
    """Settings for cases that have none of their own."""

    severity: str | None
    fixture_root: str | None
    thresholds: Thresholds
    judge: Dict | None


class PackFixture(TypedDict):
    id: str | None
    kind: str | None
    path: str | None
    trace_id: str | None
    provider: str | None
    event_kind: str | None
    inline: Any
    metadata: Dict


class RubricAssertion(TypedDict):
    kind: str | None
    stage: str | None
    path: str | None
    op: str | None
    contains: str | None
    expected: Any
    metadata: Dict


class Rubric(TypedDict):
    id: str | None
    kind: str | None
    description: str | None
    prompt: str | None
    assertions: list[RubricAssertion]
    judge: Dict | None
    calibration: Any
    thresholds: Thresholds
    metadata: Dict


class Case(TypedDict):
    id: str | None
    name: str | None
    description: str | None
    run: str | None
    run_path: str | None
    friction_events: str | None
    fixture: str | None
    fixture_path: str | None
    compare_to: str | None
    severity: str | None
    rubrics: list[str]
    thresholds: Thresholds
    metadata: Dict


class EvalPack(TypedDict):
    version: int
    id: str | None
    name: str | None
    description: str | None
    base_dir: str | None
    baseline: str | None
    package: Package | None
    defaults: Defaults
    fixtures: list[PackFixture]
    rubrics: list[Rubric]
    judge: Dict | None
    cases: list[Case]
    metadata: Dict


# The manifest of an eval pack: every key, whatever its spelling. Spec: 08 §8.7 "Manifest".


def normalised_pack(given: Any, world: World) -> EvalPack:
    """Return the manifest with every key. Raise `MisuseError`."""
    with errors_after("eval_pack_manifest parse error at "):
        pack = read(EvalPack, _underscored(EvalPack, given))
    pack["version"] = pack["version"] or 1
    if not pack["id"]:
        named = pack["name"] if (pack["name"] or "").strip() else None
        pack["id"] = named or f"eval_pack_{world.ids.new()}"
    return pack


@names_its_file
def load_pack(path: str, world: World) -> EvalPack:
    """Return the manifest in a file: JSON if it ends in `.json`, else TOML. Its paths start at its folder.

    Raise `MisuseError`.
    """
    parse = None if path.endswith(".json") else read_toml
    pack = normalised_pack(read_document(path, "eval pack", world, parse), world)
    return {**pack, "base_dir": os.path.join(os.path.dirname(path), pack["base_dir"] or "")}


def _underscored(shape: type[Any], given: Any) -> Any:
    """Return ``given`` with dashes in the keys of ``shape`` replaced by underscores."""
    if isinstance(given, list):
        return [_underscored(shape, item) for item in given]
    if not isinstance(given, dict):
        return given
    found = dict(given)
    for key, field in fields_of(shape).always.items():
        dashed = key.replace("_", "-")
        if key not in found and dashed in found:
            found[key] = found.pop(dashed)
        if field.part is not None and key in found:
            found[key] = _underscored(field.part, found[key])
    return found


# Thresholds: how much a run may use, and how severe it is when it uses more. Spec: 08 §8.7.


BLOCKING, WARNING, INFORMATIONAL = "blocking", "warning", "informational"
_SEVERITIES = {"warn": WARNING, WARNING: WARNING, "info": INFORMATIONAL, INFORMATIONAL: INFORMATIONAL}
_NO_USAGE = {"total_duration_ms": 0, "total_cost": 0.0, "input_tokens": 0, "output_tokens": 0}


def severity_of(*given: str | None) -> str:
    """Return the first severity that is given; an unknown word is blocking."""
    first = next((each for each in given if each), BLOCKING)
    return _SEVERITIES.get(first, BLOCKING)


def threshold_failures(thresholds: Thresholds, run: RunRecord) -> Iterator[str]:
    """Report every threshold that the run exceeds."""
    usage = run["usage"] or _NO_USAGE
    stages, latency, cost = len(run["stages"]), usage["total_duration_ms"], usage["total_cost"]
    tokens = usage["input_tokens"] + usage["output_tokens"]
    if _exceeds(stages, most := thresholds["max_stage_count"]):
        yield f"stage count {stages} exceeds threshold {most}"
    if _exceeds(latency, most := thresholds["max_latency_ms"]):
        yield f"latency {latency}ms exceeds threshold {most}ms"
    if _exceeds(cost, highest := thresholds["max_cost_usd"]):
        yield f"cost ${cost:.6f} exceeds threshold ${highest:.6f}"
    if _exceeds(tokens, most := thresholds["max_tokens"]):
        yield f"token count {tokens} exceeds threshold {most}"


def _exceeds(amount: float, most: float | None) -> bool:
    return most is not None and amount > most


# Rubrics: assertions about a run beyond its replay fixture. Spec: 08 §8.7.


_LOCAL = ("", "deterministic", "replay", "budget", "hitl", "side-effect")
_JUDGED = ("llm-judge", "llm-as-judge", "judge")


class Verdict(NamedTuple):
    """``failures`` count against a run, ``warnings`` don't. ``share`` is the run's score from 0 to 1, None
    where the rubric gave none; ``judgement`` is what its judge said, if it has one."""

    failures: list[str]
    warnings: list[str]
    share: float | None = None
    judgement: Judgement | None = None


def is_judged(rubric: Rubric) -> bool:
    """Return whether a model judges by the rubric."""
    return _dashed(rubric["kind"]) in _JUDGED


def apply_rubric(
    rubric: Rubric, run: RunRecord | None, severity: str, judged: Callable[[Rubric], Judgement] | None = None
) -> Verdict:
    """Judge a run by a rubric. ``run`` is None for a case without one.

    ``severity`` is the case's, for rubrics without their own; ``judged`` asks the model that a rubric needs,
    None where none is to be asked.
    """
    name, kind = f"rubric '{rubric['id']}'", _dashed(rubric["kind"])
    if kind not in (*_LOCAL, *_JUDGED):
        return Verdict([], [f"{name} has unknown kind '{rubric['kind']}' and was not run locally"])
    found = [*_assertion_failures(rubric, run, name)]
    found += threshold_failures(rubric["thresholds"], run) if run else []
    if kind in _LOCAL:
        return Verdict(found, [], 0.0 if found else 1.0)
    opinion = None if judged is None else judged(rubric)
    text = "requires an external LLM judge and was not run locally" if opinion is None else opinion.failure
    told = [] if text is None else [f"{name} {text}"]
    share = None if opinion is None else opinion.share
    if severity_of(rubric["thresholds"]["severity"], severity) == BLOCKING:
        return Verdict(found + told, [], share, opinion)
    return Verdict(found, told, share, opinion)


def _assertion_failures(rubric: Rubric, run: RunRecord | None, name: str) -> Iterator[str]:
    for assertion in rubric["assertions"]:
        kind = _dashed(assertion["kind"])
        check = _ASSERTIONS.get(kind)
        if check is not None and run is not None:
            found = check(assertion, run)
            if found is not None:
                yield f"{name} {found}"
        elif kind:
            yield f"{name} has unsupported assertion kind '{assertion['kind']}'"


def _dashed(kind: str | None) -> str:
    return (kind or "").replace("_", "-")


# Each returns what is wrong, or None.


def _run_status(assertion: RubricAssertion, run: RunRecord) -> str | None:
    expected = assertion["expected"]
    if not isinstance(expected, str) or expected == run["status"]:
        return None
    return f"expected run status {expected}, got {run['status']}"


def _stage_status(assertion: RubricAssertion, run: RunRecord) -> str | None:
    name, expected = assertion["stage"], assertion["expected"]
    if not name:
        return "stage-status assertion missing stage"
    if not isinstance(expected, str):
        return "stage-status assertion missing expected string"
    status = {stage["node_id"]: stage["status"] for stage in run["stages"]}.get(name)
    if status is None:
        return f"expected stage {name} to exist"
    return None if status == expected else f"expected stage {name} status {expected}, got {status}"


def _visible_text(assertion: RubricAssertion, run: RunRecord) -> str | None:
    text, name = assertion["contains"], assertion["stage"]
    if text is None:
        return "visible-text assertion missing contains"
    texts = (stage["visible_text"] or "" for stage in run["stages"] if name in (None, stage["node_id"]))
    return None if any(text in each for each in texts) else f'expected visible text to contain "{text}"'


def _question(assertion: RubricAssertion, run: RunRecord) -> str | None:
    text = assertion["contains"]
    if text is None:
        return "HITL assertion missing contains"
    asked = any(text in question["prompt"] for question in run["hitl_questions"])
    return None if asked else f'expected HITL question to contain "{text}"'


_ASSERTIONS: Mapping[str, Callable[[RubricAssertion, RunRecord], str | None]] = {
    "run-status": _run_status,
    "status": _run_status,
    "stage-status": _stage_status,
    "visible-text-contains": _visible_text,
    "hitl-question-contains": _question,
}


# Where a pack's cases find what they judge: fixtures by id, else files. Spec: 08 §8.7 "Run".


class PackSources:
    """Paths of fixtures start at the pack's `fixture_root`, all others at its `base_dir`."""

    def __init__(self, pack: EvalPack, world: World) -> None:
        self._world = world
        self._base = pack["base_dir"] or ""
        self._fixture_base = os.path.join(self._base, pack["defaults"]["fixture_root"] or "")
        self._fixtures = {fixture["id"]: fixture for fixture in pack["fixtures"] if fixture["id"]}

    def run(self, name: str) -> tuple[RunRecord, str | None]:
        """Return a run record, and the path of its file. Raise `MisuseError`."""
        inline, path = self._located(name, self._base, "run")
        if path is not None:
            return load_run(path, self._world), path
        with errors_after("failed to parse inline run record: "):
            run = read_run(inline, self._world)
        derive_run(run, self._world)
        return run, None

    def replay_fixture(self, name: str) -> ReplayFixture:
        """Return the replay fixture of a case. Raise `MisuseError`."""
        inline, path = self._located(name, self._fixture_base, "replay fixture")
        if path is not None:
            return load_fixture(path, self._world)
        with errors_after("failed to parse replay fixture: "):
            return read_fixture(inline, "replay fixture")

    def friction(self, name: str) -> tuple[Any, str | None]:
        """Return friction events, or a fixture with them, and the path of the file. Raise `MisuseError`."""
        inline, path = self._located(name, self._fixture_base, "friction events")
        if path is None:
            return inline, None
        parse = self._values if path.endswith(".jsonl") else None
        return read_document(path, "friction events", self._world, parse), path

    def _located(self, name: str, base: str, what: str) -> tuple[Any, str | None]:
        """Return the value that a fixture holds, else the path of the file that does."""
        fixture = self._fixtures.get(name)
        if fixture is None:
            return None, os.path.join(base, name)
        if fixture["inline"] is not None:
            return fixture["inline"], None
        if not fixture["path"]:
            raise MisuseError(f"fixture '{name}' is missing path or inline {what}")
        return None, os.path.join(self._fixture_base, fixture["path"])

    def _values(self, lines: str) -> list[Any]:
        """Return the values in a friction log."""
        return [parse_json(line) for line in lines.split("\n") if line.strip()]


# Running an eval pack: judging every case, and the report. Spec: 08 §8.7 "Run".


def run_pack(pack: EvalPack, world: World, models: Models | None = None) -> Dict:
    """Return the report on a normalised manifest's cases. Raise `MisuseError` for what can't be judged.

    ``models`` are the judges of rubrics that need one; None leaves those rubrics out, which the report says.
    """
    sources = PackSources(pack, world)
    numbered = enumerate(pack["cases"], 1)
    judged = [_Case(pack, case, number, sources, world, models) for number, case in numbered]
    cases = [case.report() for case in judged]
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
        "usage": _used(found for case in judged for found in case.judgements)._asdict(),
        "cases": cases,
    }


class JudgeScore(NamedTuple):
    """The scores that a pack's rubrics give one run, together.

    ``score`` is their mean from 0 to 1: a judge's score as a part of its scale, and 1 or 0 for a rubric that
    only asserts. It is None as soon as one rubric gave none, because its judge failed or its kind is unknown.
    ``reason`` says what failed, and why the judges decided as they did.
    """

    score: float | None
    passed: bool
    reason: str
    usage: Usage
    judgements: tuple[Judgement, ...]


def judge_run(pack: EvalPack, case: Case | None, run: RunRecord | str, models: Models) -> JudgeScore:
    """Judge a run by the rubrics and thresholds of a case, or by all rubrics of the pack.

    The run stands in for the case's own; a text is the visible text of a run without anything else. Raise
    `MisuseError` for a pack without rubrics.
    """
    world = models.world
    if case is None:
        names = [rubric["id"] for rubric in pack["rubrics"] if rubric["id"]]
        case = read(Case, {"rubrics": names})
    if not case["rubrics"]:
        raise MisuseError(f"eval pack '{pack['id']}' has no rubric to judge by")
    if isinstance(run, str):
        run = normalised_run({"stages": [{"node_id": "run", "visible_text": run}]}, world)
    judging = _Case(pack, case, 1, PackSources(pack, world), world, models)
    judging.hold(run)
    shares = [share for share in judging.shares if share is not None]
    all_there = bool(shares) and len(shares) == len(judging.shares)
    reasons = [f"{found.rubric}: {found.reason}" for found in judging.judgements if found.passed]
    return JudgeScore(
        sum(shares) / len(shares) if all_there else None,
        not judging.failures,
        "; ".join(judging.failures + judging.warnings + reasons),
        _used(judging.judgements),
        tuple(judging.judgements),
    )


def _used(judgements: Iterable[Judgement]) -> Usage:
    return reduce(lambda used, found: used.plus(found.usage), judgements, Usage())


class _Case:
    """One case while it is judged."""

    def __init__(
        self,
        pack: EvalPack,
        case: Case,
        number: int,
        sources: PackSources,
        world: World,
        models: Models | None = None,
    ) -> None:
        self.pack = pack
        self.case = case
        self.sources = sources
        self.world = world
        self.models = models
        self.id = case["id"] or f"case_{number}"
        defaults = pack["defaults"]
        self.severity = severity_of(
            case["severity"],
            case["thresholds"]["severity"],
            defaults["severity"],
            defaults["thresholds"]["severity"],
        )
        self.failures: list[str] = []
        self.warnings: list[str] = []
        self.shares: list[float | None] = []
        self.judgements: list[Judgement] = []

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
            "judgements": [found.as_dict() for found in self.judgements],
        }

    def judge_run(self) -> Dict:
        name = self.case["run"] or self.case["run_path"]
        if not name:
            raise MisuseError("eval pack case is missing run or run_path")
        run, path = self.sources.run(name)
        replayed = evaluate_fixture(run, self.replay_fixture(run))
        self.failures += replayed["failures"]
        self.hold_thresholds(run)
        comparison = self.compare(run)
        self.apply_rubrics(run)
        return {
            "run_id": run["id"],
            "workflow_id": run["workflow_id"],
            "source_path": path,
            "stage_count": replayed["stage_count"],
            "comparison": comparison,
        }

    def hold(self, run: RunRecord) -> None:
        """Judge any run by the thresholds and the rubrics."""
        self.hold_thresholds(run)
        self.apply_rubrics(run)

    def hold_thresholds(self, run: RunRecord) -> None:
        for limits in (self.pack["defaults"]["thresholds"], self.case["thresholds"]):
            self.failures += threshold_failures(limits, run)

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
        found = run_diff(baseline, run, self.world)
        self.failures += baseline_failure(name, found)
        return found

    def apply_rubrics(self, run: RunRecord | None) -> None:
        known = {rubric["id"]: rubric for rubric in self.pack["rubrics"]}
        for name in self.case["rubrics"]:
            if name not in known:
                self.failures.append(f"case references unknown rubric '{name}'")
                continue
            models = self.models
            judged = None if models is None else partial(self.judgement, run=run, models=models)
            verdict = apply_rubric(known[name], run, self.severity, judged)
            self.failures += verdict.failures
            self.warnings += verdict.warnings
            self.shares.append(verdict.share)
            self.judgements += [] if verdict.judgement is None else [verdict.judgement]

    def judgement(self, rubric: Rubric, run: RunRecord | None, models: Models) -> Judgement:
        """Ask the judge of a rubric."""
        pack, defaults = self.pack, self.pack["defaults"]
        given = [rubric["thresholds"], self.case["thresholds"], defaults["thresholds"]]
        scores = (each["min_score"] for each in given if each["min_score"] is not None)
        confidences = (each["min_confidence"] for each in given if each["min_confidence"] is not None)
        return judgement(
            rubric["id"],
            [rubric["description"], rubric["prompt"]],
            [defaults["judge"], pack["judge"], rubric["judge"]],
            Limits(next(scores, None), next(confidences, None)),
            run,
            models,
        )

    def judge_friction(self, events: str) -> Dict:
        """Judge a case about friction events: do they suggest the right context packs? (08 §8.8)"""
        given, path = self.sources.friction(events)
        self.failures += friction.evaluate_friction_fixture(given, self.world)["failures"]
        self.apply_rubrics(None)
        about = dict.fromkeys(("run_id", "workflow_id", "comparison"))
        return {**about, "source_path": path, "stage_count": 0}
