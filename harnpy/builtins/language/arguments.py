"""Reading the arguments of the language's builtins: exact types, options, timeouts.

Spec: 04 §15, §16, §22, 05 §4, §5, §7, §17, 07 §1.2.
"""

from __future__ import annotations

from harnpy.faults import OptionError
from harnpy.formats.options import OptionTable
from harnpy.formats.suggestions import nearest_at_run_time
from harnpy.vm.declare import ABSENT
from harnpy.vm.errors import RuntimeFault, Thrown
from harnpy.vm.values import Duration, display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harnpy.vm.values import Value

# What builtins over bytes take: exact types, and options with known names.
#
# Spec: 04 §15, §16, §22.


_NAMES = {bytes: "bytes", str: "string", int: "int"}
#: Bytes between two looks.
PIECE = 1 << 16


def expect(name: str, value: Value, position: int, *types: type) -> None:
    """Raise RuntimeFault unless argument ``position`` (from 1) has one of the ``types``."""
    if value is ABSENT:
        raise RuntimeFault(f"{name}: missing argument {position}")
    if type(value) not in types:
        expected = " or ".join(_NAMES[each] for each in types)
        raise RuntimeFault(f"{name}: expected {expected} at argument {position}, got {type_name(value)}")


def data_of(value: Value) -> bytes:
    """Return bytes themselves, of any other value the UTF-8 of its text."""
    return value if type(value) is bytes else display(value).encode("utf-8", "surrogatepass")


def text_of(data: bytes) -> str:
    """Return the text of UTF-8; what is none becomes U+FFFD."""
    return data.decode("utf-8", "replace")


def options(name: str, given: Value, known: Sequence[str]) -> dict[str, Value]:
    """Return the options that are not nil. Raises RuntimeFault for an unknown one."""
    if given is None or given is ABSENT:
        return {}
    if type(given) is not dict:
        raise RuntimeFault(f"{name}: options must be a dict, got {type_name(given)}")
    for key in given:
        if key not in known:
            raise RuntimeFault(f"{name}: unknown option `{key}` ({expected(key, known)})")
    return {key: value for key, value in given.items() if value is not None}


def expected(key: str, known: Sequence[str]) -> str:
    """Return what an error about an unknown key has in brackets: the nearest known one, and all of them."""
    near = nearest_at_run_time(key, known)
    hint = f"did you mean `{near}`? " if near else ""
    return f"{hint}expected one of: {', '.join(known)}"


def option(name: str, given: dict[str, Value], key: str, kind: type, default: Value) -> Value:
    """Return an option that has the type ``kind``. Raises RuntimeFault for another."""
    value = given.get(key, default)
    if value is not default and type(value) is not kind:
        raise RuntimeFault(f"{name}: option `{key}` must be {_ARTICLES[kind]}, got {type_name(value)}")
    return value


_ARTICLES = {str: "a string", int: "an int", bool: "a bool"}


# The options of what tasks share, wait for and are supervised by. Spec: 05 §4, §5, §7, §17, 07 §1.2.


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


# How long a wait lasts at most, as programs say it. Spec: 05 §5, §7.2.


def seconds_of(function: str, timeout: Value) -> float | None:
    """Seconds of an int of ms, a duration, or a dict with `timeout_ms`; None, no limit, for anything else.

    Less than nothing counts as 0. Throws, in the name of ``function``, for other keys of a dict.
    """
    if type(timeout) is dict:
        check_options(function, timeout, TIMEOUT)
        timeout = next((timeout[key] for key in TIMEOUT.own if key in timeout), None)
    ms = timeout.ms if type(timeout) is Duration else timeout
    return max(ms, 0) / 1000 if type(ms) is int else None
