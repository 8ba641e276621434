"""Errors that carry a category. Spec: 02 §19.8, 04 §24."""

from __future__ import annotations

from harnpy.builtins.bridge.classify import classify
from harnpy.llm.categories import CATEGORIES, GENERIC
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import Thrown
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin('throw_error(message: string, category: string = "generic") -> any', family="types")
def throw_error(vm: Vm, message: str, category: str) -> NoReturn:
    """Throw `{category, message}`; an unknown category becomes `generic`.

    Example:
        try { throw_error("no such user", "not_found") } catch (e) { e.category }  // "not_found"
    """
    raise Thrown({"category": category if category in CATEGORIES else GENERIC, "message": message})


@builtin("error_category(error: any) -> string", family="types")
def error_category(vm: Vm, error: Value) -> str:
    """The `category` of an error dict, or the one that an error text suggests; else `generic`.

    Example:
        error_category("HTTP 429: too many requests")  // "rate_limit"
    """
    return category_of(error)


@builtin("is_timeout(error: any) -> bool", family="types")
def is_timeout(vm: Vm, error: Value) -> bool:
    """Whether the error's category is `timeout`.

    Example:
        is_timeout({category: "timeout"})  // true
    """
    return category_of(error) == "timeout"


@builtin("is_rate_limited(error: any) -> bool", family="types")
def is_rate_limited(vm: Vm, error: Value) -> bool:
    """Whether the error's category is `rate_limit`.

    Example:
        is_rate_limited("HTTP 429: too many requests")  // true
    """
    return category_of(error) == "rate_limit"


def category_of(error: Value) -> str:
    """The category of an error as `catch` sees it."""
    if type(error) is str:
        return classify(error)
    return display(error["category"]) if type(error) is dict and "category" in error else GENERIC
