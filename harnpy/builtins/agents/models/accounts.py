"""What model calls cost and use: prices, budgets, usage. Spec: 07 §1.12."""

from __future__ import annotations

from harnpy.builtins.bridge.live_models import models_of
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("llm_cost(model: string, input_tokens: int = 0, output_tokens: int = 0) -> float", family="llm")
def llm_cost(vm: Vm, model: str, input_tokens: int, output_tokens: int) -> float:
    """What a call would cost in USD; 0.0 for a model without a known price.

    Example:
        llm_cost("claude-sonnet-4-5", 1000000, 0)  // 3.0
    """
    return models_of(vm).config.known_models.price(model).cost(input_tokens, output_tokens)


@builtin("llm_session_cost() -> dict", family="llm")
def llm_session_cost(vm: Vm) -> Dict:
    """What the program's calls have cost so far: `{total_cost, input_tokens, output_tokens, call_count}`.

    The counters are zero unless the host traces model calls (`harnpy run --trace`).

    Example:
        llm_session_cost().total_cost >= 0  // true
    """
    account = models_of(vm).account
    usage = account.usage()
    counters = {key: usage[key] for key in ("input_tokens", "output_tokens", "call_count")}
    return {"total_cost": account.trace.cost, **counters}


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
    """What `llm_budget` leaves to spend, in USD; nil when no budget is set.

    Example:
        llm_budget(2.0)
        llm_budget_remaining() <= 2.0  // true
    """
    return models_of(vm).account.remaining


@builtin("llm_info() -> dict", family="tracing")
def llm_info(vm: Vm) -> Dict:
    """The defaults of model calls: `{provider, model, api_key_set}`; `model` is "" when unset.

    Example:
        type_of(llm_info().provider)  // "string"
    """
    return models_of(vm).info()


@builtin("llm_usage() -> dict", family="tracing")
def llm_usage(vm: Vm) -> Dict:
    """What the calls have used: `{input_tokens, output_tokens, call_count, total_calls, total_duration_ms}`.

    All zero unless the host traces model calls (`harnpy run --trace`).

    Example:
        llm_usage().call_count >= 0  // true
    """
    return models_of(vm).account.usage()
