"""A program's model calls: answered from a file, recorded in one, traced on stderr.

Spec: 07 §2.5, 09 §2.5, §2.6.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from harnpy import Vm
from harnpy.builtins.live_models import models_of
from harnpy.cli.console import complain, paint
from harnpy.formats.json import parse_json
from harnpy.llm.call import Models
from harnpy.llm.errors import FixtureError
from harnpy.llm.providers.mock import Fixture, FixtureRecording, read_fixtures
from harnpy.world.files import plain_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.world.files import Files


def load_fixtures(path: str, files: Files) -> list[Fixture]:
    """Return the fixtures in a file. Raises `FixtureError`."""
    try:
        text = files.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise FixtureError(f"failed to read {path}: {_reason(error)}") from error
    return read_fixtures(text, path, parse_json)


def replay(vm: Vm, path: str) -> None:
    """Answer every model call of the program from the fixtures in a file. Raises `FixtureError`."""
    fixtures = load_fixtures(path, vm.unguarded.files)
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
        recording = FixtureRecording(lambda: vm.tasks.current)

        def listen(models: Models) -> None:
            models.recording = recording

        vm.settings.on_models.append(listen)
        try:
            return run(vm, *rest)
        finally:
            _write(vm, path, recording)

    return recording_run


def _write(vm: Vm, path: str, recording: FixtureRecording) -> None:
    try:
        vm.unguarded.files.write_text(path, recording.lines())
    except OSError as error:
        raise FixtureError(f"failed to write {path}: {_reason(error)}") from error


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return plain_reason(error)


# `harnpy run --trace`: the model calls of a run, on stderr. Spec: 09 §2.5.


#: Dollars per token: a rough price for any model.
_INPUT_PRICE, _OUTPUT_PRICE = 3e-6, 15e-6


def print_trace(vm: Vm) -> None:
    """Print the calls of `vm` and their sum; nothing without calls."""
    calls = [event for event in models_of(vm).trace.events if event["type"] == "llm_call"]
    for line in _lines(calls) if calls else ():
        complain(line)


def _lines(calls: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield paint("─── LLM trace ───", "dim", sys.stderr)
    for number, call in enumerate(calls, 1):
        tokens = f"{call['input_tokens']} in + {call['output_tokens']} out tokens"
        yield f"  #{number}: {call['model']} | {tokens} | {call['duration_ms']} ms"
    asked, answered, ms = (
        sum(call[field] for call in calls) for field in ("input_tokens", "output_tokens", "duration_ms")
    )
    plural = "call" if len(calls) == 1 else "calls"
    cost = asked * _INPUT_PRICE + answered * _OUTPUT_PRICE
    total = f"{asked + answered} tokens ({asked}in + {answered}out), {ms} ms, ~${cost:.4f}"
    yield paint(f"  {len(calls)} {plural}, {total}", "bold", sys.stderr)
