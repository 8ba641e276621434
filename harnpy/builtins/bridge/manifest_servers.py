"""The MCP servers that a manifest declares: known before a program starts, eager ones connected.

Spec: 07 §15.1, 09 §12.
"""

from __future__ import annotations

from harnpy.builtins.bridge.live_mcp import servers_of
from harnpy.faults import Fault, MisuseError
from harnpy.mcp.client import Client
from harnpy.mcp.servers import read_declared
from harnpy.project import ManifestError
from harnpy.reading.dicts import read_toml
from harnpy.vm.errors import VmError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.mcp.servers import Declared
    from harnpy.vm.vm import Vm

#: The global dict of the servers that are connected before a program starts.
GLOBAL = "mcp"

_LEAD = "failed to read MCP servers"


def bind_servers(vm: Vm, path: str, text: str) -> None:
    """Declare the servers of the manifest at ``path`` whenever a program starts; ``text`` is what it holds.

    Raises `ManifestError`.
    """
    declared = _declared(path, text)
    if not declared:
        return
    clients: dict[str, Client] = {}
    if not all(each.lazy for each in declared):
        vm.set_global(GLOBAL, clients)
    vm.on_start.append(lambda: _start(vm, declared, clients))


def _declared(path: str, text: str) -> list[Declared]:
    try:
        tables = read_toml(text).get("mcp")
    except ValueError as error:
        raise ManifestError(f"{_LEAD}: {error}", path) from None
    if tables is None:
        return []
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ManifestError(
            f"{_LEAD}: `mcp` must be an array of tables", path, "write each server as [[mcp]]"
        )
    try:
        declared = [
            read_declared({key.replace("-", "_"): value for key, value in table.items()}) for table in tables
        ]
    except MisuseError as error:
        raise ManifestError(f"{_LEAD}: {error}", path) from None
    names = [each.spec.name for each in declared]
    for number, name in enumerate(names):
        if not name:
            raise ManifestError(f"{_LEAD}: [[mcp]] number {number + 1} has no `name`", path)
        if name in names[:number]:
            raise ManifestError(f"{_LEAD}: two servers are called '{name}'", path, "rename one of them")
    return declared


def _start(vm: Vm, declared: Sequence[Declared], clients: dict[str, Client]) -> None:
    servers, tell = servers_of(vm), vm.unguarded.streams.write_err
    servers.declare(declared)
    clients.clear()
    outcomes = vm.tasks.await_coroutine(servers.connect_eager())
    for each in declared:
        name = each.spec.name
        outcome = outcomes.get(name)
        if outcome is None:
            tell(f"[harn] mcp: deferred '{name}' (lazy, boots on first use)\n")
        elif isinstance(outcome, Client):
            clients[name] = outcome
            tell(f"[harn] mcp: connected to '{name}'\n")
        elif isinstance(outcome, Fault | VmError):
            tell(f"warning: mcp: failed to connect to '{name}': {outcome}\n")
        else:
            raise outcome
