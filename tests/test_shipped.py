"""The directories that ship with the package are found in a checkout; test_quality looks in a wheel."""

from __future__ import annotations

from pathlib import Path

from harnpy import shipped


def test_directories_of_a_checkout() -> None:
    assert (Path(shipped.library()) / "context.harn").is_file()
    assert "01-syntax.md" in shipped.specification()
    assert shipped.read_specification("01-syntax.md").startswith("# ")
