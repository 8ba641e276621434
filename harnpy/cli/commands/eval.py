"""`harnpy eval` and `test package --evals`: whether runs had the expected outcome. Spec: 09 §8.3.

`judged` returns a plain dict with its `kind`; `report_lines` makes the lines of it.
"""

from __future__ import annotations

import os
import os.path
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from harnpy import Vm
from harnpy.builtins.live_models import models_of
from harnpy.builtins.workflows.run_records import eval_metrics
from harnpy.cli import FAILED, OK, console, judges, run_records
from harnpy.cli.command_options import html_option, trust_option, write_page
from harnpy.cli.commands.run import exit_status
from harnpy.cli.console import complain, harmless, one_line, paint, say
from harnpy.cli.model_fixtures import load_fixtures, replay
from harnpy.cli.project_setup import bind_project, require_trust
from harnpy.cli.run_records import difference, refused
from harnpy.faults import MisuseError, OptionError
from harnpy.formats.dicts import Dict
from harnpy.formats.json import parse_json
from harnpy.formats.manifest import manifest_of
from harnpy.llm.errors import FixtureError
from harnpy.llm.experiments import VARIABLE, read_experiment
from harnpy.project import MANIFEST, project_root
from harnpy.vm.errors import ExitRequest
from harnpy.vm.values import display
from harnpy.workflow import evaluation
from harnpy.workflow import evaluation as packs
from harnpy.workflow.evaluation import run_pack
from harnpy.workflow.records.differences import run_diff, unified_diff
from harnpy.workflow.records.replay_fixture import evaluate_fixture
from harnpy.workflow.report import html_evaluation
from harnpy.world import World
from harnpy.world.environment import Variables
from harnpy.world.files import RealFiles, plain_reason
from harnpy.world.streams import RealStreams

# What `harnpy eval` prints of a report, line by line. Spec: 09 §8.3.


_COUNTS = {"llm_calls": "LLM calls", "input_tokens": "Input tokens", "output_tokens": "Output tokens"}


def report_lines(report: Dict) -> Iterator[str]:
    return _LINES[report["kind"]](report)


def _record(report: Dict) -> Iterator[str]:
    yield _verdict(report)
    yield f"Stages: {report['stage_count']}"
    if report["comparison"] is not None:
        yield from difference(report["comparison"])
    yield from (f"- {harmless(failure)}" for failure in report["failures"])


def _suite(report: Dict) -> Iterator[str]:
    yield (
        f"{_verdict(report)} {report['passed']} passed, {report['failed']} failed, {report['total']} total"
    )
    for case in report["cases"]:
        yield f"- {_name(case, case['label'] or case['run_id'])} {_verdict(case)}"
        yield from _details(case)


def _pack(report: Dict) -> Iterator[str]:
    yield (
        f"{_verdict(report)} {report['passed']} passed, {report['blocking_failed']} blocking failed, "
        f"{report['warning_failed']} warning, {report['informational_failed']} informational, "
        f"{report['total']} total"
    )
    for case in report["cases"]:
        yield f"- {_name(case, case['label'])} {_verdict(case)} ({case['severity']})"
        yield from _details(case)
        yield from (f"  warning: {harmless(text)}" for text in case["warnings"])
        yield from (f"  info: {harmless(text)}" for text in case["informational"])
        yield from (_opinion(found) for found in case["judgements"] if found["pass"])
    yield from judges.usage_lines(report["usage"])


def _opinion(found: Dict) -> str:
    """Say what a judge thought of a run that passed; a failure says it itself."""
    reached = f"{found['score']:g} ({found['threshold']:g} passes)"
    return f"  rubric '{one_line(found['rubric'])}' scored {reached}: {one_line(found['reason'])}"


def _name(case: Dict, label: str) -> str:
    return f"{one_line(label)} [{one_line(case['workflow_id'] or '-')}]"


def _details(case: Dict) -> Iterator[str]:
    if case["source_path"] is not None:
        yield f"  path: {one_line(case['source_path'])}"
    if case["comparison"] is not None:
        yield f"  baseline identical: {'true' if case['comparison']['identical'] else 'false'}"
    yield from (f"  {harmless(failure)}" for failure in case["failures"])


