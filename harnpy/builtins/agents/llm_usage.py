"""Costs and use of model calls: prices, budgets, rate limits, traces.

Spec: 05 §10, 07 §1.12, §1.13, §9.4.
"""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.errors import category_of
from harnpy.builtins.live_models import models_of
from harnpy.builtins.options import check_options
from harnpy.vm.declare import builtin
from harnpy.vm.errors import CategorizedFault, Interrupted, Thrown, VmError
from harnpy.vm.run.backtrace import caught
from harnpy.vm.values import Builtin, Fn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm


@builtin(
    "llm_cost(model: string, input_tokens: int = 0, output_tokens: int = 0) -> float | nil", family="llm"
)
def llm_cost(vm: Vm, model: str, input_tokens: int, output_tokens: int) -> float | None:
    """Return the price of a call in USD, or nil if the model's price is unknown. Spec: 07 §1.12.

    Example: llm_cost("claude-sonnet-4-5", 100000, 0)  // 0.3
    """
    price = models_of(vm).config.known_models.price(model)
    return None if price is None else price.cost(input_tokens, output_tokens)


@builtin("llm_session_cost() -> dict", family="llm")
def llm_session_cost(vm: Vm) -> Dict:
    """Return the cost of the program's calls: `{total_cost, unpriced_calls, input_tokens, …, call_count}`.

    `total_cost` leaves out the `unpriced_calls`, whose models have no known price. The tokens and
    `call_count` are zero unless the host traces model calls (`harnpy run --trace`).

    Example: llm_session_cost().total_cost >= 0  // true
    """
    account = models_of(vm).account
    usage = account.usage()
    counters = {key: usage[key] for key in ("input_tokens", "output_tokens", "call_count")}
    trace = account.trace
    return {"total_cost": trace.cost, "unpriced_calls": trace.unpriced, **counters}


@builtin("llm_budget(max_cost: float) -> nil", family="llm")
def llm_budget(vm: Vm, max_cost: Value) -> None:
    """Limit the cost of all the program's calls to `max_cost` USD; a call beyond that throws.

    Example:
        llm_budget(0.5)
        llm_budget_remaining() <= 0.5  // true
    """
    if type(max_cost) is not int and type(max_cost) is not float:
        raise Thrown("llm_budget: requires a numeric argument")
    models_of(vm).account.limit = float(max_cost)


@builtin("llm_budget_remaining() -> float | nil", family="llm")
def llm_budget_remaining(vm: Vm) -> float | None:
    """Return the USD left of `llm_budget`, or nil if no budget is set.

    Example:
        llm_budget(2.0)
        llm_budget_remaining() <= 2.0  // true
    """
    return models_of(vm).account.remaining


@builtin("llm_info() -> dict", family="tracing")
def llm_info(vm: Vm) -> Dict:
    """Return the defaults of model calls: `{provider, model, api_key_set}`; `model` is "" if unset.

    Example: type_of(llm_info().provider)  // "string"
    """
    return models_of(vm).info()


@builtin("llm_usage() -> dict", family="tracing")
def llm_usage(vm: Vm) -> Dict:
    """Return the calls' totals: `{input_tokens, output_tokens, call_count, total_calls, total_duration_ms}`.

    All zero unless the host traces model calls (`harnpy run --trace`).

    Example: llm_usage().call_count >= 0  // true
    """
    return models_of(vm).account.usage()


# Requests per minute. Spec: 07 §1.13, 05 §10.


@builtin("llm_rate_limit(provider?: string, options?: dict) -> int | bool | nil", family="llm_config")
def llm_rate_limit(vm: Vm, provider: str | None, options: Value) -> int | bool | None:
    """Return a provider's requests per minute, nil if unlimited; `{rpm: n}` sets them (0: no limit).

    A model call that finds the minute full waits. Spec: 07 §1.13.

    Example:
        llm_rate_limit("mock", {rpm: 60})
        llm_rate_limit("mock")  // 60
    """
    name = _provider("llm_rate_limit", provider)
    limits = models_of(vm).rates
    if options is None:
        return limits.rpm(name)
    check_options(vm, "llm_rate_limit", options)
    rpm = options.get("rpm") if type(options) is dict else None
    if type(rpm) is not int:
        raise Thrown("llm_rate_limit: options must include 'rpm' (integer)")
    limits.set(name, rpm)
    return True


@builtin("with_rate_limit(provider?: string, fn: callable, options?: dict) -> any", family="llm")
def with_rate_limit(vm: Vm, provider: str | None, fn: Value, options: Value) -> Value:
    """Call `fn()` within a provider's requests per minute, and retry transient errors.

    `options`: `max_retries` (5) and `backoff_ms` (1000), which doubles up to 30 s. Spec: 07 §1.13.

    Example: with_rate_limit("mock", { -> "done" })  // "done"
    """
    name = _provider("with_rate_limit", provider)
    if type(fn) is not Fn and type(fn) is not Builtin:
        raise Thrown("with_rate_limit: second argument must be a closure")
    check_options(vm, "with_rate_limit", options)
    given = models_of(vm).options(options)
    retries, backoff_ms = given.count("max_retries", 5), max(given.count("backoff_ms", 1000), 1)
    return models_of(vm).rates.run(name, partial(vm.call, fn), _category, retries, backoff_ms)


def _provider(caller: str, name: str | None) -> str:
    if not name or not name.strip():
        raise Thrown(f"{caller}: provider name is required")
    return name


def _category(error: Exception) -> str | None:
    """Return the category of a function's error; None for one that must end the program."""
    if isinstance(error, Interrupted) or not isinstance(error, VmError):
        return None
    return error.category if isinstance(error, CategorizedFault) else category_of(caught(error))


# What the calls and loops of the program did so far. Spec: 07 §9.4.


@builtin("agent_trace() -> list", family="llm")
def agent_trace(vm: Vm) -> list[Dict]:
    """Return every model call, retry, tool run and loop of the program so far, as dicts with a `type`.

    Example:
        agent_loop("Hi", nil, {provider: "mock"})
        agent_trace().map({ event -> event.type }).contains("llm_call")  // true
    """
    return list(models_of(vm).trace.events)


@builtin("agent_trace_summary() -> dict", family="llm")
def agent_trace_summary(vm: Vm) -> Dict:
    """Return the totals of the events of `agent_trace`; `status` and `iterations` are the last loop's.

    Example:
        agent_loop("Hi", nil, {provider: "mock"})
        agent_trace_summary().llm_calls > 0  // true
    """
    return models_of(vm).trace.summary()
