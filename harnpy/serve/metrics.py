"""`Metrics`: numbers about a server, as Prometheus reads them. Any thread may count. Spec: 11 §1.2."""

from __future__ import annotations

from bisect import bisect_left
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

#: The type of the page.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "harnpy_"
#: The upper bounds of the classes of a histogram, in seconds.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class _Family(NamedTuple):
    kind: str
    help: str
    labels: tuple[str, ...]


#: Every number that there is.
_FAMILIES = {
    "requests_total": _Family("counter", "Requests that were answered.", ("method", "route", "status")),
    "request_seconds": _Family("histogram", "Seconds until a response began.", ("route",)),
    "turns_total": _Family("counter", "Turns that ended here, by how they ended.", ("status",)),
    "tokens_total": _Family("counter", "Tokens of those turns.", ("kind",)),
    "cost_usd_total": _Family("counter", "What those turns cost, in USD.", ()),
    "watchers": _Family("gauge", "Readers of streams, and WebSockets.", ()),
    "dropped_total": _Family("counter", "Readers that were let go of because they didn't read.", ()),
}

Labels = tuple[str, ...]


class _Histogram:
    def __init__(self) -> None:
        self.classes = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def lines(self, name: str, names: Labels, labels: Labels) -> list[str]:
        lines, count = [], 0
        for bound, number in zip((*map(_number, BUCKETS), "+Inf"), self.classes, strict=True):
            count += number
            lines.append(f"{name}_bucket{_shown((*names, 'le'), (*labels, bound))} {count}")
        shown = _shown(names, labels)
        return [*lines, f"{name}_sum{shown} {_number(self.sum)}", f"{name}_count{shown} {count}"]


class Metrics:
    """The numbers of one server; what they are called stands in `_FAMILIES`, without the prefix."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[str, dict[Labels, float]] = {
            name: {} if family.labels else {(): 0.0}
            for name, family in _FAMILIES.items()
            if family.kind != "histogram"
        }
        self._histograms: dict[str, dict[Labels, _Histogram]] = {
            name: {} for name, family in _FAMILIES.items() if family.kind == "histogram"
        }
        self._gauges: dict[str, Callable[[], float]] = {}

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        with self._lock:
            values = self._values[name]
            values[labels] = values.get(labels, 0.0) + by

    def observe(self, name: str, value: float, *labels: str) -> None:
        with self._lock:
            found = self._histograms[name].get(labels)
            if found is None:
                found = self._histograms[name][labels] = _Histogram()
            found.classes[bisect_left(BUCKETS, value)] += 1
            found.sum += value

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        """Have ``read`` return the number whenever somebody asks."""
        self._gauges[name] = read

    def text(self) -> str:
        """Return the page in Prometheus' text format."""
        gauges = {name: read() for name, read in self._gauges.items()}
        with self._lock:
            lines: list[str] = []
            for name, family in _FAMILIES.items():
                full = _PREFIX + name
                lines += [f"# HELP {full} {family.help}", f"# TYPE {full} {family.kind}"]
                if family.kind == "histogram":
                    for labels, histogram in sorted(self._histograms[name].items()):
                        lines += histogram.lines(full, family.labels, labels)
                elif name in gauges:
                    lines.append(f"{full} {_number(gauges[name])}")
                else:
                    for labels, value in sorted(self._values[name].items()):
                        lines.append(f"{full}{_shown(family.labels, labels)} {_number(value)}")
        return "\n".join(lines) + "\n"


def _shown(names: Labels, values: Labels) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
