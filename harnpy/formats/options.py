"""`OptionTable`: the options that a call takes, stated once. Spec: 07 §1.2, 09 §4.5.

A table is text, a line for an option or for several that are alike:

    max_tokens: int = 16384 — how long the reply may be
    vision, audio, pdf: bool — what the model must be able to read

What a program passes is held against it, and `harnpy builtins NAME` prints it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

from harnpy.faults import OptionError, paced
from harnpy.formats.suggestions import nearest_at_run_time

#: Tables with more options than that are not listed in messages.
_LISTED = 12
#: A meaning that lists words.
_WORDS = re.compile(r"(\w+(?:, \w+)*),? or (\w+)(?=$|[;,:])")


class Option(NamedTuple):
    """One row of a table; ``name`` is a path when the option belongs to an inner dict."""

    name: str
    type: str
    default: str
    meaning: str

    @property
    def words(self) -> Sequence[str]:
        """The words that a text may be, where the meaning lists them: `text, json or json_schema`."""
        found = _WORDS.match(self.meaning) if self.type == "string" else None
        return () if found is None else [*found[1].split(", "), found[2]]


class OptionFault(NamedTuple):
    """An option that a call doesn't take, by its path; ``near`` is the one that was probably meant."""

    path: tuple[str | int, ...]
    message: str
    near: str | None = None


class OptionTable:
    """``inner`` are the tables of options that are dicts, or lists of dicts. ``removed``: options that are no
    more, each with the message that says so. ``providers``: a provider's name is an option as well.
    """

    def __init__(
        self,
        text: str,
        inner: Mapping[str, OptionTable] | None = None,
        *,
        removed: Mapping[str, str] | None = None,
        providers: bool = False,
    ) -> None:
        self._text = text
        self._inner = inner or {}
        self._removed = removed or {}
        self._providers = providers

    def __add__(self, other: OptionTable) -> OptionTable:
        """Return a table of the options of both; where they share one, the row is that of ``other``."""
        return OptionTable(
            f"{self._text}\n{other._text}",
            {**self._inner, **other._inner},
            removed={**self._removed, **other._removed},
            providers=self._providers or other._providers,
        )

    @cached_property
    def own(self) -> Mapping[str, Option]:
        """The options by name, without those of inner dicts."""
        return {option.name: option for option in _options(self._text)}

    @cached_property
    def _simple(self) -> frozenset[str]:
        """The names of which the name alone says that they are right."""
        return frozenset(self.own.keys() - self._inner.keys() - self._removed.keys())

    def default(self, name: str) -> Any:
        """Return the default of an option, None where the table has none. A bare word is a text."""
        return _value(self.own[name].default)

    def rows(self, path: str = "") -> Iterator[Option]:
        """Yield every option, those of an inner dict after the option that takes it."""
        for option in self.own.values():
            yield option._replace(name=f"{path}{option.name}")
            if option.name in self._inner:
                yield from self._inner[option.name].rows(f"{path}{option.name}.")

    def within(self, path: Sequence[str]) -> Sequence[Option]:
        """Return the options of the inner dict that a path leads to; none where there is none."""
        table: OptionTable | None = self
        for key in path:
            table = table._inner.get(key) if table is not None else None
        return () if table is None else list(table.own.values())

    def check(
        self,
        function: str,
        given: Mapping[str, Any],
        providers: Callable[[], Iterable[str]] = tuple,
        others: Callable[[], Mapping[str, OptionTable]] = dict,
    ) -> None:
        """Raise `OptionError` for an option that ``function`` doesn't take, also in an inner dict.

        ``providers`` returns the names of the providers, ``others`` the tables of other functions, of which
        the message names the one that takes the option.
        """
        if self._simple.issuperset(given):
            return
        for fault in self.faults(function, given, providers, others):
            raise OptionError(fault.message)

    def faults(
        self,
        function: str,
        given: Mapping[str, Any],
        providers: Callable[[], Iterable[str]] = tuple,
        others: Callable[[], Mapping[str, OptionTable]] = dict,
    ) -> Iterator[OptionFault]:
        """Yield what `check` has to say of every option, in that order."""
        for key, message in self._removed.items():
            if key in given:
                yield OptionFault((key,), message)
        yield from self._faults((), function, given, providers, others)

    def _faults(
        self,
        path: tuple[str | int, ...],
        function: str,
        given: Mapping[str, Any],
        providers: Callable[[], Iterable[str]],
        others: Callable[[], Mapping[str, OptionTable]],
    ) -> Iterator[OptionFault]:
        unknown = set(given).difference(self.own, self._removed)
        if unknown:
            more = set(providers()) if self._providers else set()
            for key in sorted(unknown - more):
                near, hint = self._hint(key, function, sorted(more), {} if path else others())
                place = _place((*path, key))
                yield OptionFault((*path, key), f"{function}: unknown option key '{place}' ({hint})", near)
        for key, table in self._inner.items():
            for at, dict_ in _dicts(given.get(key)):
                yield from table._faults((*path, key, *at), function, dict_, providers, dict)

    def _hint(
        self, key: str, function: str, more: Sequence[str], others: Mapping[str, OptionTable]
    ) -> tuple[str | None, str]:
        """Return the option that was probably meant, and what an error about ``key`` has in brackets."""
        near = nearest_at_run_time(key, (*self.own, *more))
        if len(self.own) <= _LISTED:
            return near, expected(key, tuple(self.own))
        lists = f"`harnpy builtins {function}` lists the options"
        for other, table in others.items():
            if key in table.own:
                return None, f"an option of {other}; {lists}"
        return near, f"did you mean '{near}'? {lists}" if near else lists


def expected(key: str, known: Sequence[str], others: Iterable[str] = ()) -> str:
    """Return what an error about the unknown ``key`` has in brackets: the nearest known one, and all.

    ``others`` are known as well, but not listed.
    """
    near = nearest_at_run_time(key, (*known, *others))
    hint = f"did you mean '{near}'? " if near else ""
    return f"{hint}expected one of: {', '.join(known)}"


def _dicts(value: Any) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
    """Yield a dict, or the dicts in a list, each with its place."""
    if isinstance(value, dict):
        yield (), value
    elif isinstance(value, list):
        yield from (((i,), item) for i, item in enumerate(paced(value)) if isinstance(item, dict))


def _place(path: tuple[str | int, ...]) -> str:
    """Return a path as messages have it: ``children[0].restart.max``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


@cache
def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text or None


def _options(text: str) -> Iterator[Option]:
    for line in filter(None, map(str.strip, text.split("\n"))):
        head, _, meaning = line.partition(" — ")
        names, _, kind = head.partition(": ")
        type_, _, default = kind.partition(" = ")
        for name in names.split(", "):
            yield Option(name, type_, default, meaning)