def _program(report: Dict) -> Iterator[str]:
    """Two runs side by side: the baseline before the arrow, the experiment behind it."""
    sides = report["baseline"], report["experiment"]
    yield _verdict(report)
    yield f"Structural experiment: {one_line(report['spec'])}"
    for name, side in zip(("baseline", "experiment"), sides, strict=True):
        yield f"- {name} {_verdict(side)}"
        if side["failure"]:
            yield from (f"  {harmless(line)}" for line in side["failure"].splitlines())
    for key in _COUNTS:
        yield _change(_COUNTS[key], *(str(side[key]) for side in sides))
    yield _change("Cost", *(f"${side['cost']:.6f}" for side in sides))
    for metric in report["metrics"]:
        yield f"- {_change(metric['name'], metric['baseline'], metric['experiment'])}"
    yield f"Output: {'different' if report['output_diff'] else 'identical'}"
    yield from (harmless(line) for line in report["output_diff"].splitlines())


def _change(name: str, before: str, after: str) -> str:
    return f"{one_line(name)}: {one_line(before)} -> {one_line(after)}"


def _verdict(judged: Dict) -> str:
    return paint("PASS", "green", sys.stdout) if judged["pass"] else paint("FAIL", "red", sys.stdout)


_LINES: Mapping[str, Callable[[Dict], Iterator[str]]] = {
    "record": _record, "directory": _suite, "suite": _suite, "pack": _pack, "program": _program,
}  # fmt: skip


# One program run without and with a structural experiment: what that changes. Spec: 09 §8.3.


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
        "output_diff": "" if before == after else unified_diff("output", before, after),
    }


def _run(path: str, spec: str | None, llm_mock: str | None, args: Sequence[str]) -> Dict:
    written: list[str] = []
    vm = Vm(_world(written.append, spec))
    bind_project(vm, path)
    status, failure = 0, ""
    try:
        if llm_mock is not None:
            replay(vm, llm_mock)
        status = exit_status(vm.run_file(path, args=args), vm.failures)
    except ExitRequest as request:
        status = request.code
    except Exception as error:
        status, failure = 1, console.error_text(error)
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


#: What each option is for.
_APPLIES_TO = {
    "--compare": ("record",),
    "--structural-experiment": ("program",),
    "--llm-mock": ("program", "pack"),
    "--no-judge": ("pack",),
    "ARGS": ("program",),
}


@click.command("eval", short_help="Judge runs: a record, a directory of them, a suite, an eval pack.")
@click.argument("path")
@click.argument("args", nargs=-1)
@click.option("--compare", metavar="BASE", help="For a record: show what changed since the run in BASE.")
@click.option(
    "--structural-experiment", "spec", metavar="SPEC", help="For a program: also run it with this experiment."
)
@click.option("--llm-mock", metavar="FILE", help="Program, pack: answer all model calls from FILE.")
@click.option("--no-judge", is_flag=True, help="For a pack: ask no models; rubrics that need one don't run.")
@html_option
@trust_option
@click.pass_context
def command(
    context: click.Context,
    path: str,
    args: tuple[str, ...],
    compare: str | None,
    spec: str | None,
    llm_mock: str | None,
    no_judge: bool,
    page: str | None,
) -> int:
    """Judge PATH; the exit status is 1 if a blocking check fails.

    PATH is a run record, a directory of them, the manifest of a suite, an eval pack (TOML or JSON), or with
    --structural-experiment a program; the arguments after `--` are its `argv`.
    """
    kind = _kind(path)
    given = {
        "--compare": compare,
        "--structural-experiment": spec,
        "--llm-mock": llm_mock,
        "--no-judge": no_judge,
        "ARGS": args,
    }
    for option, kinds in _APPLIES_TO.items():
        if given[option] and kind not in kinds:
            wanted = " or a ".join(kinds)
            raise click.UsageError(f"`{option}` applies to a {wanted}, and {path} is a {kind}", context)
    if kind == "program":
        if spec is None:
            raise click.UsageError("a program is evaluated with `--structural-experiment SPEC`", context)
        require_trust([path])
        return print_report(paired(path, spec, llm_mock, args), page)
    try:
        if kind == "pack":
            return print_report(judged_pack(path, llm_mock, not no_judge), page)
        return print_report(judged(path, kind, compare), page)
    except FixtureError as error:
        raise click.ClickException(error.message) from None
    except MisuseError as error:
        if kind == "record":
            return run_records.unreadable(error)
        return run_records.refused(error, f"error: {error.message}")


