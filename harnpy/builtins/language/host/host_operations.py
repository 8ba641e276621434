"""The built-in operations of `host_call`: processes, templates, a question, the workspace.

Spec: 02 §27, 04 §24. An operation is a function ``(vm, params) -> value``, or a coroutine function.
"""

from __future__ import annotations

from harnpy.builtins.bridge.places import workplace_of
from harnpy.builtins.language.host import shells
from harnpy.builtins.language.host.shells import required
from harnpy.builtins.language.stdin import read_in_time
from harnpy.text.case import WHITESPACE
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values.objects import Duration, display
from harnpy.world.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from harnpy.reading.dicts import Dict
    from harnpy.vm.vm import Vm
    from harnpy.world.processes import Ended


#: The operation that command policies are about.
EXEC = "process.exec"

_EXEC = f"host_call {EXEC}"


async def _exec(vm: Vm, params: Dict) -> Dict:
    argv, world = _argv(vm, params), vm.world
    started, clock = world.clock.now(), world.clock.monotonic()
    try:
        ended = await world.processes.run(
            argv, _directory(vm, params), _environment(vm, params), _seconds(params)
        )
    except OSError as error:
        raise RuntimeFault(f"{_EXEC}: {error.strerror or error}") from None
    except ValueError as error:  # a NUL, or what is no Unicode
        raise RuntimeFault(f"{_EXEC}: {error}") from None
    ms = int((world.clock.monotonic() - clock) * 1000)
    return {
        "command_id": f"cmd_{world.ids.new()}",
        "started_at": rfc3339(started),
        "ended_at": rfc3339(started + ms / 1000),
        "duration_ms": ms,
        **_outcome(ended),
    }


def _outcome(ended: Ended) -> Dict:
    stdout, stderr = ended.out.decode("utf-8", "replace"), ended.err.decode("utf-8", "replace")
    code = -1 if ended.code is None or ended.code < 0 else ended.code
    return {
        "status": "timed_out" if ended.code is None else "completed",
        "timed_out": ended.code is None,
        "pid": ended.pid,
        "process_group_id": ended.pid,
        "handle_id": None,
        "signal": None,
        "exit_code": code,
        "exit_status": code,
        "legacy_status": code,
        "success": code == 0,
        "stdout": stdout,
        "stderr": stderr,
        "combined": stdout + stderr,
    }


def _argv(vm: Vm, params: Dict) -> list[str]:
    mode = params.get("mode", "shell")
    if mode == "shell":
        call = shells.invocation(vm, params, _EXEC, display(required(params, "command")))
        return [call["program"], *map(display, call["args"])]
    if mode != "argv":
        raise RuntimeFault(f'{_EXEC} unsupported mode "{display(mode)}"')
    argv = params.get("argv")
    if type(argv) is not list:
        raise RuntimeFault(f"{_EXEC} missing argv")
    if not argv:
        raise RuntimeFault(f"{_EXEC} argv must not be empty")
    if not display(argv[0]):
        raise RuntimeFault(f"{_EXEC} argv[0] must not be empty")
    return [display(word) for word in argv]


def _directory(vm: Vm, params: Dict) -> str:
    import os.path

    given = params.get("cwd")
    return (
        workplace_of(vm).directory()
        if given is None
        else os.path.join(workplace_of(vm).directory(), display(given))
    )


def _environment(vm: Vm, params: Dict) -> Mapping[str, str] | None:
    given = params.get("env")
    if given is None:
        return workplace_of(vm).environment()
    if type(given) is not dict:
        raise RuntimeFault(f"{_EXEC} env must be a dict")
    for name, value in given.items():
        if type(value) is not str:
            raise RuntimeFault(f'{_EXEC} env value for "{name}" must be a string')
    replaces = params.get("env_mode", "replace") == "replace"
    return given if replaces else {**(workplace_of(vm).environment() or vm.world.environment.all()), **given}


def _seconds(params: Dict) -> float | None:
    given = params.get("timeout")
    if given is None:
        given = params.get("timeout_ms")
    ms = given.ms if type(given) is Duration else given
    if type(ms) is not int and type(ms) is not float:
        return None
    return ms / 1000 if ms > 0 else None


def _list_shells(vm: Vm, params: Dict) -> Dict:
    default = shells.default_shell(vm)
    return {"shells": list(shells.shells(vm).values()), "default_shell_id": default and default["id"]}


def _default_shell(vm: Vm, params: Dict) -> Dict | None:
    return shells.default_shell(vm)


def _shell_invocation(vm: Vm, params: Dict) -> Dict:
    command = params.get("command")
    text = "{command}" if command is None else display(command)
    return shells.invocation(vm, params, "process.shell_invocation", text)


def _render(vm: Vm, params: Dict) -> str:
    from harnpy.builtins.language.text.templates import render

    return render(vm, display(required(params, "path")), params.get("bindings"))


def _ask(vm: Vm, params: Dict) -> str:
    vm.write(display(required(params, "question")))
    return (read_in_time(vm, vm.world.streams.read_line) or "").rstrip(WHITESPACE)


def _task(vm: Vm, params: Dict) -> str:
    return vm.unguarded.environment.get("HARN_TASK") or ""


def _set_result(vm: Vm, params: Dict) -> None:
    """Only an embedder does anything with it."""


def _project_root(vm: Vm, params: Dict) -> str:
    return vm.unguarded.environment.get("HARN_PROJECT_ROOT") or vm.world.files.cwd()


def _cwd(vm: Vm, params: Dict) -> str:
    return workplace_of(vm).directory()


OPERATIONS: Mapping[str, Callable[[Vm, Dict], Any]] = {
    EXEC: _exec,
    "process.list_shells": _list_shells,
    "process.get_default_shell": _default_shell,
    "process.set_default_shell": shells.set_default_shell,
    "process.shell_invocation": _shell_invocation,
    "template.render": _render,
    "interaction.ask": _ask,
    "runtime.task": _task,
    "runtime.set_result": _set_result,
    "workspace.project_root": _project_root,
    "workspace.cwd": _cwd,
}

CAPABILITIES = {
    "process": "Run commands.",
    "template": "Render prompt templates.",
    "interaction": "Ask the person at the terminal.",
}

#: What the manifest lists, by capability; the other operations are for the runtime itself.
DESCRIPTIONS = {
    "process": {
        "exec": "Run a command and answer its output and status.",
        "list_shells": "The shells of this machine.",
        "get_default_shell": "The shell that commands go to.",
        "set_default_shell": "Choose the shell that commands go to.",
        "shell_invocation": "How a shell is started for a command.",
    },
    "template": {"render": "Render a template file with bindings."},
    "interaction": {"ask": "Ask a question and read one line."},
}
