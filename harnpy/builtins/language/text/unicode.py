"""Normal forms, grapheme clusters, and padding that counts them. Spec: 04 §4.2."""

from __future__ import annotations

import unicodedata

import regex  # type: ignore[import-untyped]

from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import RuntimeFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.vm import Vm

_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_GRAPHEME = regex.compile(r"\X")


def _graphemes(s: str) -> list[str]:
    clusters: list[str] = _GRAPHEME.findall(s)
    return clusters


@builtin('unicode_normalize(s: string, form: string = "NFC") -> string', family="strings")
def unicode_normalize(vm: Vm, s: str, form: str) -> str:
    """`s` in the normal form `NFC`, `NFD`, `NFKC` or `NFKD` (any case).

    Example:
        len(unicode_normalize("é", "NFD"))  // 2
    """
    if form.upper() not in _FORMS:
        raise RuntimeFault("unicode_normalize: form must be NFC, NFD, NFKC, or NFKD")
    return unicodedata.normalize(form.upper(), s)  # type: ignore[arg-type]


@builtin("unicode_graphemes(s: string) -> list", family="strings")
def unicode_graphemes(vm: Vm, s: str) -> list[str]:
    """The characters as a reader sees them: extended grapheme clusters.

    Example:
        unicode_graphemes("né👍🏽")  // ["n", "é", "👍🏽"]
    """
    return _graphemes(s)


@builtin(
    'str_pad(s: string, width: int = 0, fill: string = " ", side: string = "right") -> string',
    family="strings",
)
def str_pad(vm: Vm, s: str, width: int, fill: str, side: str) -> str:
    """`s` padded with the first grapheme of `fill` to `width` graphemes, on `side`.

    `side` is `left`, `right` or `both`; of an odd number of fills one more goes right.

    Example:
        [str_pad("7", 3, "0", "left"), str_pad("ab", 4) + "|"]  // ["007", "ab  |"]
    """
    missing = width - len(_graphemes(s))
    if missing <= 0:
        return s
    if side not in ("left", "right", "both"):
        raise RuntimeFault("str_pad: side must be left, right, or both")
    unit = _graphemes(fill or " ")[0]
    left = {"left": missing, "right": 0, "both": missing // 2}[side]
    return unit * left + s + unit * (missing - left)
