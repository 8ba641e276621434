"""`harnpy eval`: whether runs had the expected outcome. Spec: 09 §8.3.

`judged` returns a plain dict with its `kind`; `eval_lines` prints it.
"""

from __future__ import annotations

import os
import os.path
from typing import TYPE_CHECKING, Any

import click

from harnpy.cli import FAILED, OK, run_records
from harnpy.cli.console import complain, say
from harnpy.cli.show import eval_lines
from harnpy.cli.show.html_option import html_option, write_page
from harnpy.faults import MisuseError
from harnpy.text.json.reader import parse_json
from harnpy.workflow.evals import pack_manifest as packs
from harnpy.workflow.evals.run_pack import run_pack
from harnpy.workflow.records import eval_suite
from harnpy.workflow.records.record_diff import diff
from harnpy.workflow.records.replay_fixture import evaluate
from harnpy.workflow.report import html_evaluation
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.reading.dicts import Dict


#: What each option is for.
_APPLIES_TO = {"--compare": "record"} | dict.fromkeys(
    ("--structural-experiment", "--llm-mock", "ARGS"), "program"
)


@click.command("eval", short_help="Judge runs: a record, a directory of them, a suite, an eval pack.")
@click.argument("path")
@click.argument("args", nargs=-1)
@click.option("--compare", metavar="BASE", help="A record: show what changed since the run in BASE.")
@click.option("--structural-experiment", "spec", metavar="SPEC", help="A program: run it with it, too.")
@click.option("--llm-mock", metavar="FILE", help="A program: answer all model calls from FILE.")
@html_option
@click.pass_context
def command(
    context: click.Context,
    path: str,
    args: tuple[str, ...],
    compare: str | None,
    spec: str | None,
    llm_mock: str | None,
    page: str | None,
) -> int:
    """Judge PATH; the exit status is 1 when a blocking check fails.

    PATH is a run record, a directory of them, the manifest of a suite, an eval pack (TOML or JSON), or with
    --structural-experiment a program; the arguments after `--` are its `argv`.
    """
    kind = _kind(path)
    given = {"--compare": compare, "--structural-experiment": spec, "--llm-mock": llm_mock, "ARGS": args}
    for option, wanted in _APPLIES_TO.items():
        if given[option] and kind != wanted:
            raise click.UsageError(f"`{option}` applies to a {wanted}, and {path} is a {kind}", context)
    if kind == "program":
        if spec is None:
            raise click.UsageError("a program is evaluated with `--structural-experiment SPEC`", context)
        from harnpy.cli.commands.experiment import paired

        return shown(paired(path, spec, llm_mock, args), page)
    try:
        return shown(judged(path, kind, compare), page)
    except MisuseError as error:
        if kind == "record":
            return run_records.unreadable(error)
        return run_records.refused(error, f"error: {error.message}")


def shown(report: Dict, page: str | None = None) -> int:
    """Print a report, write its HTML to the file ``page``, and return the exit status."""
    for line in eval_lines.lines(report):
        say(line)
    write_page(page, lambda: html_evaluation(report, os.environ))
    return OK if report["pass"] else FAILED


def judged(path: str, kind: str, compare: str | None = None) -> Dict:
    """Return the report on ``path``. Raises `MisuseError`."""
    report = _record(path, compare) if kind == "record" else _JUDGES[kind](path)
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
    if given.get("_type") == eval_suite.MANIFEST:
        return "suite"
    return "record" if "cases" not in given else "pack" if "version" in given else "suite"


def _given(path: str) -> Any:
    world = World()
    return parse_json(world.files.read_text(path))


def _record(path: str, compare: str | None) -> Dict:
    world, run = World(), run_records.load(path)
    comparison = None if compare is None else diff(run_records.load(compare), run, world)
    judged = evaluate(run, eval_suite.own_fixture(run, world))
    about = {"run_id": run["id"], "workflow_id": run["workflow_id"], "comparison": comparison}
    return {**judged, **about}


def _directory(path: str) -> Dict:
    names = sorted(name for name in os.listdir(path) if name.endswith(".json"))
    if not names:
        complain(f"warning: no run records in {path}")
    return eval_suite.report([_case(os.path.join(path, name)) for name in names])


def _case(path: str) -> Dict:
    run = run_records.load(path)
    return eval_suite.case_report(run, eval_suite.own_fixture(run, World()), None, path)


def _suite(path: str) -> Dict:
    """A suite in a file; its paths are relative to the file's directory."""
    world = World()
    manifest = eval_suite.read_manifest(_given(path), eval_suite.MANIFEST, world)
    base = os.path.join(os.path.dirname(path), manifest["base_dir"] or "")
    return eval_suite.run_manifest({**manifest, "base_dir": base}, world)


def _pack(path: str) -> Dict:
    world = World()
    return run_pack(packs.load(path, world), world)


_JUDGES: Mapping[str, Callable[[str], Dict]] = {"directory": _directory, "suite": _suite, "pack": _pack}
