"""`harnpy run`: one program, from a file, the command line or stdin. Spec: 09 §2, 02 §10.5.

On the start-up path: what only some runs need is imported where it is needed.
"""

from __future__ import annotations

import gc
import sys

from harnpy.cli import FAILED, OK
from harnpy.cli.project_setup import bind_project

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from harnpy import Vm
    from harnpy.vm.limits import Limits
    from harnpy.vm.unit import Unit
    from harnpy.world import World
    from harnpy.world.host import Stopping

SUMMARY = "Run a program."
_USAGE = "harnpy run [OPTIONS] <FILE | - | -e CODE> [-- ARG...]"
_HELP = f"""\
{SUMMARY}

Usage: {_USAGE}

FILE is a Harn program; `-` reads one from stdin. The entry is the pipeline \
`default`, or the first pipeline, or else the file's statements in order. An int \
as the entry's value is the exit status; Err and an uncaught error exit with 1.

Options:
  -e CODE                 Run CODE as the body of `pipeline main(task) {{ ... }}`.
  --deny A,B              Make the builtins A and B fail, and refuse their effects.
  --allow A,B             Make every builtin fail except A, B and a core set.
  --memory SIZE           Limit the memory of the process: 512M, 2G.
  --time TIME             End the program after this time: 10s, 500ms, 2m.
  --limit NAME=N          Set a limit, such as steps=1000000; may be repeated.
  --skill-dir DIR         Add the skills in DIR; may be repeated.
  --llm-mock FILE         Answer all model calls from FILE, one fixture per line.
  --llm-mock-record FILE  Record the models' replies in FILE, for --llm-mock.
  --record FILE           Record what the program sees of the outside, for `harnpy replay FILE`.
  --watch-agents          Show on stderr what the agents do while they work.
  --attended              Ask at the terminal when the program asks a person.
  --trust                 Trust the project this once, as HARN_TRUST=1 does.
  --walk                  Interpret the syntax tree instead of compiling it: slower, same results.
  --trace                 Show the model calls and their cost on stderr afterwards.
  --debug                 Show the Python traceback of a failure.
  --durable               Record each step in the session store, so that a killed run can be resumed.
  --run-id ID             The durable run's id; an existing run of this program is resumed.
  --queue Q               Queue the durable run for a `harnpy worker`.
  --resume RUN_ID         Resume a durable run, with FILE, if given, instead of its program.
  --accept-changes STAGE  Resume although this finished stage was edited; may be repeated.
  --store URL, --engine E  The store and the engine (local, dbos) of durable runs.
  --help                  Show this message.

The arguments after `--` are the program's `argv`.
"""

#: The most columns of the help.
_WIDTH = 80
#: Options that are specified but not built yet.
_UNBUILT = (
    "--attest",
    "--receipt-out",
    "--attest-agent",
)

_FLAGS = {
    "--attended": "attended",
    "--debug": "debug",
    "--durable": "durable",
    "--trace": "trace",
    "--trust": "trust",
    "--walk": "walk",
    "--watch-agents": "watch_agents",
    "--help": "help",
    "-h": "help",
}

#: Options with a value.
_VALUES = {
    "-e": "code",
    "--deny": "deny",
    "--allow": "allow",
    "--llm-mock": "llm_mock",
    "--llm-mock-record": "llm_mock_record",
    "--record": "record",
    "--skill-dir": "skill_dirs",
    "--memory": "memory",
    "--time": "time",
    "--limit": "limit",
    "--run-id": "run_id",
    "--queue": "queue",
    "--resume": "resume",
    "--accept-changes": "accept_changes",
    "--store": "store",
    "--engine": "engine",
}

#: Options of durable runs, with those that they need one of.
_OF_DURABLE = {
    "--run-id": ("--durable",),
    "--queue": ("--durable",),
    "--accept-changes": ("--resume",),
    "--store": ("--durable", "--resume"),
    "--engine": ("--durable", "--resume"),
}
#: Options that hold for one process, so not for a run that goes on in another one.
_NOT_DURABLE = (
    "-e --deny --allow --limit --time --llm-mock --llm-mock-record --record --skill-dir --attended --trace "
    "--walk --watch-agents"
).split()

