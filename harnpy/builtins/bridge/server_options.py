"""Options of the builtins for servers: a dict with known keys, or nothing. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.builtins.bridge.option_tables import check_options
from harnpy.net.server.faults import ServerFault
from harnpy.text.display import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


def server_options(vm: Vm, builtin: str, options: Value) -> dict[str, Any]:
    """Return the options of ``builtin``. Raises ServerFault for no dict, OptionError for an unknown one."""
    if options is None:
        return {}
    if type(options) is not dict:
        raise ServerFault(f"options must be a dict, got {type_name(options)}")
    check_options(vm, builtin, options)
    return options
