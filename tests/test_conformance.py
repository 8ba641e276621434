"""The suite as a whole. Its programs are collected one by one, by `tests.conformance_plugin`."""

from pathlib import Path

from harnpy.cli.testing.conformance import find_cases

ROOT = Path(__file__).parent.parent / "conformance"


def test_the_suite_has_the_promised_size() -> None:
    assert len([case for case in find_cases(ROOT) if case.kind != "skip"]) >= 250


def test_every_expectation_belongs_to_a_program() -> None:
    expectations = [path for kind in ("expected", "error") for path in ROOT.rglob(f"*.{kind}")]
    assert [path for path in expectations if not path.with_suffix(".harn").exists()] == []


def test_no_program_has_two_expectations() -> None:
    assert [path for path in ROOT.rglob("*.expected") if path.with_suffix(".error").exists()] == []


def test_no_error_expectation_is_empty() -> None:
    assert [path for path in ROOT.rglob("*.error") if not path.read_text(encoding="utf-8").strip()] == []
