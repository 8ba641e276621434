"""Tapes in portable bundles: a bundle's `replay` section has one, line by line. Spec: 13 §11, 08 §17.

What a bundle's mode masks is masked in the tape, too, and the program then runs once more on what is left,
which touches nothing outside: what it asks for is written down as it is now, so that the tape replays.
"""

from __future__ import annotations

import json
import os
import re
from hashlib import sha256
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from harnpy.embedding import Vm
from harnpy.formats.secrets.masking import MASK, mask_secrets
from harnpy.tape.redaction import HIDDEN
from harnpy.tape.regression import end_of
from harnpy.tape.rules import REMAKING
from harnpy.tape.tapes import COMPLETED, TapeError, TapeWriter, read_tape, tape_of_lines
from harnpy.tape.worlds import TapedWorld
from harnpy.workflow.bundle import export_run
from harnpy.workflow.bundle.redactor import ENVIRONMENT_MASK, secret_variables
from harnpy.workflow.bundle.sections import LOCAL, REPLAY_ONLY, SANITIZED
from harnpy.world import World
from harnpy.world.clock import rfc3339
from harnpy.world.streams import RealStreams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from harnpy.formats.dicts import Dict
    from harnpy.tape.tapes import Tape

#: What a home directory becomes in `sanitized`.
_HOME: Final = "/home/user"
_HOMES = re.compile(r"/(?:home|Users)/[^/\s\"'\\:]+|/root(?![\w.-])")
#: How often what is masked may let something else be masked.
_ROUNDS: Final = 4


def export_tape(
    path: str,
    mode: str = SANITIZED,
    *,
    env: Mapping[str, str] | None = None,
    world: World | None = None,
    prepare: Callable[[Vm, str], object] = lambda vm, program: None,
) -> Dict:
    """Return the bundle of the tape at ``path``, ready for JSON, with sorted keys; ``mode`` and ``env`` are
    as in `harnpy.workflow.bundle.export_run`. ``prepare`` is called with a Vm in which the program is to run,
    and its name.

    Raises `TapeError`: for ``replay_only``, whose bundles have no text, and where the program no longer does
    the same with what is masked.
    """
    mode = mode.replace("-", "_")
    if mode == REPLAY_ONLY:
        raise TapeError(
            f"{path} can't be exported in the mode replay-only: a tape is texts; use sanitized or local"
        )
    tape = read_tape(path)
    with open(path, encoding="utf-8") as file:
        lines = file.read().removesuffix("\n").split("\n")
    shown = _masked(lines, mode, env or {})
    for _ in range(_ROUNDS):
        if shown == lines:
            break
        lines = _remade(path, shown, prepare)
        shown = _masked(lines, mode, env or {})
    else:
        raise TapeError(
            f"{path} can't be exported: what is masked in it doesn't come to an end; use --mode local"
        )
    end = tape.end
    run = {
        "id": f"tape_{sha256(json.dumps(lines).encode()).hexdigest()[:16]}",
        "workflow_name": tape.job.name,
        "status": "completed" if end is not None and end.status == COMPLETED else "failed",
        "started_at": rfc3339(tape.header.made),
        "finished_at": rfc3339(tape.header.made + (end.seconds if end is not None else 0)),
    }
    masked = dict(_changes(lines, has_home=mode != LOCAL))
    return export_run(run, mode, env=env, world=world, tape=lines, masked=masked)


def _masked(lines: list[str], mode: str, env: Mapping[str, str]) -> list[str]:
    variables = secret_variables([env])
    shown = [mask_secrets(variables.apply(line)) for line in lines]
    return shown if mode == LOCAL else [_HOMES.sub(_HOME, line) for line in shown]


def _changes(lines: list[str], *, has_home: bool) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield the lines with masks in them, by index, each with the reason and what was done."""
    for index, line in enumerate(lines):
        if MASK in line or HIDDEN in line:
            yield index, ("secret", "masked")
        elif ENVIRONMENT_MASK in line:
            yield index, ("env", "masked")
        elif has_home and _HOME in line:
            yield index, ("path", "masked")


class _Remaking(TapedWorld):
    """Runs a tape's program on its results, whatever it asks for, and writes that down."""

    rules = REMAKING


def _remade(path: str, lines: list[str], prepare: Callable[[Vm, str], object]) -> list[str]:
    """Return the tape in which a program's requests follow from the results that these lines have."""
    try:
        tape = tape_of_lines(path, [line.encode() for line in lines])
    except TapeError as error:
        raise TapeError(
            f"{path} can't be exported: a secret can't be masked in it; record the run again"
        ) from error
    quiet = RealStreams(lambda text: None, lambda text: None)
    with TemporaryDirectory(prefix="harnpy-") as directory:
        writer = TapeWriter(os.path.join(directory, "tape"))
        vm: Any = Vm(_Remaking(World(streams=quiet), tape=tape, writer=writer))
        prepare(vm, tape.job.body["entry"])
        try:
            end_of(vm.run_recorded)
        except TapeError as error:
            raise TapeError(
                f"{path} can't be exported: with secrets masked its program does something else ({error})"
            ) from None
        with open(writer.path, encoding="utf-8") as file:
            return file.read().removesuffix("\n").split("\n")


def tape_in(bundle: Any, path: str) -> Tape | None:
    """Return the tape in a bundle, which is the JSON of the file ``path``; None if it has none.

    Raises `TapeError`.
    """
    replay = bundle.get("replay") if isinstance(bundle, dict) else None
    lines = replay.get("tape") if isinstance(replay, dict) else None
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        return None
    return tape_of_lines(path, [line.encode() for line in lines])
