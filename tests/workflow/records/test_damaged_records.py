"""Files of runs with something else in them are refused in one sentence, or are read (08 §8.1)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harnpy.cli.run_records import inspection_lines, replay_lines
from harnpy.faults import MisuseError
from harnpy.workflow import evaluation
from harnpy.workflow.bundle.exporting import export_run
from harnpy.workflow.graph_charts import run_chart
from harnpy.workflow.records import record_files
from harnpy.workflow.records.differences import run_diff
from harnpy.workflow.records.record_files import RunWriter
from harnpy.workflow.records.record_lines import parsed, unfolded
from harnpy.workflow.records.replay_fixture import evaluate_fixture
from harnpy.world import World
from tests.counts import COUNT
from tests.workflow.records.test_records import add_stage, new_run
from tests.worlds import world_with

Dict = dict[str, Any]
REFUSED = "failed to parse run record: "
#: What is put into the place of something else.
OTHERS: tuple[Any, ...] = (
    None,
    5,
    -1.5,
    True,
    "",
    "x",
    [],
    [1],
    ["a"],
    [[]],
    [None],
    {},
    {"a": 1},
    [{}],
    {"_then": [1]},
)
SEEDS = COUNT.seeds(COUNT.damaged_records)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return world_with(cwd=lambda: str(tmp_path), get={}.get)


@pytest.fixture
def given(world: World, tmp_path: Path) -> Dict:
    """The file of a run as JSON, as it was written."""
    run = new_run(world)
    out = RunWriter(run, "r.json", world)
    out.checkpoint()
    for number in range(3):
        add_stage(run, number, world, more=[number])
        run["stages"][-1]["consumed_artifact_ids"] = [each["id"] for each in run["artifacts"]]
        run["artifacts"][-1]["data"]["transcript"] = run["stages"][-1]["transcript"]
        out.checkpoint()
    run["status"] = "completed"
    out.save()
    given: Dict = json.loads((tmp_path / "r.json").read_text())
    assert all(key in line for line in given["stages"] for key in ("_then", "_same"))
    return given


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a value, as what it is in and its key there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from places(item)


def damaged(given: Dict, random: Random) -> Dict:
    damaged = deepcopy(given)
    for _ in range(random.choice((1, 1, 1, 3))):
        # Most of a record is in few places: the keys of the layout are as likely as all others.
        found = [*places(damaged)]
        layout = [each for each in found if str(each[1]).startswith("_") and each[1] != "_layout"]
        inner = [each for owner, key in layout for each in places(owner[key])]
        owner, key = random.choice(random.choice([found, layout or found, inner or found]))
        if random.random() < 0.2:
            del owner[key]
        else:
            owner[key] = deepcopy(random.choice(OTHERS))
    return damaged


def use(path: str, world: World) -> None:
    """What commands do with a record."""
    run = record_files.load_run(path, world)
    list(inspection_lines(run))
    list(replay_lines(run))
    run_diff(run, run, world)
    evaluate_fixture(run, evaluation.own_fixture(run, world))
    export_run(run, world=world)
    run_chart(unfolded(parsed((Path(world.files.cwd()) / path).read_text())))


def test_a_file_with_something_else_in_it_is_refused_or_read(
    given: Dict, world: World, tmp_path: Path
) -> None:
    refused = 0
    for seed in SEEDS:
        value = damaged(given, Random(seed))
        (tmp_path / "d.json").write_text(json.dumps(value))
        said = None
        try:
            use("d.json", world)
        except MisuseError as error:
            refused, said = refused + 1, str(error)
        except Exception as error:
            error.add_note(f"seed {seed}: {json.dumps(value)}")
            raise
        assert said is None or (said.startswith(REFUSED) and "\n" not in said), seed
    assert 0.2 < refused / len(SEEDS) < 0.98


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (
            lambda run: run["stages"][1]["_then"].update(checkpoints=[1]),
            "stages[1]._then.checkpoints: exp",
        ),
        (lambda run: run["stages"][1].update(node_id=5), "stages[1].node_id: expected string, got int"),
        (lambda run: run["stages"][1].update(_same=[[{}]]), "stages[1]._same[0]: expected list of strings"),
        (lambda run: run["stages"].append(7), "stages: expected list of dicts"),
        (
            lambda run: run["_begun"].update(completed_nodes=["a", 5]),
            "_begun.completed_nodes: expected",
        ),
        (lambda run: run.update(_then=[1]), "_then: expected dict, got list"),
    ],
)
def test_what_is_wrong_is_named(
    given: Dict, damage: Callable[[Dict], object], problem: str, world: World, tmp_path: Path
) -> None:
    damage(given)
    (tmp_path / "d.json").write_text(json.dumps(given))
    with pytest.raises(MisuseError) as raised:
        record_files.load_run("d.json", world)
    assert str(raised.value).startswith(f"{REFUSED}run_record parse error at {problem}")
