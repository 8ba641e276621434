"""What a check knows beyond the file: the builtins, and what the imports bring. Both come from above.

Answers are looked up when they are asked for: a program that calls `println` alone loads no table of options.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Protocol

    from harnpy.reading.option_tables import OptionTable
    from harnpy.syntax import ast

    class Knowledge(Protocol):
        """The builtins, and the words that they take."""

        def is_builtin(self, name: str) -> bool: ...

        def is_global(self, name: str) -> bool:
            """Whether a name is a value that programs are given: `argv`, `pi`, `stream`."""

        def names(self) -> Collection[str]:
            """The names of all builtins."""

        def globals(self) -> Collection[str]:
            """The names of the values that programs are given."""

        def absence(self, name: str) -> str | None:
            """What to say of a builtin that the language has and harnpy has not."""

        def methods(self, kind: str) -> Collection[str]:
            """The methods of a kind of value (`string`, `list`, `iter` …)."""

        def properties(self, kind: str) -> Collection[str]:
            """The properties of a kind of value, such as `count`."""

        def options(self, function: str) -> tuple[int, OptionTable] | None:
            """Which argument of a builtin holds its options, counted from 0, and what those may be."""

        def fingerprint(self) -> str:
            """A text that changes whenever an answer does."""

    class Imported(Protocol):
        """What the imports of one file bring.

        ``complete``: each import was found, so a name that nobody declares doesn't exist.
        """

        @property
        def complete(self) -> bool: ...
        @property
        def functions(self) -> Collection[str]: ...
        @property
        def names(self) -> Collection[str]:
            """All names that aren't functions."""

        @property
        def types(self) -> Mapping[str, ast.Node]:
            """The declarations of types among them: structs, enums, aliases, interfaces."""

        def missing(self, node: ast.Import) -> tuple[str, list[str]] | None:
            """The module of an import and the listed names that it has not; None when nothing is missing."""
