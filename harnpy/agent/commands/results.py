"""What the output of a command tells: credentials, refusals, errors. Pure. Spec: 02 §28."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.commands import labels
from harnpy.agent.commands.risks import ALLOW, Scan
from harnpy.text.display import display

if TYPE_CHECKING:
    from collections.abc import Mapping

#: How much of each output is looked at, in characters.
_LOOKED_AT = 8192
MARK_UNSAFE = "mark_unsafe"
_SURE, _UNSURE = 0.82, 0.35

_SIGNS: Mapping[str, tuple[str, ...]] = {
    labels.CREDENTIAL_OUTPUT: labels.CREDENTIAL_WORDS,
    labels.ERROR_OUTPUT: ("fatal:", "error:"),
    labels.PERMISSION_BOUNDARY_HIT: ("permission denied", "operation not permitted"),
}


def scan_result(result: Any) -> Scan:
    """Return what the `stdout` and `stderr` of a result tell; one that is no dict tells nothing."""
    outputs = (result.get(key) for key in ("stdout", "stderr")) if isinstance(result, dict) else ()
    text = "\n".join("" if output is None else display(output)[:_LOOKED_AT] for output in outputs).lower()
    found = tuple(sorted(label for label, signs in _SIGNS.items() if any(sign in text for sign in signs)))
    action = MARK_UNSAFE if labels.CREDENTIAL_OUTPUT in found else ALLOW
    return Scan(action, found, _SURE if found else _UNSURE)
