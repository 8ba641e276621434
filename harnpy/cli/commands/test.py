"""`harnpy test`: chooses between user tests and the conformance suite. Spec: 09 §3."""

from __future__ import annotations

import os.path
import re
from functools import partial
from pathlib import Path
from typing import Any

import click

from harnpy.cli import FAILED
from harnpy.cli.command_options import trust_option, unbuilt_options
from harnpy.cli.console import complain, not_yet, one_line
from harnpy.project import project_root
from harnpy.world.files import RealFiles

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s)?")

#: Tests that `--durations` lists unless it says how many.
_SLOWEST = 10

#: The options that ask for coverage.
_COVERAGE = ("coverage", "lcov", "html")

#: Targets that are specified but not built yet.
_UNBUILT_TARGETS = ("protocols", "agents-conformance")


def _milliseconds(context: click.Context, parameter: click.Parameter, value: str) -> float:
    """A time in milliseconds, or in seconds when written with an `s`."""
    match = _DURATION.fullmatch(value)
    if not match or float(match[1]) == 0:
        raise click.BadParameter(f"'{value}' is not a time such as 500, 500ms or 2.5s", context, parameter)
    return float(match[1]) * (1000 if match[2] == "s" else 1)


class _Command(click.Command):
    """`--durations` is `--durations=10`: the path that may follow it is no number. `--tape` takes all paths
    that follow it; without any it is `--tape=`."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        options = args[: args.index("--")] if "--" in args else args
        given: list[str] = []
        behind_tape = False
        for arg in options:
            if behind_tape and not arg.startswith("-"):
                given[-1:] = [f"--tape={arg}"] if given[-1] == "--tape=" else [given[-1], f"--tape={arg}"]
                continue
            behind_tape = arg == "--tape"
            given.append(f"{arg}={_SLOWEST}" if arg in ("--timing", "--durations") else arg)
            given[-1] += "=" if behind_tape else ""
        return super().parse_args(context, given + args[len(options) :])


@click.command("test", cls=_Command, short_help="Run the tests of a project, or a conformance suite.")
@click.argument("target", required=False)
@click.argument("selection", required=False)
@click.option("--filter", metavar="P", help="Run only matching tests, see above.")
@click.option(
    "--timeout",
    callback=_milliseconds,
    default="30000",
    metavar="MS",
    help="Time limit for each test; 5s is 5000.",
)
@click.option("--parallel", is_flag=True, help="User tests: run several files at once.")
@click.option("--watch", is_flag=True, help="User tests: run again what a change affects.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Show the output of passing tests; conformance: times, failures in full.",
)
@click.option(
    "--durations",
    "--timing",
    "durations",
    type=click.IntRange(1),
    metavar="[=N]",
    help="Show time statistics and the N (10) slowest tests.",
)
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML.")
@click.option("--json", is_flag=True, help="Print one JSON object per test, then the counts.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Conformance: run in N processes.")
@click.option(
    "--root", type=click.Path(path_type=Path), metavar="DIR", help="Conformance: the suite's directory."
)
@click.option(
    "--skill-dir",
    "skill_dirs",
    multiple=True,
    type=click.Path(),
    metavar="DIR",
    help="Add the skills in DIR; may be repeated.",
)
@click.option("--walk", is_flag=True, help="Interpret the syntax trees instead of compiling them.")
@click.option("--coverage", is_flag=True, help="User tests: report which lines and branches ran.")
@click.option(
    "--lcov", type=click.Path(path_type=Path), metavar="FILE", help="Also write coverage as an LCOV file."
)
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="FILE", help="Also write coverage as an HTML page."
)
@click.option(
    "--tape",
    "tapes",
    multiple=True,
    metavar="[RUN.tape...]",
    help="Replay recorded runs on the programs as they are now; by default those below PATH.",
)
@click.option("--update", is_flag=True, help="Tapes: show how one differs, ask, and record it anew.")
@click.option("--yes", is_flag=True, help="Tapes: record anew without asking.")
@click.option("--evals", is_flag=True, help="Package: judge its eval packs.")
@trust_option
@unbuilt_options("--record", "--replay", "--determinism")
@click.pass_context
def command(context: click.Context, /, target: str | None, **options: Any) -> int:
    """Run the tests of a project, or a conformance suite.

    `harnpy test [PATH]` runs the pipelines called test_… or marked @test, below PATH, ./tests or the
    project's tests.
    --filter is a part of the pipeline's name.

    `harnpy test conformance [SELECTION]` runs the programs below ./conformance (or --root) that have a
    .expected or .error file beside them; SELECTION is one of them or a directory. --filter is a part of
    the path, a glob, alternatives `a|b`, or `re:REGEX`.

    `harnpy test --tape [RUN.tape...]` replays runs that `harnpy run --record` has recorded, on the programs
    as they are now: no model is asked. --filter is a part of the tape's path.

    `harnpy test package --evals` judges the eval packs that harn.toml lists as `evals`, else harn.eval.toml.
    """
    if target in _UNBUILT_TARGETS:
        raise click.UsageError(not_yet(f"harnpy test {target}"), context)
    if target == "package":
        return _package(context, options)
    if options["tapes"] or (target is not None and target.endswith(".tape")):
        return _tape_tests(context, options, target)
    for name in ("update", "yes"):
        if options[name]:
            raise click.UsageError(f"`--{name}` applies to `harnpy test --tape`", context)
    if options["evals"]:
        raise click.UsageError("`--evals` applies to `harnpy test package`", context)
    run = _conformance if target == "conformance" else partial(_user_tests, target=target)
    return run(context, options)


def _conformance(context: click.Context, options: dict[str, Any]) -> int:
    from harnpy.cli.testing import conformance

    _reject(context, options, ("parallel", "watch", *_COVERAGE), "harnpy test conformance")
    if not _prepared(options):
        return FAILED
    return conformance.run(
        conformance.Options(
            root=options["root"] or Path("conformance"),
            selection=options["selection"],
            filter=options["filter"],
            timeout_ms=options["timeout"],
            jobs=options["jobs"] or 1,
            durations=options["durations"],
            verbose=options["verbose"],
            json=options["json"],
            skill_dirs=_absolute(options["skill_dirs"]),
            junit=options["junit"],
            evaluator=_evaluator(options),
        )
    )


def _evaluator(options: dict[str, Any]) -> str:
    return "walk" if options["walk"] else "compile"


def _package(context: click.Context, options: dict[str, Any]) -> int:
    if not options["evals"]:
        raise click.UsageError("`harnpy test package` requires `--evals`", context)
    _reject_selection(context, options)
    others = ("filter", "parallel", "watch", "verbose", "durations", "junit", "json", "jobs", "root")
    _reject(context, options, (*others, *_COVERAGE), "harnpy test package")
    from harnpy.cli.commands.eval import run_package_evals

    return run_package_evals()


def _prepared(options: dict[str, Any]) -> bool:
    """Return whether the reports that are asked for can be written; say why not."""
    from harnpy.cli.testing.test_results import prepare

    wanted = [options[name] for name in ("junit", "lcov", "html") if options[name] is not None]
    page = options["html"]
    if page is not None and page.is_dir():
        wanted.remove(page)
    problems = [problem for path in wanted if (problem := prepare(path))]
    for problem in problems:
        complain(one_line(f"error: {problem}"))
    return not problems


def _tests_around() -> Path | None:
    """Return where the tests are that are meant in the working directory, None if there are none."""
    files = RealFiles()
    here = files.cwd()
    root = project_root(here, files)
    if (tests := Path("tests")).is_dir() or root is None:
        return tests if tests.is_dir() else None
    tests = Path(root, "tests")
    if tests.is_dir() and Path(here).is_relative_to(tests):
        return Path(".")
    return Path(os.path.relpath(tests, here)) if tests.is_dir() else None


def _user_tests(context: click.Context, options: dict[str, Any], target: str | None) -> int:
    from harnpy.cli.testing import user_tests, watching

    _reject_selection(context, options)
    _reject(context, options, ("jobs", "root"), "user tests")
    if options["json"] and options["watch"]:
        raise click.UsageError("`--json` and `--watch` exclude each other", context)
    if options["json"] and any(options[name] for name in _COVERAGE):
        raise click.UsageError("`--json` and `--coverage` exclude each other", context)
    path = _tests_around() if target is None else Path(target)
    if path is None:
        raise click.UsageError(
            "no path specified and no tests/ directory found, here or in a project around it", context
        )
    if not path.exists():
        complain(f"Path not found: {path}")
        return FAILED
    if not _prepared(options):
        return FAILED
    run = watching.watch if options["watch"] else user_tests.run
    return run(
        user_tests.Options(
            path=path,
            filter=options["filter"],
            timeout_ms=options["timeout"],
            parallel=options["parallel"],
            skill_dirs=_absolute(options["skill_dirs"]),
            evaluator=_evaluator(options),
            coverage=any(options[name] for name in _COVERAGE),
            lcov=options["lcov"],
            html=options["html"],
            verbose=options["verbose"],
            durations=options["durations"],
            junit=options["junit"],
            json=options["json"],
        )
    )


def _tape_tests(context: click.Context, options: dict[str, Any], target: str | None) -> int:
    from harnpy.cli.commands.tape import run_taped
    from harnpy.cli.testing import tape_tests, user_tests

    others = ("jobs", "root", "parallel", "watch", "walk", "skill_dirs", "evals", *_COVERAGE)
    _reject(context, options, others, "tapes")
    if options["yes"] and not options["update"]:
        raise click.UsageError("`--yes` requires `--update`", context)
    around = Path(target) if target is not None else _tests_around() or Path(".")
    named = [Path(tape) for tape in options["tapes"] if tape]
    if target is not None and target.endswith(".tape"):
        named = [Path(name) for name in (target, options["selection"]) if name is not None] + named
    else:
        _reject_selection(context, options)
    if not _prepared(options):
        return FAILED
    shown = user_tests.Options(
        path=around,
        filter=options["filter"],
        timeout_ms=options["timeout"],
        parallel=False,
        verbose=options["verbose"],
        durations=options["durations"],
        junit=options["junit"],
        json=options["json"],
    )
    record = run_taped if options["update"] else None
    return tape_tests.run(named or [around], shown, record=record, agrees=options["yes"])


def _absolute(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The paths made absolute, because user tests run in other directories."""
    return tuple(map(os.path.abspath, paths))


def _reject_selection(context: click.Context, options: dict[str, Any]) -> None:
    if options["selection"] is not None:
        raise click.UsageError("only `harnpy test conformance` accepts a second positional target", context)


def _reject(context: click.Context, options: dict[str, Any], names: tuple[str, ...], mode: str) -> None:
    """Refuse an option that the chosen mode would have to ignore."""
    for name in names:
        if options[name]:
            raise click.UsageError(f"`--{name}` does not apply to {mode}", context)
