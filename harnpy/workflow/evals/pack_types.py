"""The types of eval packs. `pack_manifest` reads them. Spec: 08 §8.7."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict


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