def print_report(report: Dict, page: str | None = None) -> int:
    """Print a report, write its HTML to the file ``page``, and return the exit status."""
    for line in report_lines(report):
        say(line)
    write_page(page, lambda: html_evaluation(report, os.environ))
    return OK if report["pass"] else FAILED


def judged(path: str, kind: str, compare: str | None = None) -> Dict:
    """Return the report on ``path``. Raises `MisuseError`."""
    report = _judge_record(path, compare) if kind == "record" else _JUDGES[kind](path)
    return {"kind": kind, "path": path, **report}


def _kind(path: str) -> str:
    if os.path.isdir(path):
        return "directory"
    if path.endswith(".harn"):
        return "program"
    if path.endswith(".toml"):
        return "pack"
    try:
        given = _given(path)
    except (OSError, ValueError):
        return "record"  # reading it as one reports what is wrong
    if not isinstance(given, dict):
        return "record"
    if given.get("_type") == evaluation.SUITE_MANIFEST:
        return "suite"
    return "record" if "cases" not in given else "pack" if "version" in given else "suite"


def _given(path: str) -> Any:
    world = World()
    return parse_json(world.files.read_text(path))


def _judge_record(path: str, compare: str | None) -> Dict:
    world, run = World(), run_records.load(path)
    comparison = None if compare is None else run_diff(run_records.load(compare), run, world)
    judged = evaluate_fixture(run, evaluation.own_fixture(run, world))
    about = {"run_id": run["id"], "workflow_id": run["workflow_id"], "comparison": comparison}
    return {**judged, **about}


def _judge_directory(path: str) -> Dict:
    names = sorted(name for name in os.listdir(path) if name.endswith(".json"))
    if not names:
        complain(f"warning: no run records in {path}")
    return evaluation.suite_report([_case(os.path.join(path, name)) for name in names])


def _case(path: str) -> Dict:
    run = run_records.load(path)
    return evaluation.case_report(run, evaluation.own_fixture(run, World()), None, path)


def _judge_suite(path: str) -> Dict:
    """A suite in a file; its paths are relative to the file's directory."""
    world = World()
    manifest = evaluation.read_suite_manifest(_given(path), evaluation.SUITE_MANIFEST, world)
    base = os.path.join(os.path.dirname(path), manifest["base_dir"] or "")
    return evaluation.run_suite_manifest({**manifest, "base_dir": base}, world)


def judged_pack(path: str, llm_mock: str | None = None, has_judges: bool = True) -> Dict:
    """Return the report on the eval pack in ``path``. Raises `FixtureError` and `MisuseError`."""
    world = World()
    pack = packs.load_pack(path, world)
    about = {"kind": "pack", "path": path}
    if has_judges and judges.has_judges(pack):
        with judges.judging(path, pack, world, llm_mock) as models:
            return {**about, **run_pack(pack, world, models)}
    if llm_mock is not None:
        load_fixtures(llm_mock, world.files)
    return {**about, **run_pack(pack, world)}


_JUDGES: Mapping[str, Callable[[str], Dict]] = {
    "directory": _judge_directory,
    "suite": _judge_suite,
}


# `harnpy test package --evals`: the eval packs that the project's manifest lists. Spec: 09 §8.3.


_USUAL = ["harn.eval.toml"]


def run_package_evals() -> int:
    """Judge them all and return the exit status."""
    here = os.getcwd()
    root = os.path.relpath(project_root(here, RealFiles()) or here)
    statuses = [
        _judge_package_eval(os.path.normpath(os.path.join(root, path)))
        for path in _listed_package_evals(root)
    ]
    return FAILED if FAILED in statuses else OK


def _judge_package_eval(path: str) -> int:
    say(f"Eval pack: {path}")
    try:
        return print_report(judged_pack(path))
    except MisuseError as error:
        return refused(error, f"error: {error.message}")


def _listed_package_evals(root: str) -> list[str]:
    path = Path(root, MANIFEST)
    try:
        manifest = manifest_of(World(), root)
    except ValueError as error:
        raise click.ClickException(f"{path}: {plain_reason(error)}") from None
    refusal = manifest.refusal("package")
    if refusal is not None:
        raise refusal
    package = manifest.tables.get("package", {})
    evals = package.get("evals", _USUAL) if isinstance(package, dict) else None
    if not isinstance(evals, list) or not all(isinstance(path, str) for path in evals):
        raise click.ClickException(f"{path}: `package.evals` must be a list of paths")
    return evals
