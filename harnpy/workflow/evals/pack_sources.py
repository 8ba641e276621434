"""Where a pack's cases find what they judge: fixtures by id, else files. Spec: 08 §8.7 "Run"."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.reading.strict import errors_after
from harnpy.text.json.reader import parse_json
from harnpy.workflow.documents import read_document
from harnpy.workflow.records.eval_suite import load_fixture
from harnpy.workflow.records.record import derive, read_run
from harnpy.workflow.records.record_files import load
from harnpy.workflow.records.replay_fixture import read_fixture

if TYPE_CHECKING:
    from harnpy.workflow.evals.pack_types import EvalPack
    from harnpy.workflow.records.record_types import ReplayFixture, RunRecord
    from harnpy.world import World


class Sources:
    """Paths of fixtures start at the pack's `fixture_root`, all others at its `base_dir`."""

    def __init__(self, pack: EvalPack, world: World) -> None:
        self._world = world
        self._base = pack["base_dir"] or ""
        self._fixture_base = os.path.join(self._base, pack["defaults"]["fixture_root"] or "")
        self._fixtures = {fixture["id"]: fixture for fixture in pack["fixtures"] if fixture["id"]}

    def run(self, name: str) -> tuple[RunRecord, str | None]:
        """Return a run record, and the path of its file. Raise `MisuseError`."""
        inline, path = self._located(name, self._base, "run")
        if path is not None:
            return load(path, self._world), path
        with errors_after("failed to parse inline run record: "):
            run = read_run(inline, self._world)
        derive(run, self._world)
        return run, None

    def replay_fixture(self, name: str) -> ReplayFixture:
        """Return the replay fixture of a case. Raise `MisuseError`."""
        inline, path = self._located(name, self._fixture_base, "replay fixture")
        if path is not None:
            return load_fixture(path, self._world)
        with errors_after("failed to parse replay fixture: "):
            return read_fixture(inline, "replay fixture")

    def friction(self, name: str) -> tuple[Any, str | None]:
        """Return friction events, or a fixture with them, and the path of the file. Raise `MisuseError`."""
        inline, path = self._located(name, self._fixture_base, "friction events")
        if path is None:
            return inline, None
        parse = self._values if path.endswith(".jsonl") else None
        return read_document(path, "friction events", self._world, parse), path

    def _located(self, name: str, base: str, what: str) -> tuple[Any, str | None]:
        """Return the value that a fixture holds, else the path of the file that does."""
        fixture = self._fixtures.get(name)
        if fixture is None:
            return None, os.path.join(base, name)
        if fixture["inline"] is not None:
            return fixture["inline"], None
        if not fixture["path"]:
            raise MisuseError(f"fixture '{name}' is missing path or inline {what}")
        return None, os.path.join(self._fixture_base, fixture["path"])

    def _values(self, lines: str) -> list[Any]:
        """Return the values in a friction log."""
        return [parse_json(line) for line in lines.splitlines() if line.strip()]
