"""The shells of this machine, and how each is started for a command. Spec: 02 §27."""

from __future__ import annotations

import os.path
import sys

from harnpy.vm.errors import RuntimeFault, Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


_FALLBACKS = ("zsh", "bash", "sh")


class Chosen:
    """The id of the shell that the program chose as its default."""

    id: str | None = None


def shells(vm: Vm) -> dict[str, Dict]:
    """Descriptors by id, best first; of several paths with one id the first is kept."""
    found: dict[str, Dict] = {}
    for source, path in _candidates(vm):
        if path and path.startswith("/"):
            shell = descriptor(path, source, vm.unguarded.files.exists(path))
            found.setdefault(shell["id"], shell)
    return found


def _candidates(vm: Vm) -> Iterator[tuple[str, str | None]]:
    yield "configured", vm.unguarded.environment.get("HARN_DEFAULT_SHELL")
    yield "env", vm.unguarded.environment.get("SHELL")
    yield "login", vm.unguarded.environment.login_shell()
    if vm.unguarded.files.exists("/etc/shells"):
        for line in vm.unguarded.files.read_text("/etc/shells").splitlines():
            yield "etc_shells", line.strip()
    for directory in ("/bin", "/usr/bin"):
        for name in _FALLBACKS:
            yield "fallback", f"{directory}/{name}"


def descriptor(path: str, source: str, available: bool) -> Dict:
    name = os.path.basename(path).lower()
    return {
        "id": name,
        "label": name,
        "path": path,
        "platform": "darwin" if sys.platform == "darwin" else "linux",
        "available": available,
        "supports_login": True,
        "supports_interactive": True,
        "default_args": ["-c"],
        "login_args": ["-l", "-c"],
        "source": source,
    }


def default_shell(vm: Vm) -> Dict | None:
    """The chosen shell if it exists, else the first that does."""
    found = shells(vm)
    chosen = found.get(vm.state(Chosen).id or "")
    if chosen and chosen["available"]:
        return chosen
    return next((shell for shell in found.values() if shell["available"]), None)


def set_default_shell(vm: Vm, params: Dict) -> Dict:
    id = params.get("shell_id") or params.get("id")
    if not id:
        raise RuntimeFault("process.set_default_shell missing shell_id")
    shell = shells(vm).get(id)
    if shell is None or not shell["available"]:
        raise RuntimeFault(f'process.set_default_shell: unknown or unavailable shell id "{id}"')
    vm.state(Chosen).id = id
    return shell


def invocation(vm: Vm, params: Dict, caller: str, command: str) -> Dict:
    """How the shell that ``params`` name is started for ``command``."""
    shell = _named(vm, params, caller)
    args = list(shell["login_args" if params.get("login") else "default_args"])
    if params.get("interactive"):
        args.insert(0, "-i")
    return {
        "program": shell["path"],
        "args": [*args, command],
        "command_arg_index": len(args),
        "shell": shell,
    }


def _named(vm: Vm, params: Dict, caller: str) -> Dict:
    given = params.get("shell")
    if given is None:
        id = params.get("shell_id")
        if not id:
            raise RuntimeFault(f"{caller}: shell mode requires `shell` or `shell_id`")
        return _known(vm, id, caller)
    path, id = (given.get("path"), given.get("id")) if type(given) is dict else (None, None)
    if path:
        shell = descriptor(path, "object", vm.world.sees(path))
        args = given.get("default_args")
        return {**shell, "default_args": args} if type(args) is list else shell
    if not id:
        raise RuntimeFault(f"{caller}: shell object requires `path` or `id`")
    return _known(vm, id, caller)


def _known(vm: Vm, id: Value, caller: str) -> Dict:
    shell = shells(vm).get(id) if type(id) is str else None
    if shell is None:
        raise RuntimeFault(f'{caller}: unknown shell id "{id}"')
    return shell


def required(params: Dict, key: str) -> Value:
    """A parameter that must be present and not empty."""
    value = params.get(key)
    if value is None or value == "":
        raise Thrown(f"host_call: missing required parameter '{key}'")
    return value
