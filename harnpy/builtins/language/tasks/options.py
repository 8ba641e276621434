"""Options of the builtins that tasks share things by. Spec: 07 §1.2 "Unknown option keys"."""

from __future__ import annotations

from harnpy.vm.errors import Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


def refuse_unknown(vm: Vm, function: str, given: dict[str, Value], known: Iterable[str]) -> None:
    """Throw for the first key of ``given``, in key order, that is not ``known``."""
    names = sorted(known)
    unknown = next((key for key in sorted(given) if key not in names), None)
    if unknown is not None:
        from harnpy.reading.option_tables import expected

        raise Thrown(f"{function}: unknown option key '{unknown}' ({expected(unknown, names)})")
