"""How long a wait lasts at most, as programs say it. Spec: 05 §5, §7.2."""

from __future__ import annotations

from harnpy.builtins.language.tasks.option_tables import TIMEOUT, check_options
from harnpy.vm.values.objects import Duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value


def seconds_of(function: str, timeout: Value) -> float | None:
    """Seconds of an int of ms, a duration, or a dict with `timeout_ms`; None, no limit, for anything else.

    Less than nothing counts as 0. Throws, in the name of ``function``, for other keys of a dict.
    """
    if type(timeout) is dict:
        check_options(function, timeout, TIMEOUT)
        timeout = next((timeout[key] for key in TIMEOUT.own if key in timeout), None)
    ms = timeout.ms if type(timeout) is Duration else timeout
    return max(ms, 0) / 1000 if type(ms) is int else None
