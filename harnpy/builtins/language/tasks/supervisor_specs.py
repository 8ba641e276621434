"""Reading what `supervisor_start` is given. Spec: 05 §17."""

from __future__ import annotations

from harnpy.builtins.language.tasks.option_tables import check_options
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.run.tasks.restarts import MODES, RestartPolicy
from harnpy.vm.run.tasks.supervisors import STRATEGIES, ChildSpec
from harnpy.vm.values.objects import Duration, display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

    Fields = dict[str, Value]

_START = "supervisor_start"
#: The names of each field of a policy, the proper one first.
_POLICY = {
    "mode": ("mode", "policy"),
    "most": ("max_restarts", "max"),
    "window": ("window_ms", "window"),
    "backoff": ("backoff_ms", "backoff", "initial_backoff_ms"),
    "longest_backoff": ("max_backoff_ms", "max_backoff"),
    "factor": ("factor", "backoff_factor"),
    "jitter": ("jitter_ms", "jitter"),
    "circuit_open": ("circuit_open_ms", "circuit_open"),
}
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_SHUTDOWN_MS = 5000


class Spec:
    """A supervisor as it was asked for. ``id`` is None when it is to be numbered."""

    def __init__(self, vm: Vm, given: Fields) -> None:
        check_options(_START, given)
        children = given.get("children")
        if type(children) is not list:
            raise RuntimeFault(f"{_START}: children must be a list")
        if not children:
            raise RuntimeFault(f"{_START}: children must include at least one child")
        self.id = _text(given.get("id"))
        self.name = _text(given.get("name"))
        self.strategy = _strategy(given.get("strategy"))
        drain = _first(given, ("shutdown_ms", "drain_ms"))
        self.drain_ms = _SHUTDOWN_MS if drain is None else milliseconds("shutdown_ms", drain)
        default = given.get("restart")
        self.children = [_child(vm, i, child, default) for i, child in enumerate(children)]


def milliseconds(name: str, given: Value, function: str = _START) -> float:
    """Return a time as ms: an int or float of them, a duration, or a text such as "10ms"."""
    if type(given) is Duration:
        return max(given.ms, 0)
    if type(given) in (int, float):
        return max(given, 0)  # type: ignore[no-any-return]
    if type(given) is str:
        number, unit = given.rstrip("hms"), given.lstrip("0123456789")
        if number.isdecimal() and unit in _UNITS:
            return int(number) * _UNITS[unit]
    raise RuntimeFault(f'{_START}: {name} must be a time such as 10, 10ms or "10ms", got {display(given)}')


def _child(vm: Vm, index: int, given: Value, default: Value) -> ChildSpec:
    fields = given if type(given) is dict else {}
    name = _text(fields.get("name")) or f"child_{index}"
    body = vm.callback(_first(fields, ("task", "handler")), 1)
    if body is None:
        raise RuntimeFault(f"{_START}: child '{name}' requires a task closure")
    policy = fields.get("restart")
    lease = _first(fields, ("active_lease", "lease"))
    return ChildSpec(
        name,
        _text(fields.get("kind")) or "task",
        body,
        _policy(vm, default if policy is None else policy),
        None if lease is None else display(lease),
    )


def _policy(vm: Vm, given: Value) -> RestartPolicy:
    if given is None:
        return RestartPolicy()
    if type(given) is str:
        return RestartPolicy(_mode(given))
    if type(given) is not dict:
        raise RuntimeFault(f"{_START}: restart policy must be a string or dict, got {type_name(given)}")
    found = {field: _first(given, names) for field, names in _POLICY.items()}
    read = {field: _read(field, value) for field, value in found.items() if value is not None}
    return RestartPolicy(**read)


def _read(field: str, value: Value) -> Value:
    name = _POLICY[field][0]
    if field == "mode":
        return _mode(display(value))
    if field == "factor":
        if type(value) not in (int, float):
            raise RuntimeFault(f"{_START}: {name} must be a number, got {type_name(value)}")
        return float(value)
    if field == "most":
        if type(value) is not int:
            raise RuntimeFault(f"{_START}: {name} must be an int, got {type_name(value)}")
        return max(value, 0)
    ms = milliseconds(name, value)
    return int(ms) if field == "jitter" else ms


def _mode(given: str) -> str:
    plain = given.lower().replace("-", "_").replace(" ", "_")
    if plain not in MODES:
        raise RuntimeFault(f"{_START}: unknown restart mode '{given}'")
    return plain


def _strategy(given: Value) -> str:
    if given is None:
        return STRATEGIES[0]
    plain = display(given).replace("_", "")
    if plain == "escalate":
        return "escalate_to_parent"
    for strategy in STRATEGIES:
        if strategy.replace("_", "") == plain:
            return strategy
    raise RuntimeFault(f"{_START}: unknown strategy '{display(given)}'")


def _first(given: Fields, names: tuple[str, ...]) -> Value:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _text(given: Value) -> str | None:
    return None if given is None or given == "" else display(given)
