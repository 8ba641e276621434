"""The options of what tasks share, wait for and are supervised by. Spec: 05 §4, §5, §7, §17, 07 §1.2."""

from __future__ import annotations

from harnpy.faults import OptionError
from harnpy.reading.option_tables import OptionTable
from harnpy.vm.errors import Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.vm.values.objects import Value

SCOPE_ID = OptionTable("tenant_id: string — the tenant of the scope tenant")

_OPEN = OptionTable("""
    key, name: string — what it is found by
    scope: string = task_group — where it is found
    tenant_id: string — the tenant of the scope tenant
""")
_SHARED = _OPEN + OptionTable("initial: any — what is in it at first")

TIMEOUT = OptionTable("timeout_ms, max_wait_ms: int — how long to wait")

_RESTART = OptionTable("""
    mode, policy: string = on_failure — never, on_failure or always
    max_restarts, max: int — how often within the window; by default any number of times
    window_ms, window: duration | int = 60000 — that window
    backoff_ms, backoff, initial_backoff_ms: duration | int = 0 — the first pause
    max_backoff_ms, max_backoff: duration | int = 30000 — the longest one
    factor, backoff_factor: float = 2.0 — how much longer each pause is
    jitter_ms, jitter: duration | int — how much a pause may vary
    circuit_open_ms, circuit_open: duration | int — how long to rest when the cap is reached
""")

_SUPERVISOR = OptionTable(
    """
    id: string — by default numbered
    name: string — what reports call it
    strategy: string = one_for_one — who is restarted when a child fails
    shutdown_ms, drain_ms: duration | int = 5000 — how long children may take to stop
    restart: string | dict — the policy of children without one
    children: list — what it runs
    """,
    {
        "restart": _RESTART,
        "children": OptionTable(
            """
            name: string — by default child_0 and so on
            kind: string = task — what reports call it
            task, handler: closure — what it does
            restart: string | dict — when it is run again
            active_lease, lease: string — what it holds
            """,
            {"restart": _RESTART},
        ),
    },
)

TABLES: Mapping[str, OptionTable] = {
    "shared_scope_id": SCOPE_ID,
    "shared_cell": _SHARED,
    "shared_map": _SHARED,
    "mailbox_open": _OPEN + OptionTable("capacity: int = 256 — how many messages may wait"),
    "supervisor_start": _SUPERVISOR,
}


def check_options(function: str, given: dict[str, Value], table: OptionTable | None = None) -> None:
    """Throw for an option that ``function`` doesn't take; ``table`` is by default that of its name."""
    try:
        (table or TABLES[function]).check(function, given)
    except OptionError as error:
        raise Thrown(error.message) from None