#: What --allow always allows.
_CORE = (
    "println print log type_of to_string to_int to_float len assert assert_eq assert_ne json_parse "
    "json_stringify runtime_context task_current runtime_context_values runtime_context_get "
    "runtime_context_set runtime_context_clear"
)


class UsageError(Exception):
    """The command line can't be understood; the message says why."""


class Options:
    """The options of the command line."""

    file: str | None = None
    code: str | None = None
    deny: str | None = None
    allow: str | None = None
    limits: Limits | None = None
    memory: int | None = None
    time: float | None = None
    llm_mock: str | None = None
    llm_mock_record: str | None = None
    record: str | None = None
    attended = debug = durable = trace = trust = walk = watch_agents = help = False
    #: The number of durable runs.
    run_id: str | None = None
    queue: str | None = None
    resume: str | None = None
    store: str | None = None
    engine: str | None = None

    def __init__(self) -> None:
        self.args: list[str] = []
        self.skill_dirs: list[str] = []
        self.limit: list[str] = []
        self.accept_changes: list[str] = []

    def of_a_tape(self) -> dict[str, Any]:
        """Return the options that a replay of the run has, too, beside those of its Vm."""
        kept = {name: getattr(self, name) for name in _ON_TAPES}
        kept["inline"] = self.code is not None
        return {name: value for name, value in kept.items() if value}

    @classmethod
    def from_tape(cls, command: Mapping[str, Any], file: str) -> Options:
        """Return the options of a replay of the program in ``file``."""
        options = cls()
        for name in _ON_TAPES:
            setattr(options, name, command.get(name, getattr(options, name)))
        options.file = None if command.get("inline") else file
        return options


#: The options of a run that its tape keeps: they change what is printed, or what the program finds.
_ON_TAPES = ("llm_mock", "skill_dirs", "trace", "watch_agents")


def main(argv: Sequence[str], stopping: Stopping | None = None) -> int:
    """Run what `argv` (without `run`) names; return the exit status.

    ``stopping`` is how the process is asked to stop, when it is this command's.
    """
    try:
        options = parse(argv)
    except UsageError as error:
        from harnpy.cli.console import usage_error

        return usage_error(str(error), _USAGE)
    if options.help:
        from harnpy.cli.console import columns, fold

        width = min(columns() or _WIDTH, _WIDTH)
        sys.stdout.writelines(
            part + "\n" for line in _HELP.removesuffix("\n").split("\n") for part in fold(line, width)
        )
        return OK
    if options.memory is not None or options.time is not None:
        from harnpy.cli.bounds import run_bounded

        return run_bounded(argv, options.memory, options.time)
    return started(lambda: _execute(options, stopping))


def started(start: Callable[[], int]) -> int:
    """Return what ``start()`` does, which runs a program, and looks for no garbage until that begins.

    What is loaded and compiled before is none: looking for some would cost a cold start 5 %, a replay 10 %.
    `collect` ends this.
    """
    gc.disable()
    try:
        return start()
    finally:
        gc.unfreeze()
        gc.enable()


