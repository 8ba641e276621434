"""A compiled program: plain data that `marshal` can keep, so that a warm start parses nothing."""

from __future__ import annotations

from harnpy.syntax import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    from harnpy.syntax.span import Lines


#: The parts of a unit that are kept, in the order of its parameters.
_KEPT = ("code", "offsets", "shown", "called", "valued", "globals", "methods", "helpers")


class Unit:
    """Generated code and what belongs to it.

    ``offsets``: the source offset of each line of the generated text. ``shown``: the names of generated
    functions in backtraces. ``called`` and ``valued`` (builtins), ``globals``, ``methods``, ``helpers``:
    what the code refers to outside itself. ``directory`` is where the source file lies, None when there
    is none; ``module`` names the unit when it was imported.
    """

    __slots__ = (
        "_lines",
        "called",
        "code",
        "directory",
        "file",
        "globals",
        "helpers",
        "methods",
        "module",
        "offsets",
        "shown",
        "source",
        "valued",
    )

    def __init__(
        self,
        file: str,
        source: str,
        code: CodeType,
        offsets: list[int],
        shown: dict[str, str],
        called: list[str],
        valued: list[str],
        globals: list[str],
        methods: list[tuple[str, int]],
        helpers: list[str],
    ) -> None:
        self.file = file
        self.source = source
        self.code = code
        self.offsets = offsets
        self.shown = shown
        self.called = called
        self.valued = valued
        self.globals = globals
        self.methods = methods
        self.helpers = helpers
        self.directory: str | None = None
        self.module: str | None = None
        self._lines: Lines | None = None

    @property
    def lines(self) -> Lines:
        if self._lines is None:
            from harnpy.syntax.span import Lines

            self._lines = Lines(self.source)
        return self._lines


def cached_unit(kind: str, key: str, source: str, file: str, make: Callable[[], Unit]) -> Unit:
    """The unit kept under ``kind`` and ``key``, else what ``make`` returns."""
    kept = cache.load(kind, key)
    if isinstance(kept, tuple) and len(kept) == len(_KEPT):
        return Unit(file, source, *kept)
    unit = make()
    cache.store(kind, key, tuple(getattr(unit, field) for field in _KEPT))
    return unit
