"""Temporary files: what a killed process leaves behind is removed, what a living one writes is not."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harnpy.world import file_io
from harnpy.world.file_io import Temporary
from harnpy.world.files import RealFiles
from tests.support import PATIENCE, ROOT

WRITER = """
import sys
from harnpy.world.file_io import Temporary
temporary = Temporary(sys.argv[1], ".partial")
temporary.create()
print(temporary.path, flush=True)
sys.stdin.read()
"""


def writer(directory: Path) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", WRITER, str(directory)], cwd=ROOT, text=True, **pipes)


def test_what_a_killed_process_left_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    with writer(tmp_path) as process:
        left = Path(process.stdout.readline().strip())
        RealFiles().replace_text(str(tmp_path / "a"), "1")
        assert left.exists()
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE)
    assert left.exists()
    RealFiles().replace_text(str(tmp_path / "a"), "2")
    assert os.listdir(tmp_path) == ["a"]


def test_only_files_that_are_named_as_ours_are_removed(tmp_path: Path) -> None:
    kept = {"b.partial", ".0123.partial", ".0123456789abcdef.other", ".0123456789ABCDEF.partial"}
    for name in (*kept, ".0123456789abcdef.partial"):
        (tmp_path / name).touch()
    RealFiles().replace_text(str(tmp_path / "a"), "1")
    assert set(os.listdir(tmp_path)) == {*kept, "a"}


def test_a_file_that_was_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = file_io.fcntl.flock
    late: list[bool] = []

    def locked_late(file: int, how: int) -> None:
        if not late:
            late.append(True)
            os.remove(temporary.path)
        lock(file, how)

    monkeypatch.setattr(file_io.fcntl, "flock", locked_late)
    temporary = Temporary(str(tmp_path), ".partial")
    temporary.create()
    assert (late, os.listdir(tmp_path)) == ([True], [os.path.basename(temporary.path)])
    temporary.close()


def test_a_durable_text_syncs_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.readlink(f"/proc/self/fd/{file}")))
    RealFiles().replace_text(str(tmp_path / "a"), "1")
    RealFiles().replace_text(str(tmp_path / "b"), "1", durable=False)
    text, directory = synced
    assert text.endswith(".partial")
    assert directory == str(tmp_path)


@pytest.mark.parametrize(("number", "fails"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_directory_that_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, fails: bool
) -> None:
    def refuse(file: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    if fails:
        with pytest.raises(OSError, match="Input/output"):
            file_io.sync_directory(str(tmp_path))
    else:
        file_io.sync_directory(str(tmp_path))