def collect() -> None:
    """Collect garbage from now on, and look for none in what is there."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def parse(argv: Sequence[str]) -> Options:
    """The options in `argv`. Raises UsageError."""
    options = Options()
    words = list(argv)
    if "--" in words:
        cut = words.index("--")
        words, options.args = words[:cut], words[cut + 1 :]
    left = iter(words)
    for word in left:
        _take(options, word, left)
    if options.help:
        return options
    _check_durable(options)
    if options.file is not None and options.code is not None:
        raise UsageError("`harnpy run` accepts either `-e <code>` or `<file.harn>`, not both")
    if options.file is None and options.code is None and options.resume is None:
        raise UsageError("`harnpy run` requires either `-e <code>` or `<file.harn>`")
    _refuse_both(options, "--deny", "--allow")
    _refuse_both(options, "--llm-mock", "--llm-mock-record")
    if options.limit or options.memory is not None or options.time is not None:
        _read_bounds(options)
    return options


def _read_bounds(options: Options) -> None:
    """Replace the words of --memory, --time and --limit by what they mean. Raises UsageError."""
    from harnpy.cli.bounds import read_limits, read_memory, read_seconds

    try:
        options.limits = read_limits(options.limit)
        if options.memory is not None:
            options.memory = read_memory(options.memory)
        if options.time is not None:
            options.time = read_seconds(str(options.time))
    except ValueError as error:
        raise UsageError(str(error)) from None


def _check_durable(options: Options) -> None:
    """Raise UsageError for options of durable runs without one, and for those that no such run can have."""
    given = {name for name, field in (*_FLAGS.items(), *_VALUES.items()) if getattr(options, field)}
    how = given & {"--durable", "--resume"}
    for name in sorted(given):
        if name in _OF_DURABLE and how.isdisjoint(_OF_DURABLE[name]):
            raise UsageError(f"the argument '{name}' requires '{_OF_DURABLE[name][0]}'")
        if how and name in _NOT_DURABLE:
            raise UsageError(f"the argument '{min(how)}' cannot be used with '{name}'")
    if how and options.file == "-":
        raise UsageError(f"the argument '{min(how)}' cannot be used with '-'")
    _refuse_both(options, "--durable", "--resume")


def _refuse_both(options: Options, one: str, other: str) -> None:
    fields = (_VALUES.get(name) or _FLAGS[name] for name in (one, other))
    if all(getattr(options, field) not in (None, False) for field in fields):
        raise UsageError(f"the argument '{one}' cannot be used with '{other}'")


def _take(options: Options, word: str, rest: Any) -> None:
    """Put one word, and its value if it takes one, into `options`."""
    name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
    if name in _UNBUILT:
        from harnpy.cli.console import not_yet

        raise UsageError(not_yet(name))
    if name in _FLAGS and not equals:
        setattr(options, _FLAGS[name], True)
    elif name in _VALUES:
        given: str | None = value if equals else next(rest, None)
        if given is None:
            raise UsageError(f"a value is required for '{name}' but none was supplied")
        kept = getattr(options, _VALUES[name])
        if type(kept) is list:
            kept.append(given)
        else:
            setattr(options, _VALUES[name], given)
    elif word.startswith("-") and word != "-":
        raise UsageError(f"unexpected argument '{word}' found")
    elif options.file is not None:
        raise UsageError(f"unexpected argument '{word}' found: the program's arguments follow `--`")
    else:
        options.file = word


def _execute(options: Options, stopping: Stopping | None) -> int:
    from harnpy import Vm

    if options.trust:
        import os

        os.environ["HARN_TRUST"] = "1"
    if options.durable or options.resume is not None:
        return _execute_durable(options)
    world = _world(options)
    if stopping is not None:
        world.stopping = stopping
    if options.record is not None:
        from harnpy.tape import Recording, TapeError

        try:
            world = Recording(options.record, world, command=options.of_a_tape())
        except TapeError as error:
            return _failed(error, options.debug)
    run = instrumented(options, world, _run)
    allow = None if options.allow is None else [*_names(options.allow), *_CORE.split()]
    evaluator = "walk" if options.walk else "compile"
    vm = Vm(
        world,
        deny=_names(options.deny),
        allow=allow,
        trace_llm=options.trace,
        evaluator=evaluator,
        limits=options.limits,
    )
    vm.on_start.append(collect)
    return perform(vm, options, run)


def perform(vm: Vm, options: Options, run: Callable[[Vm, Options], Any], *, of_project: bool = True) -> int:
    """Run a program by ``run(vm, options)``, with what its project gives to programs if it is ``of_project``;
    return the exit status."""
    from harnpy.vm.errors import ExitRequest

    vm.careful, vm.on_warnings = True, _warn
    try:
        if of_project:
            bind_project(vm, options.file, options.skill_dirs)
        value = run(vm, options)
        if options.trace:
            from harnpy.cli import model_fixtures

            sys.stdout.flush()
            model_fixtures.print_trace(vm)
        return exit_status(value, vm.failures)
    except ExitRequest as request:
        return request.code
    except Exception as error:
        return _failed(error, options.debug)


def _execute_durable(options: Options) -> int:
    from harnpy.cli import durable_runs

    file, where = options.file, (options.engine, options.store)
    try:
        if options.resume is not None:
            accept = options.accept_changes
            value = durable_runs.resume(
                options.resume, file, options.args, accept=accept, where=where, warn=_warn
            )
        else:
            assert file is not None
            value = durable_runs.start(
                file, options.args, id=options.run_id, queue=options.queue, where=where, warn=_warn
            )
    except Exception as error:
        failure = durable_runs.unexplained(error)
        return FAILED if failure is None else _failed(failure, options.debug)
    if isinstance(value, dict) and value.keys() == {"$exit"}:
        value = value["$exit"]
    return exit_status(value)


def _warn(unit: Unit) -> None:
    from harnpy.cli.console import show_warnings

    show_warnings(unit)


def _failed(error: Exception, debug: bool) -> int:
    from harnpy.vm.errors import LimitExceeded

    # What may be exceeding a limit.
    kinds = LimitExceeded | MemoryError | SystemError | UnboundLocalError
    if isinstance(error, kinds) or isinstance(error.__cause__, MemoryError):
        from harnpy.cli.bounds import report

        return report(error, debug)
    from harnpy.cli.console import report_failure

    return report_failure(error, debug)


def _world(options: Options) -> World:
    """The world that the program sees, with a person at the terminal or without."""
    from harnpy.world import World

    return person_at_terminal() if options.attended else World()


def person_at_terminal() -> World:
    """Return the world with a person at the terminal, who is asked."""
    from harnpy.cli.terminal_person import Attended
    from harnpy.world import World
    from harnpy.world.host import People

    world = World()
    world.people = People(Attended(world).ask)
    return world


def instrumented(
    options: Options, world: World, run: Callable[[Vm, Options], Any]
) -> Callable[[Vm, Options], Any]:
    """Return what runs the program by ``run``: plain, watched, with model calls replayed or recorded."""
    if options.watch_agents:
        from harnpy.cli.watch_agents import watched

        run = watched(run, world)
    if options.llm_mock is not None:
        from harnpy.cli.model_fixtures import replayed

        run = replayed(run, options.llm_mock)
    if options.llm_mock_record is not None:
        from harnpy.cli.model_fixtures import recorded

        run = recorded(run, options.llm_mock_record)
    return run


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _run(vm: Vm, options: Options) -> Any:
    if options.code is not None:
        return _run_inline(vm, options.code, options.args)
    assert options.file is not None
    if options.file == "-":
        return vm.run_source(sys.stdin.read(), file="<stdin>", args=options.args)
    return vm.run_file(options.file, args=options.args)


def _run_inline(vm: Vm, code: str, args: list[str]) -> Any:
    """`-e`: a file outside the project, so that nothing relative to the shell's directory is found.

    That file goes with the program, and what the program keeps does not.
    """
    import os
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="harnpy-") as directory:
        path = os.path.join(directory, "inline.harn")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"pipeline main(task) {{\n{code}\n}}\n")
        vm.settings.home = vm.world.files.cwd()
        return vm.run_file(path, args=args)


def exit_status(value: Any, failures: Mapping[str, str] | None = None) -> int:
    """Return the exit status for a program's value, or for its ``failures`` if the value is no status.

    An Err and the failures are also shown on stderr. Spec: 02 §10.5, 09 §2.3.
    """
    from harnpy.vm.values import EnumValue

    if type(value) is int:
        return max(0, min(value, 255))
    complaints = [f"error: {failure}".replace("\n", " ") for failure in (failures or {}).values()]
    if type(value) is EnumValue and value.enum == "Result":
        from harnpy.vm.values import display

        text = (display(value.fields[0]) if value.fields else "") or "error"
        complaints = [text.removesuffix("\n")] if value.variant == "Err" else []
    if not complaints:
        return OK
    from harnpy.cli.console import complain

    sys.stdout.flush()
    for complaint in complaints:
        complain(complaint)
    return FAILED
