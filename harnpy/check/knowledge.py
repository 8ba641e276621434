"""What a check knows beyond the file: the builtins, and what the imports bring. Both come from above.

Answers are looked up when they are asked for: a program that calls `println` alone loads no table of options.
"""

from __future__ import annotations

# The codes of what builtins refuse, and of what they only warn of. Spec: 03 §16.
UNKNOWN_OPTION = "unknown-option"
OPTION_TYPE = "option-type"
GRAPH_FIELD = "graph-field"
GRAPH_NODE = "graph-node"
UNREACHABLE_NODE = "unreachable-node"
DUPLICATE_EDGE = "duplicate-edge"
TOOL_DEFINITION = "tool-definition"
TOOL_PARAMETERS = "tool-parameters"
TOOL_HANDLER = "tool-handler"
UNKNOWN_PROVIDER = "unknown-provider"
UNKNOWN_TIER = "unknown-tier"


class Problem:
    """A fault that a builtin would find in an argument, in the words of the run.

    ``path`` leads to it: the argument's number, then keys and indexes. ``of_key``: the last key itself is
    wrong, not what stands under it. ``near`` is the word that was probably meant. ``node``: what it is
    about, where that is a part of something that is no literal.
    """

    __slots__ = ("code", "message", "near", "node", "of_key", "path", "severity")

    def __init__(
        self,
        code: str,
        message: str,
        path: tuple[str | int, ...],
        *,
        of_key: bool = False,
        near: str | None = None,
        severity: str = "error",
        node: ast.Node | None = None,
    ) -> None:
        self.node = node
        self.code = code
        self.message = message
        self.path = path
        self.of_key = of_key
        self.near = near
        self.severity = severity


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any, Protocol

    from harnpy.formats.options import Option, OptionTable
    from harnpy.syntax import ast

    class Parameter(Protocol):
        """A parameter of a builtin; ``type`` is text."""

        name: str
        type: str
        rest: bool

    class Signature(Protocol):
        """The declaration of a builtin, its types as text.

        ``lenient``: the result may be nil, and counts as never being that.
        """

        returns: str
        lenient: bool

        @property
        def type_params(self) -> Sequence[str]: ...
        @property
        def parameters(self) -> Sequence[Parameter]: ...

    class Knowledge(Protocol):
        """The builtins, and the words that they take."""

        def signature(self, name: str) -> Signature | None:
            """Return how a builtin is declared; None for other names."""

        def is_builtin(self, name: str) -> bool: ...

        def is_pure(self, name: str) -> bool:
            """Return True if a builtin only computes a value, so that ignoring it is a mistake."""

        def is_global(self, name: str) -> bool:
            """Return True if a name is a value that programs are given: `argv`, `pi`, `stream`."""

        def names(self) -> Collection[str]:
            """The names of all builtins."""

        def globals(self) -> Collection[str]:
            """The names of the values that programs are given."""

        def absence(self, name: str) -> str | None:
            """Return what to say of a builtin that the language has and harnpy has not."""

        def methods(self, kind: str) -> Collection[str]:
            """The methods of a kind of value (`string`, `list`, `iter` …)."""

        def properties(self, kind: str) -> Collection[str]:
            """The properties of a kind of value, such as `count`."""

        def method_hint(self, kind: str, name: str, own: Collection[str] = ()) -> str:
            """Return how the error of a call of an unknown method ends, "" or ` (did you mean …?)`.

            ``own`` are the keys of a dict, or the methods of a struct.
            """

        def modules(self) -> Collection[str]:
            """The modules that come with harnpy: `std/json` …"""

        def module_with(self, function: str) -> str | None:
            """Return the module that comes with harnpy and has a function of that name."""

        def options(self, function: str) -> tuple[int, OptionTable] | None:
            """Return which argument of a builtin holds its options, counted from 0, and what those may be."""

        def keys(self, function: str, path: Sequence[str | int]) -> Sequence[Option]:
            """Return the keys that a dict takes which is given to a builtin.

            ``path`` leads to it: the argument's number from 0 on, then keys, and indexes in lists.
            """

        def words(self, function: str, path: Sequence[str | int]) -> Sequence[str]:
            """Return the words that a text in an argument may be, if they are few; ``path`` leads to it."""

        def passed_on(self, function: str) -> int | None:
            """Return which argument a builtin returns in another form: `workflow_graph` its graph."""

        def forwarded(self, module: str, function: str) -> tuple[str, Sequence[int | None]] | None:
            """The builtin that a function of a `std/…` module passes its arguments on to.

            Also which of them it gets, by their numbers; None is nil.
            """

        def problems(self, function: str, arguments: Sequence[Any]) -> Iterable[Problem]:
            """Return what a builtin refuses in its arguments, as far as those are known.

            They are Python values as they come from JSON. What is no literal stands there as its node: a
            closure, a call, a spread (under the key `...`, or as an item of a list).
            """

        def fingerprint(self) -> str:
            """A text that changes whenever an answer does."""

    class Imported(Protocol):
        """The names that the imports of one file bring.

        ``complete``: each import was found, so a call that nobody declares means nothing.
        ``whole``: all that they bring is known; a file that can't be parsed counts as found.
        """

        @property
        def complete(self) -> bool: ...
        @property
        def whole(self) -> bool: ...
        @property
        def functions(self) -> Collection[str]: ...
        @property
        def names(self) -> Collection[str]:
            """All names that aren't functions."""

        @property
        def types(self) -> Mapping[str, ast.Node]:
            """The declarations of types among them: structs, enums, aliases, interfaces."""

        def bound_by(self, node: ast.Import) -> Collection[str]:
            """The functions that one import brings: inside a block they are known there alone."""

        def missing(self, node: ast.Import) -> tuple[str, list[str]] | None:
            """The module of an import and the listed names that it has not; None when nothing is missing."""
