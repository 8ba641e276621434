"""One program run without and with a structural experiment: what that changes. Spec: 09 §8.3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harnpy import Vm
from harnpy.builtins.agents.records.evals import eval_metrics
from harnpy.builtins.bridge.live_models import models_of
from harnpy.cli.commands.run import exit_status
from harnpy.cli.model_fixtures import replay
from harnpy.cli.project_setup import bind_project
from harnpy.cli.show import error_text
from harnpy.faults import OptionError
from harnpy.llm.experiments import VARIABLE, read_experiment
from harnpy.vm.errors import ExitRequest
from harnpy.vm.values.objects import display
from harnpy.workflow.artifacts.text_diff import unified
from harnpy.world import World
from harnpy.world.environment import Variables
from harnpy.world.streams import RealStreams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.reading.dicts import Dict


def paired(path: str, spec: str, llm_mock: str | None, args: Sequence[str]) -> Dict:
    """Return the report of both runs; it passes when both succeed."""
    try:
        read_experiment(spec)
    except OptionError as error:
        raise click.ClickException(error.message) from None
    baseline, experiment = (_run(path, each, llm_mock, args) for each in (None, spec))
    before, after = baseline["output"], experiment["output"]
    return {
        "kind": "program",
        "path": path,
        "pass": baseline["pass"] and experiment["pass"],
        "spec": spec,
        "baseline": baseline,
        "experiment": experiment,
        "metrics": list(_metrics(baseline["metrics"], experiment["metrics"])),
        "output_diff": "" if before == after else unified("output", before, after),
    }


def _run(path: str, spec: str | None, llm_mock: str | None, args: Sequence[str]) -> Dict:
    written: list[str] = []
    vm = Vm(_world(written.append, spec))
    bind_project(vm, path)
    status, failure = 0, ""
    try:
        if llm_mock is not None:
            replay(vm, llm_mock)
        status = exit_status(vm.run_file(path, args=args))
    except ExitRequest as request:
        status = request.code
    except Exception as error:
        status, failure = 1, error_text.text(error)
    trace = models_of(vm).trace
    return {
        "pass": status == 0,
        "exit_status": status,
        "failure": failure,
        "output": "".join(written),
        "metrics": {metric["name"]: display(metric["value"]) for metric in eval_metrics(vm)},
        "llm_calls": trace.counts["llm_call"],
        "input_tokens": trace.input_tokens,
        "output_tokens": trace.output_tokens,
        "cost": trace.cost,
    }


def _metrics(before: Dict, after: Dict) -> Iterator[Dict]:
    """The metrics of both runs; `-` where a run has none."""
    for name in {**before, **after}:
        yield {"name": name, "baseline": before.get(name, "-"), "experiment": after.get(name, "-")}


def _world(out: Callable[[str], object], spec: str | None) -> World:
    """The real world with captured output, and with the experiment or none."""
    world = World(streams=RealStreams(stdout=out))
    others = {name: value for name, value in world.environment.all().items() if name != VARIABLE}
    world.environment = Variables(others if spec is None else {**others, VARIABLE: spec})
    return world
