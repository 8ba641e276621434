"""The cache on disk never fails a run."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from harnpy import cache
from tests.support import ROOT


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("HARNPY_NO_CACHE", raising=False)
    return tmp_path


def entries(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file()]


def test_what_is_stored_is_loaded() -> None:
    cache.store("ast", "key", (1, "two", [3.0, None]))
    assert cache.load("ast", "key") == (1, "two", [3.0, None])
    assert cache.load("ast", "other") is None
    assert cache.load("code", "key") is None


def test_code_objects_too() -> None:
    cache.store("code", "key", compile("6 * 7", "x", "eval"))
    code = cache.load("code", "key")
    assert code is not None
    assert eval(code) == 42


@pytest.mark.parametrize("data", [b"", b"junk", b"\0" * 100])
def test_a_foreign_entry_is_none(home: Path, data: bytes) -> None:
    cache.store("ast", "key", 1)
    (entry,) = entries(home)
    entry.write_bytes(data)
    assert cache.load("ast", "key") is None


def test_nor_is_one_with_any_byte_changed(home: Path) -> None:
    cache.store("ast", "key", ("value", 12345))
    (entry,) = entries(home)
    sound = entry.read_bytes()
    for at in range(len(sound)):
        entry.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        assert cache.load("ast", "key") is None
        entry.write_bytes(sound[:at])
        assert cache.load("ast", "key") is None


def test_a_colliding_key_is_a_miss(home: Path) -> None:
    cache.store("ast", "one", 1)
    cache.store("ast", "two", 2)
    first, second = entries(home)
    first.write_bytes(second.read_bytes())
    second.write_bytes(first.read_bytes())
    assert {cache.load("ast", "one"), cache.load("ast", "two")} <= {None, 1, 2}
    assert cache.load("ast", "one") in (None, 1)
    assert cache.load("ast", "two") in (None, 2)


def test_a_changed_implementation_makes_entries_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store("ast", "key", 1)
    monkeypatch.setattr(cache, "_stamp", lambda: "another version")
    assert cache.load("ast", "key") is None


def test_the_state_of_code_follows_its_files(tmp_path: Path) -> None:
    module = tmp_path / "room" / "module.py"
    module.parent.mkdir()
    module.write_text("x = 1")
    states = [cache.state_of_code(str(tmp_path))]
    module.write_text("x = 10")
    states.append(cache.state_of_code(str(tmp_path)))
    (tmp_path / "another.py").write_text("y")
    states.append(cache.state_of_code(str(tmp_path)))
    assert len(set(states)) == 3
    assert cache.state_of_code(str(tmp_path)) == states[-1]


def test_the_state_of_code_leaves_folders_out(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    state = cache.state_of_code(str(tmp_path), ["run"])
    (tmp_path / "run" / "module.py").write_text("x = 1")
    assert cache.state_of_code(str(tmp_path), ["run"]) == state
    assert cache.state_of_code(str(tmp_path)) != state


def test_what_is_left_out_is_there() -> None:
    left_out = [(room, name) for room, names in cache._COMPILING.items() for name in names]
    assert [each for each in left_out if not Path(ROOT, "harnpy", *each).is_dir()] == []


def test_the_state_of_an_installed_package_is_that_of_its_installation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = tmp_path / "harnpy" / "cache.py"
    (here.parent / "grammar").mkdir(parents=True)
    here.write_text("")
    monkeypatch.setattr(cache, "__file__", str(here))
    monkeypatch.setattr(cache, "_PACKAGE", str(here.parent))
    installed = cache.state_of_code(str(tmp_path))
    (here.parent / "grammar" / "lexer.py").write_text("")
    assert cache.state_of_code(str(tmp_path)) == installed
    os.utime(here, ns=(1, 1))
    assert cache.state_of_code(str(tmp_path)) != installed


def test_it_can_be_turned_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store("ast", "key", 1)
    monkeypatch.setenv("HARNPY_NO_CACHE", "1")
    assert cache.load("ast", "key") is None
    cache.store("ast", "more", 1)
    assert len(entries(home)) == 1


def test_it_can_be_only_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store("ast", "key", 1)
    monkeypatch.setenv("HARNPY_NO_CACHE", "writes")
    assert cache.load("ast", "key") == 1
    cache.store("ast", "more", 1)
    assert len(entries(home)) == 1


def test_a_place_that_cannot_be_written_keeps_nothing(home: Path) -> None:
    (home / "harnpy").write_text("a file where the directory should be")
    cache.store("ast", "key", 1)
    assert cache.load("ast", "key") is None


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_entry_that_was_not_finished_leaves_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(old: str, new: str) -> None:
        raise error

    monkeypatch.setattr(os, "replace", fail)
    with suppress(KeyboardInterrupt):
        cache.store("ast", "key", 1)
    assert entries(home) == []


def test_values_that_cannot_be_written_are_not_kept(home: Path) -> None:
    deep: tuple[object, ...] = ()
    for _ in range(10_000):
        deep = (deep,)
    cache.store("ast", "deep", deep)
    cache.store("ast", "object", object())
    assert entries(home) == []


def test_old_entries_are_pruned(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_ENTRIES", 10)
    for i in range(25):
        cache.store("ast", f"key {i}", i)
    assert len(entries(home)) <= 11
    assert cache.load("ast", "key 24") == 24


def test_loading_imports_nothing(home: Path) -> None:
    cache.store("ast", "key", 1)
    script = "import sys; from harnpy import cache; cache.load('ast', 'key'); print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {script}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "XDG_CACHE_HOME": str(home)},
    )
    assert not {"re", "hashlib", "pathlib", "tempfile", "json", "typing"} & set(run.stdout.split())
