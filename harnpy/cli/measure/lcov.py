"""Coverage in LCOV's format, which editors and services read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harnpy.cli.measure.coverage import FileCoverage


def lcov(files: Iterable[FileCoverage]) -> str:
    return "".join(f"{line}\n" for file in files for line in _record(file))


def _record(file: FileCoverage) -> Iterator[str]:
    yield "TN:"
    yield f"SF:{file.path}"
    functions = file.functions()
    yield from (f"FN:{line},{name}" for line, name, _ in functions)
    yield from (f"FNDA:{count},{name}" for _, name, count in functions)
    yield from _sums("FN", [count for _, _, count in functions])
    branches = file.branches()
    made = {branch.decision for branch, count in branches if count}
    for branch, count in branches:
        taken = count if branch.decision in made else "-"
        yield f"BRDA:{branch.line},{branch.decision},{branch.outcome.replace(',', ' ')},{taken}"
    yield from _sums("BR", [count for _, count in branches])
    lines = file.lines()
    yield from (f"DA:{line},{count}" for line, count in lines.items())
    yield from _sums("L", list(lines.values()))
    yield "end_of_record"


def _sums(kind: str, counts: list[int]) -> Iterator[str]:
    yield f"{kind}F:{len(counts)}"
    yield f"{kind}H:{sum(map(bool, counts))}"
