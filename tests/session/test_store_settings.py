"""Which store sessions are kept in by default. Spec: 10 §C6, §C9."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnpy.project import ManifestError
from harnpy.session.stores import StoreSettings, store_settings
from harnpy.storage.opening import placed
from harnpy.world import World


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HARN_SESSION_STORE", "HARN_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path


def manifest(root: Path, text: str) -> None:
    (root / "harn.toml").write_text(text)


def test_without_a_project_it_is_a_file_of_the_directory_s_state(root: Path) -> None:
    assert store_settings(World()) == StoreSettings(f"sqlite:{root}/below/.harn/sessions.db")


def test_a_project_has_one(root: Path) -> None:
    manifest(root, "")
    assert store_settings(World()) == StoreSettings(f"sqlite:{root}/.harn/sessions.db")


def test_the_state_directory_can_be_elsewhere(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARN_STATE_DIR", "/elsewhere")
    assert store_settings(World()).url == "sqlite:/elsewhere/sessions.db"


def test_a_manifest_names_one_and_its_paths_count_from_there(root: Path) -> None:
    manifest(root, '[sessions]\nstore = "jsonl:logs"\ndurable = true')
    assert store_settings(World()) == StoreSettings(f"jsonl:{root}/logs", durable=True)


def test_the_variable_wins_and_its_paths_count_from_the_working_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest(root, '[sessions]\nstore = "jsonl:logs"\ndurable = true')
    monkeypatch.setenv("HARN_SESSION_STORE", "sqlite:a.db?timeout=1")
    assert store_settings(World()) == StoreSettings(f"sqlite:{root}/below/a.db?timeout=1", durable=True)


@pytest.mark.parametrize("url", ["memory:", "postgresql://u@h/db", "sqlite::memory:", "sqlite:/a.db"])
def test_a_url_without_a_relative_path_stays(url: str) -> None:
    assert placed(url, "/somewhere") == url


@pytest.mark.parametrize(
    ("text", "problem", "help"),
    [
        ("[sessions", "failed to read where sessions are kept", None),
        ("sessions = 1", "`sessions` must be a table", None),
        ("[sessions]\nstore = 1", "`store` of `[sessions]` must be a string", "e.g. store ="),
        ("[sessions]\ndurable = 1", "`durable` of `[sessions]` must be a bool", "durable = true keeps"),
        ("[sessions]\ndurabel = true", "`[sessions]` has no key `durabel`", "did you mean `durable`?"),
        ("[sessions]\nx = true", "`[sessions]` has no key `x`", "known are store, durable"),
    ],
)
def test_a_manifest_that_says_something_else(root: Path, text: str, problem: str, help: str | None) -> None:
    manifest(root, text)
    with pytest.raises(ManifestError) as error:
        store_settings(World())
    assert problem in error.value.message
    assert (help or "") in (error.value.help or "")
