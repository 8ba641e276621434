"""A profile for the terminal: the functions and the lines that take the most time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath

from rich.console import Group, RenderableType
from rich.text import Text

from harnpy.cli.measure.call_tree import Profile
from harnpy.cli.show.tables import cell, table

#: Columns of source text that the table of lines shows.
_TEXT_WIDTH = 60


def profile_lines(profile: Profile, most: int, text_of: Callable[[str, int], str]) -> RenderableType:
    """Show at most ``most`` functions and lines; ``text_of(file, line)`` is what the program says there."""
    functions, lines = profile.functions[:most], profile.lines[:most]
    return Group(
        Text(f"\n{headline(profile)}\n", "bold"),
        _numbers(
            ["calls", "own", "total"],
            ["function", "at"],
            [
                [f"{each.calls:,}", ms(each.own), ms(each.total), each.function.name, place(each.function)]
                for each in functions
            ],
        ),
        *_left_out(len(profile.functions) - len(functions), "function"),
        Text(),
        _numbers(
            ["own", "total"],
            ["line", ""],
            [
                [ms(each.own), ms(each.total), place((each.file, each.line)), text_of(each.file, each.line)]
                for each in lines
            ],
        ),
        *_left_out(len(profile.lines) - len(lines), "line"),
    )


def headline(profile: Profile) -> str:
    calls = sum(each.calls for each in profile.functions)
    functions = len(profile.functions)
    return (
        f"{ms(profile.total)} in {calls:,} call{'' if calls == 1 else 's'}"
        f" of {functions} function{'' if functions == 1 else 's'}"
    )


def ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:,.2f} ms"


def place(at: Sequence[object]) -> str:
    """``file:line``, the file without its directories."""
    return f"{PurePath(str(at[0])).name}:{at[1]}"


def _numbers(numbers: list[str], texts: list[str], rows: list[list[str]]) -> RenderableType:
    return table(
        [*numbers, *texts], [[cell(text, _TEXT_WIDTH) for text in row] for row in rows], numbers=numbers
    )


def _left_out(count: int, what: str) -> Iterator[Text]:
    if count > 0:
        yield Text(f"… {count} more {what}{'' if count == 1 else 's'}", "dim")
