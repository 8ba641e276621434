"""The tables of `harn.toml` that commands read. Spec: 09 §12."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnpy.cli.source_files import manifests
from harnpy.formats.manifest import nearest_manifest
from harnpy.world.files import RealFiles


def test_the_nearest_manifest_counts_and_keys_are_in_snake_case(tmp_path: Path) -> None:
    (tmp_path / "harn.toml").write_text("[fmt]\nline-width = 80\n")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    file = inner / "x.harn"
    file.write_text("")
    assert manifests().table("fmt", str(file)) == {"line_width": 80}
    (tmp_path / "a" / "harn.toml").write_text("[lint]\n")
    assert manifests().table("fmt", str(inner)) == {}


def test_the_search_ends_at_a_repository_and_after_sixteen_levels(tmp_path: Path) -> None:
    (tmp_path / "harn.toml").write_text("")
    deep = tmp_path.joinpath(*"abcdefghijklmnopq")
    deep.mkdir(parents=True)
    assert nearest_manifest(RealFiles(), str(deep)) is None
    assert nearest_manifest(RealFiles(), str(deep.parent.parent)) == str(tmp_path / "harn.toml")
    (tmp_path / "a" / ".git").mkdir()
    assert nearest_manifest(RealFiles(), str(tmp_path / "a" / "b")) is None


@pytest.mark.parametrize("text", ["[fmt", "fmt = 3"])
def test_a_manifest_that_says_nothing_of_use(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "harn.toml").write_text(text)
    found = manifests()
    assert found.table("fmt", str(tmp_path)) == found.table("fmt", str(tmp_path)) == {}
    said = capsys.readouterr().err
    assert said.count("warning: failed to parse") == (text == "[fmt")
