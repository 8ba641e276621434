"""A program's model calls answered from a file, or recorded in one. Spec: 07 §2.5, 09 §2.6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.llm.errors import FixtureError
from harnpy.llm.fixtures import Recording, read_fixtures
from harnpy.text.json.reader import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy import Vm
    from harnpy.llm.call import Models


def replay(vm: Vm, path: str) -> None:
    """Answer every model call of the program from the fixtures in a file. Raises `FixtureError`."""
    try:
        text = vm.unguarded.files.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise FixtureError(f"failed to read {path}: {_reason(error)}") from error
    fixtures = read_fixtures(text, path, parse_json)
    vm.settings.on_models.append(lambda models: models.mock.replay(fixtures))


def replayed(run: Callable[..., Any], path: str) -> Callable[..., Any]:
    """``run(vm, …)`` with every model call answered from a file."""

    def replaying_run(vm: Vm, *rest: Any) -> Any:
        replay(vm, path)
        return run(vm, *rest)

    return replaying_run


def recorded(run: Callable[..., Any], path: str) -> Callable[..., Any]:
    """``run(vm, …)`` that also records the replies of models, however the program ends.

    Raises `FixtureError` when the file can't be written.
    """

    def recording_run(vm: Vm, *rest: Any) -> Any:
        recording = Recording(lambda: vm.tasks.current)

        def listen(models: Models) -> None:
            models.recording = recording

        vm.settings.on_models.append(listen)
        try:
            return run(vm, *rest)
        finally:
            _write(vm, path, recording)

    return recording_run


def _write(vm: Vm, path: str, recording: Recording) -> None:
    try:
        vm.unguarded.files.write_text(path, recording.lines())
    except OSError as error:
        raise FixtureError(f"failed to write {path}: {_reason(error)}") from error


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
