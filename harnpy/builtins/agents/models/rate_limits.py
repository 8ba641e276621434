"""Requests per minute. Spec: 07 §1.13, 05 §10."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_models import models_of
from harnpy.builtins.bridge.option_tables import check_options
from harnpy.builtins.language.data.errors import category_of
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import CategorizedFault, Interrupted, Thrown, VmError
from harnpy.vm.run.backtrace import caught
from harnpy.vm.values.objects import Builtin, Fn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("llm_rate_limit(provider?: string, options?: dict) -> int | bool | nil", family="llm_config")
def llm_rate_limit(vm: Vm, provider: str | None, options: Value) -> int | bool | None:
    """A provider's requests per minute, nil for any number; with `{rpm: n}` set them (0: no limit).

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
    """Call `fn()` within a provider's requests per minute, and again after an error that may pass.

    `options`: `max_retries` (5) and `backoff_ms` (1000), which doubles up to 30 s. Spec: 07 §1.13.

    Example:
        with_rate_limit("mock", { -> "done" })  // "done"
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
    """The category of a function's error; None for one that must end the program."""
    if isinstance(error, Interrupted) or not isinstance(error, VmError):
        return None
    return error.category if isinstance(error, CategorizedFault) else category_of(caught(error))
