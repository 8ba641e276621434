"""The directories that ship with the package are found in a checkout; test_quality looks in a wheel."""

from __future__ import annotations

from pathlib import Path

from harnpy import shipped


def test_directories_of_a_checkout() -> None:
    assert (Path(shipped.directory("stdlib")) / "context.harn").is_file()
    assert (Path(shipped.directory("spec", in_checkout="docs/spec")) / "01-syntax.md").is_file()
