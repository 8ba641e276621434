"""Reading pipes and devices: what may never come or never end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harnpy import Vm
from harnpy.vm.errors import VmError
from harnpy.world.checked_files import checked_files
from harnpy.world.files import RealFiles

if TYPE_CHECKING:
    from harnpy.world.files import Files


class TooLateError(Exception):
    """Nobody waits any longer."""


def give_up() -> None:
    raise TooLateError


def plain(look: Callable[[], object]) -> Files:
    return RealFiles(look)


def checked(look: Callable[[], object]) -> Files:
    return checked_files(RealFiles(), lambda effect, path, named: None, look)


@pytest.fixture(params=[plain, checked])
def files(request: pytest.FixtureRequest) -> Callable[[Callable[[], object]], Files]:
    return request.param


@pytest.fixture
def pipe(tmp_path: Path) -> str:
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    return path


def test_a_pipe_is_read_to_its_end_also_if_its_writer_comes_late(files, pipe: str) -> None:
    text = "grüße\r\n" * 50_000
    looks = 0
    writer = threading.Thread(target=lambda: Path(pipe).write_bytes(text.encode()))

    def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            writer.start()

    assert files(look).read_text(pipe) == text
    writer.join()


def test_a_pipe_that_nobody_writes_to_is_waited_for_as_long_as_somebody_waits(files, pipe: str) -> None:
    with pytest.raises(TooLateError):
        files(give_up).read_text(pipe)


@pytest.mark.parametrize(
    ("path", "message"),
    [("/dev/zero", "File too large"), ("/proc/self/mem", "Input/output error"), ("/", "Is a directory")],
)
def test_the_error_names_the_file(files, path: str, message: str) -> None:
    if not os.path.exists(path):
        return  # a system without /proc has nothing to read
    with pytest.raises(OSError, match=message) as caught:
        files(lambda: None).read_text(path)
    assert caught.value.filename == path


def test_what_has_an_end_is_read() -> None:
    assert RealFiles().read_text("/dev/null") == ""


def test_a_deadline_ends_waiting_for_a_pipe(pipe: str, clock: object) -> None:
    source = "deadline 1ms { return render(PIPE) }"
    vm = Vm()
    vm.set_global("PIPE", pipe)
    with pytest.raises(VmError, match="Deadline exceeded"):
        vm.run_source(source)
