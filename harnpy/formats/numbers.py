"""Numbers as people write them: rounded to decimal places, with separators, by a format specification.

A float counts as the decimal number that it is shown as: 2.675 rounds to 2.68, though the nearest binary
number lies below. Halves go away from zero. Spec: 04 §4.2, §10.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from harnpy.faults import MisuseError

if TYPE_CHECKING:
    from decimal import Decimal

#: Decimal places at most: more than any float has.
MOST_PLACES = 400
#: Characters of a field at most.
_WIDEST = 10_000

_SPEC = re.compile(
    r"(?:(?P<fill>.)?(?P<align>[<>^]))?(?P<sign>[+ -])?(?P<zero>0)?(?P<width>\d{1,6})?(?P<comma>[,_])?"
    r"(?:\.(?P<places>\d{1,4}))?(?P<kind>[fdse%xbo])?",
    re.DOTALL,
)


def rounded(number: float, places: int) -> float:
    """Return the number rounded to so many decimal places; fewer than none are tens, hundreds, …

    An int stays one.
    """
    if type(number) is int:
        return number if places >= 0 else int(_quantized(_exact(number), places))
    return float(_quantized(_exact(number), places)) if math.isfinite(number) else number


def decimal_text(number: float, places: int | None, thousands: str = "", point: str = ".") -> str:
    """Return the number with so many decimal places (None: as many as it has), its thousands separated."""
    return _written(_exact(number), places, thousands, point) if math.isfinite(number) else str(number)


def _written(exact: Decimal, places: int | None, thousands: str, point: str = ".") -> str:
    if places is not None:
        exact = _quantized(exact, places)
    whole, _, rest = f"{exact:,f}".partition(".")
    if places is None and not rest.strip("0"):
        rest = ""
    if not whole.strip("-,0") and not rest.strip("0"):
        whole = whole.removeprefix("-")  # no negative zero
    return whole.replace(",", thousands) + (point + rest if rest else "")


def _exact(number: float) -> Decimal:
    from decimal import Decimal

    return Decimal(repr(number))


def _quantized(exact: Decimal, places: int) -> Decimal:
    from decimal import ROUND_HALF_UP, Context, Decimal

    context = Context(prec=2 * MOST_PLACES, rounding=ROUND_HALF_UP)
    return exact.quantize(Decimal((0, (1,), -places)), context=context)


class Spec(NamedTuple):
    """A format specification, as Python has them: ``[[fill]align][sign][0][width][,_][.places][kind]``."""

    fill: str
    align: str
    sign: str
    width: int
    comma: str
    places: int | None
    kind: str

    def text(self, value: object, shown: str) -> str:
        """Return a value by this specification; ``shown`` is its display."""
        is_number = type(value) is int or type(value) is float
        if self.kind in "fde%xbo" and self.kind and not is_number:
            raise MisuseError(f"format: `{self.kind}` is for numbers, got {shown[:40]!r}")
        body = self._number(value) if is_number and self.kind != "s" else self._cut(shown)  # type: ignore[arg-type]
        align = self.align or (">" if is_number else "<")
        if self.fill == "0" and not self.align and is_number and len(body) < self.width:
            sign = body[0] if body[:1] in "+- " else ""
            return sign + body[len(sign) :].rjust(self.width - len(sign), "0")
        missing = max(0, self.width - len(body))
        left = {"<": 0, ">": missing, "^": missing // 2}[align]
        return self.fill * left + body + self.fill * (missing - left)

    def _cut(self, shown: str) -> str:
        return shown if self.places is None else shown[: self.places]

    def _number(self, number: float) -> str:
        text = self._unsigned(abs(number))
        negative = number < 0 and bool(text.strip("0.,_%"))
        return ("-" if negative else "" if self.sign == "-" else self.sign) + text

    def _unsigned(self, number: float) -> str:
        kind = self.kind
        if kind in ("d", "x", "b", "o"):
            if type(number) is not int:
                raise MisuseError(f"format: `{kind}` is for ints, got {number!r}")
            return f"{number:{self.comma if kind == 'd' or self.comma == '_' else ''}{kind}}"
        places = 6 if self.places is None and kind else self.places
        if kind == "e":
            return f"{_exact(number):.{places}e}" if math.isfinite(number) else str(number)
        if not math.isfinite(number):
            return f"{number}{kind if kind == '%' else ''}"
        exact = _exact(number) * 100 if kind == "%" else _exact(number)
        return _written(exact, places, self.comma) + (kind if kind == "%" else "")


def spec_of(text: str) -> Spec | None:
    """Return the specification that a text is; None if it is none."""
    match = _SPEC.fullmatch(text)
    if match is None or not text:
        return None
    width = int(match["width"] or 0)
    places = None if match["places"] is None else int(match["places"])
    if width > _WIDEST or (places or 0) > MOST_PLACES:
        return None
    fill = match["fill"] or ("0" if match["zero"] and not match["align"] else " ")
    return Spec(
        fill,
        match["align"] or "",
        match["sign"] or "-",
        width,
        match["comma"] or "",
        places,
        match["kind"] or "",
    )
