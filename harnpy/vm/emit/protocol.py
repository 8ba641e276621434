"""Every name that generated text may use, and where the value behind it comes from.

Besides the helpers these are the names of builtins, methods and host values, made by the functions below,
and what each unit gets in any case: ``vm``, its ``UNIT``, ``getrefcount``, ``implement`` and ``call_method``,
``m`` (the table of variables that functions share), and what its imports need.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

_PLACES = {
    "values.objects": "Builtin Duration EnumValue Fn Generator Stream Struct display",
    "errors": "FAILURES Interrupted Thrown",
    "declare.arguments": "reject",
    "run.backtrace": "caught",
    "run.parameter_types": "check_parameter",
    "values.in_place": "SOLE read_path store_path",
    "values.operators": (
        "add sub mul div mod power neg wrap eq ne lt gt le ge in_ index slice_ get_prop get_prop_optional "
        "get_path set_prop set_index range_to spread_list spread_dict destructure_dict destructure_list "
        "iterate_for"
    ),
    "run.calls": (
        "MISSING UNSET again alive as_result bad_propagation construct constructor err field "
        "immutable make_struct overflow payload redeclared retry_count run_defers unsupported"
    ),
    "vm.calls": (
        "TAIL bouncing call call_builtin call_dynamic call_from_frames call_late call_named fill generator "
        "pipe read_dynamic read_late shell tail tail_named tail_pipe undefined_builtin undefined_variable"
    ),
    "run.tasks.spawn": "await_task spawn",
    "run.tasks.cancel": "cancel_gracefully cancel_task is_cancelled",
    "run.tasks.deadline": "deadline_begin deadline_end pause_deadlines resume_deadlines",
    "run.tasks.parallel": "parallel",
    "run.tasks.channels": "select select_limit",
    "vm": "poll signal",
}
#: Each helper by where it is: a module of `harnpy.vm`, the Vm (``vm``) or an attribute of the Vm. Those of
#: `run.tasks` are bound to the scheduler, which is their first parameter.
_HELPERS = {name: place for place, names in _PLACES.items() for name in names.split()}


def helpers_used(code: CodeType) -> list[tuple[str, str]]:
    """The helpers that ``code``, or a function in it, refers to, each with its place."""
    found: set[str] = set()
    codes = [code]
    while codes:
        top = codes.pop()
        found.update(top.co_names)
        codes += [constant for constant in top.co_consts if type(constant) is type(code)]
    return [(name, _HELPERS[name]) for name in sorted(found & _HELPERS.keys())]


def builtin_function(name: str) -> str:
    """The Python function behind a builtin: called as ``(vm, *args)``, arguments converted."""
    return f"b_{name.replace('.', '__')}_"


def builtin_value(name: str) -> str:
    """The builtin as a first-class value."""
    return f"v_{name.replace('.', '__')}_"


def global_value(name: str) -> str:
    """A value that the host gives programs."""
    return f"g_{name}_"


def method_table(name: str, count: int) -> str:
    """The methods called ``name`` that take ``count`` arguments, by receiver type."""
    return f"m_{name if name.isascii() else name.encode().hex()}_{count}_"
