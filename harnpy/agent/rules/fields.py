"""Reading policies: what isn't understood is an error, as it would restrict nothing. Spec: 07 §8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.reading.option_tables import expected
from harnpy.reading.strict import errors_after, read_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harnpy.reading.dicts import Dict


def policy_fields(
    given: Any, types: Mapping[str, str], name: str, *, path: str = "", required: tuple[str, ...] = ()
) -> Dict:
    """Return the fields of a policy, or of the part of it at ``path``; ``name`` is that of the policy.

    Raises `MisuseError` for an unknown field and for one of another type.
    """
    refuse_unknown(given, types, f"{name}.{path}" if path else name)
    with errors_after(f"{name} parse error: "):
        return read_fields(given, types, path, required)


def refuse_unknown(given: Any, known: Iterable[str], name: str) -> None:
    """Raise `MisuseError` for a key of a dict that isn't ``known``."""
    if isinstance(given, dict):
        unknown = next((key for key in given if key not in known), None)
        if unknown is not None:
            raise MisuseError(f"unknown option key '{name}.{unknown}' ({expected(unknown, tuple(known))})")
